"""Gradients averaged over processes: those of one process with the whole batch."""

from __future__ import annotations

import copy
import io
import warnings
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.optim.zero_redundancy import ZeroRedundancyOptimizer
from flambeau.testing.ranks import run_ranks, values


class Net(nn.Module):
    """A part of it takes part in some losses only."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 300)
        self.norm = nn.BatchNorm1d(300)
        self.second = nn.Linear(300, 700)
        self.extra = nn.Linear(300, 700)
        self.last = nn.Linear(700, 1)

    def forward(self, x: fb.Tensor, extra: bool) -> fb.Tensor:
        hidden = self.norm(self.first(x)).relu()
        return self.last((self.extra if extra else self.second)(hidden).relu())


class Plain(nn.Module):
    """No statistics of batches: two halves are exactly one whole."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 400), nn.ReLU(), nn.Linear(400, 800), nn.Tanh(), nn.Linear(800, 1)
        )

    def forward(self, x: fb.Tensor) -> fb.Tensor:
        return self.layers(x)


def data() -> tuple[fb.Tensor, fb.Tensor]:
    fb.manual_seed(1)
    return fb.randn(24, 6), fb.randn(24, 1)


def trained(model: nn.Module, x: fb.Tensor, y: fb.Tensor, steps: int = 4) -> list[fb.Tensor]:
    optimizer = fb.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def _whole() -> list[fb.Tensor]:
    fb.manual_seed(0)
    return trained(Plain(), *data())


def _trained(rank: int, size: int, options: dict[str, Any]) -> list[list[float]]:
    fb.manual_seed(rank)  # what rank 0 has is what counts
    model = DistributedDataParallel(Plain(), **options)
    if "hook" in options:
        raise AssertionError
    x, y = data()
    part = len(x) // size
    mine = slice(rank * part, (rank + 1) * part)
    return [p.flatten().tolist() for p in trained(model, x[mine], y[mine])]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket_cap_mb": 0.5},
        {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001},
        {"find_unused_parameters": True},
        {"static_graph": True},
    ],
    ids=str,
)
def test_training_in_parts_is_training_on_the_whole(options: dict[str, Any]) -> None:
    one, other = values(run_ranks(_trained, 2, options))
    assert one == other  # to the last bit
    for found, wanted in zip(one, _whole(), strict=True):
        assert fb.allclose(fb.tensor(found), wanted.flatten(), rtol=1e-4, atol=1e-6)


def _large(rank: int, size: int, as_views: bool) -> list[float]:
    model = nn.Linear(2, 1, bias=False).half()
    model = DistributedDataParallel(model, gradient_as_bucket_view=as_views)
    for _ in range(2):
        model.zero_grad(set_to_none=not as_views)
        model(fb.full((1, 2), 60000.0, dtype=fb.float16)).sum().backward()
    weight = model.module.weight
    assert weight.grad is not None
    return weight.grad.flatten().tolist()


@pytest.mark.parametrize("as_views", [False, True])
def test_sums_of_gradients_in_half_precision_do_not_overflow_before_they_are_means(
    as_views: bool,
) -> None:
    for found in values(run_ranks(_large, 3, as_views)):
        assert found == pytest.approx([60000.0, 60000.0], rel=2e-3)


def _copied(rank: int, size: int, way: str) -> list[list[float]]:
    fb.manual_seed(0)
    first = DistributedDataParallel(Plain())
    x, y = data()
    trained(first, x[rank::size], y[rank::size], steps=2)
    if way == "deepcopy":
        other = copy.deepcopy(first)
    else:
        file = io.BytesIO()
        fb.save(first, file)
        file.seek(0)
        with warnings.catch_warnings():  # once in a process, and this may be a fork of one
            warnings.filterwarnings("ignore", "load.*runs the code", UserWarning)
            other = fb.load(file, weights_only=False)
    assert other.process_group is dist.group.WORLD
    models = first, other
    trained(first, x[rank::size], y[rank::size])
    trained(other, x[rank::size], y[rank::size])
    return [[v for p in model.parameters() for v in p.flatten().tolist()] for model in models]


@pytest.mark.parametrize("way", ["deepcopy", "save"])
def test_copies_and_saved_models_average_as_well(way: str) -> None:
    results = values(run_ranks(_copied, 2, way))
    assert results[0] == results[1]
    for first, other in results:
        assert first == other


def test_models_of_another_group_are_not_saved() -> None:
    class Alone:
        def size(self) -> int:
            return 1

    model = DistributedDataParallel(nn.Linear(1, 1), process_group=Alone())
    with pytest.raises(RuntimeError, match="default process group"):
        copy.deepcopy(model)


def _unused(rank: int, size: int, static: bool) -> dict[str, Any]:
    fb.manual_seed(0)
    model = DistributedDataParallel(
        Net(), find_unused_parameters=not static, static_graph=static, broadcast_buffers=False
    )
    x, _ = data()
    for _ in range(3):
        model.zero_grad()
        model(x[rank::2], extra=bool(rank) and not static).sum().backward()
    return {
        name: None if p.grad is None else p.grad.abs().sum().item()
        for name, p in model.module.named_parameters()
    }


@pytest.mark.parametrize("static", [False, True])
def test_parameters_that_take_no_part_are_found(static: bool) -> None:
    one, other = values(run_ranks(_unused, 2, static))
    assert one == other
    assert one["second.weight"] > 0
    if static:  # used by nobody: left alone
        assert one["extra.weight"] is None
    else:  # used by one: both have its half
        assert one["extra.weight"] > 0


def _left_out(rank: int, size: int) -> str:
    model = DistributedDataParallel(Net())
    x, _ = data()
    model(x, extra=False).sum().backward()
    with pytest.raises(RuntimeError, match="find_unused_parameters=True") as caught:
        model(x, extra=False)
    return str(caught.value)


def test_parameters_without_a_gradient_are_an_error_unless_it_is_said_before() -> None:
    assert all("2 parameters got no gradient" in text for text in values(run_ranks(_left_out, 2)))


def _accumulated(rank: int, size: int) -> bool:
    fb.manual_seed(0)
    model = DistributedDataParallel(Plain())
    x, _ = data()
    with model.no_sync():
        model(x[rank::4]).sum().backward()
    before = model.module.layers[0].weight.grad.clone()
    model(x[rank + 2 :: 4]).sum().backward()
    alone = Plain()
    alone.load_state_dict(model.module.state_dict())
    alone(x).sum().backward()
    pairs = zip(model.parameters(), alone.parameters(), strict=True)
    averaged = all(fb.allclose(p.grad * 2, q.grad, rtol=1e-4, atol=1e-5) for p, q in pairs)
    return averaged and not fb.equal(before, model.module.layers[0].weight.grad)


def test_gradients_add_up_without_travelling_until_the_first_pass_that_shares() -> None:
    assert values(run_ranks(_accumulated, 2)) == [True, True]


def _buffers(rank: int, size: int) -> list[list[float]]:
    fb.manual_seed(rank)
    model = DistributedDataParallel(nn.BatchNorm1d(2))
    model(fb.randn(8, 2) + rank).sum().backward()
    own = model.module.running_mean.tolist()
    model(fb.randn(8, 2)).sum().backward()
    model.eval()
    with fb.no_grad():
        model(fb.randn(8, 2))
    return [own, model.module.running_mean.tolist()]


def test_buffers_are_those_of_rank_0_at_each_forward() -> None:
    (own, after), (other, others_after) = values(run_ranks(_buffers, 2))
    assert own != other
    assert after == others_after


def _hooked(rank: int, size: int, name: str) -> list[float]:
    fb.manual_seed(0)
    model = DistributedDataParallel(Plain())
    model.register_comm_hook(None, getattr(default_hooks, name))
    with pytest.raises(RuntimeError, match="only be called once"):
        model.register_comm_hook(None, getattr(default_hooks, name))
    x, _ = data()
    model(x[rank::2]).mean().backward()
    return model.module.layers[2].weight.grad.flatten().tolist()


@pytest.mark.parametrize("name", ["allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"])
def test_hooks_reduce_in_place_of_the_sum(name: str) -> None:
    one, other = values(run_ranks(_hooked, 2, name))
    assert one == other
    fb.manual_seed(0)
    alone = Plain()
    alone(data()[0]).mean().backward()
    wanted = alone.layers[2].weight.grad.flatten()
    rough = {"allreduce_hook": 1e-5, "fp16_compress_hook": 2e-3, "bf16_compress_hook": 2e-2}[name]
    error = (fb.tensor(one) - wanted).norm() / wanted.norm()
    assert error < rough, error
    if name == "fp16_compress_hook":
        assert error > 1e-6  # it has been rounded


def _joined(rank: int, size: int, whole: bool) -> tuple[list[float], int]:
    fb.manual_seed(0)
    model = DistributedDataParallel(Plain())
    optimizer = fb.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()
    steps = 0
    with model.join(divide_by_initial_world_size=whole):
        for i in range(2 + 2 * rank):
            optimizer.zero_grad()
            ((model(x[i::7]) - y[i::7]) ** 2).mean().backward()
            optimizer.step()
            steps += 1
    return model.module.layers[0].weight.flatten().tolist(), steps


@pytest.mark.parametrize("whole", [True, False])
def test_processes_with_fewer_batches_join_the_others(whole: bool) -> None:
    (one, first), (other, second) = values(run_ranks(_joined, 2, whole))
    assert (first, second) == (2, 4)
    assert one == other
    fb.manual_seed(0)
    alone = Plain()
    optimizer = fb.optim.SGD(alone.parameters(), lr=0.1)
    x, y = data()
    for i in range(4):
        optimizer.zero_grad()
        loss = ((alone(x[i::7]) - y[i::7]) ** 2).mean()
        (loss / 2 if whole and i >= 2 else loss).backward()
        optimizer.step()
    assert fb.allclose(fb.tensor(one), alone.layers[0].weight.flatten(), rtol=1e-4, atol=1e-6)


def _strict(rank: int, size: int) -> str:
    model = DistributedDataParallel(Plain())
    x, _ = data()

    def passes() -> None:
        with model.join(throw_on_early_termination=True):
            for i in range(2 + rank):
                model(x[i::7]).sum().backward()

    with pytest.raises(RuntimeError, match="exhausted inputs") as caught:
        passes()
    return str(caught.value)


def test_an_early_end_can_be_an_error() -> None:
    assert len(values(run_ranks(_strict, 2))) == 2


def _models_differ(rank: int, size: int) -> str:
    with pytest.raises(RuntimeError, match="expects same model across all ranks") as caught:
        DistributedDataParallel(nn.Linear(2, 3 + rank))
    return str(caught.value)


def test_different_models_are_refused_with_what_differs() -> None:
    one, other = values(run_ranks(_models_differ, 2))
    assert "float32[3, 2]" in one
    assert "float32[4, 2]" in other


def _several_outputs(rank: int, size: int) -> float:
    fb.manual_seed(0)
    layer = nn.Linear(2, 2)
    model = DistributedDataParallel(layer)
    a, b = model(fb.ones(1, 2)), model(fb.ones(1, 2) * 2)
    (a.sum() + b.sum()).backward()
    return dist.get_rank() * 0.0 + layer.weight.grad.sum().item()


def test_one_backward_may_follow_two_forwards() -> None:
    assert values(run_ranks(_several_outputs, 2)) == [12.0, 12.0]


def _statistics(rank: int, size: int) -> list[list[float]]:
    fb.manual_seed(0)
    layer = nn.SyncBatchNorm(3)
    model = DistributedDataParallel(layer)
    x = fb.randn(10, 3, 4) * 3 + 50
    mine = x[:3] if rank == 0 else x[3:]
    mine.requires_grad_()
    y = model(mine)
    (y * fb.arange(y.numel()).view(y.shape).cos()).sum().backward()
    model.eval()
    parts = y, mine.grad, layer.running_mean, layer.running_var, model(mine)
    return [part.flatten().tolist() for part in parts]


def test_statistics_over_all_processes_are_those_of_the_whole_batch() -> None:
    rows = values(run_ranks(_statistics, 2))
    fb.manual_seed(0)
    layer = nn.BatchNorm1d(3)
    x = (fb.randn(10, 3, 4) * 3 + 50).requires_grad_()
    y = layer(x)
    weights = [fb.arange(n * 12).view(n, 3, 4).cos() for n in (3, 7)]
    (y * fb.cat(weights)).sum().backward()
    layer.eval()
    wanted = y, x.grad, layer(x)
    for i, whole in zip((0, 1, 4), wanted, strict=True):
        found = fb.tensor(rows[0][i] + rows[1][i])
        assert fb.allclose(found, whole.flatten(), rtol=1e-3, atol=1e-4)
    for row in rows:
        assert fb.allclose(fb.tensor(row[2]), layer.running_mean, rtol=1e-5)
        assert fb.allclose(fb.tensor(row[3]), layer.running_var, rtol=1e-4)


def _divided(rank: int, size: int) -> tuple[list[float], int, list[float]]:
    fb.manual_seed(0)
    model = DistributedDataParallel(Plain())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), fb.optim.Adam, lr=0.01)
    x, y = data()
    held = []
    for step in range(4):
        optimizer.zero_grad()
        ((model(x[rank::2]) - y[rank::2]) ** 2).mean().backward()
        optimizer.step()
        held.append(len(optimizer.optim.state))
        if step == 1:  # what is saved and loaded goes on as if nothing had been
            optimizer.consolidate_state_dict(1)
            saved: list[object] = [optimizer.state_dict() if rank == 1 else None]
            dist.broadcast_object_list(saved, 1)
            optimizer = ZeroRedundancyOptimizer(model.parameters(), fb.optim.Adam, lr=1.0)
            optimizer.load_state_dict(saved[0])
    return model.module.layers[2].weight.flatten().tolist(), max(held), []


def test_a_divided_optimiser_does_what_the_whole_one_does() -> None:
    (one, held, _), (other, others, _) = values(run_ranks(_divided, 2))
    assert one == other
    assert held + others == 6
    assert min(held, others) > 0
    fb.manual_seed(0)
    alone = Plain()
    optimizer = fb.optim.Adam(alone.parameters(), lr=0.01)
    x, y = data()
    for _ in range(4):
        optimizer.zero_grad()
        ((alone(x) - y) ** 2).mean().backward()
        optimizer.step()
    wanted = alone.layers[2].weight.flatten()
    assert fb.allclose(fb.tensor(one), wanted, rtol=1e-3, atol=1e-5)


class _Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(10, 3, sparse=True)
        self.unused = nn.Embedding(4, 3, sparse=True)
        self.out = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.out(self.table(x))


def _sparse(rank: int, size: int, find_unused: bool) -> list[Any]:
    fb.manual_seed(3)
    alone = _Words()
    if not find_unused:
        del alone.unused
    model = nn.parallel.DistributedDataParallel(
        copy.deepcopy(alone), find_unused_parameters=find_unused
    )
    whole = fb.randint(0, 10, (2 * size, 2))
    optimisers = [fb.optim.SGD(m.parameters(), lr=0.5) for m in (alone, model)]
    for _ in range(3):
        alone(whole).square().mean().backward()
        model(whole.split(2)[rank]).square().mean().backward()
        found = [m.table.weight.grad for m in (alone, model.module)]
        assert all(gradient.layout is fb.sparse_coo for gradient in found)
        fb.testing.assert_close(found[1].to_dense(), found[0].to_dense())
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
    assert not find_unused or model.module.unused.weight.grad is None
    return model.module.table.weight.tolist()


@pytest.mark.parametrize("find_unused", [False, True])
def test_sparse_gradients_of_embeddings_are_averaged_and_stay_sparse(find_unused: bool) -> None:
    first, second, third = values(run_ranks(_sparse, 3, find_unused))
    assert first == second == third
