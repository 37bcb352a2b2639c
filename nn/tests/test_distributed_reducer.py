"""Gradients on their way: what is in a bucket, what travels where it is, PyTorch 1.2's object."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau import nn
from flambeau.compat._torch.distributed import Reducer, _compute_bucket_assignment_by_size
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.nn.parallel._buckets import divided
from flambeau.testing.ranks import run_ranks, values


def _of(*sizes: int, dtype: fb.dtype = fb.float32) -> list[fb.Tensor]:
    return [fb.empty(size, dtype=dtype) for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "limits", "alone", "parts"),
    [
        ([10, 10, 10], [40, 80], 1000, [[0], [1, 2]]),
        ([10, 300, 10, 10], [1000], 1000, [[1], [0, 2, 3]]),
        ([300, 300], [1000], 1000, [[0], [1]]),
        ([1, 300, 300, 1], [4], 1000, [[0], [1], [2], [3]]),
        ([], [4], 4, []),
    ],
)
def test_buckets_follow_each_other_as_they_are_filled(
    sizes: list[int], limits: list[int], alone: int, parts: list[list[int]]
) -> None:
    assert divided(_of(*sizes), limits, alone) == parts


def test_each_dtype_has_buckets_of_its_own() -> None:
    single, double = _of(5, 5, 5), _of(5, 5, 5, dtype=fb.float64)
    mixed = [t for pair in zip(single, double, strict=True) for t in pair]
    assert divided(mixed, [20, 1000], 10000) == [[0], [1], [2, 4], [3, 5]]
    assert _compute_bucket_assignment_by_size(mixed, [40]) == [[0, 2], [1], [3], [4], [5]]


class Shared(nn.Module):
    """Gradients that are one array in the graph, transposed ones, and ones that somebody keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(fb.ones(3, 5))
        self.b = nn.Parameter(fb.ones(3, 5))
        self.turned = nn.Parameter(fb.ones(5, 3))
        self.kept: list[fb.Tensor] = []
        self.a.register_hook(self.kept.append)

    def forward(self, x: fb.Tensor) -> fb.Tensor:
        return ((self.a + self.b) * x + self.turned.t() * x).sum()


def _shared(rank: int, size: int, options: dict[str, Any], keeps: bool) -> list[Any]:
    model = DistributedDataParallel(Shared(), bucket_cap_mb=0.00001, **options)
    x = fb.arange(15.0).view(3, 5) * (rank + 1)
    for _ in range(2):
        model.zero_grad(set_to_none=not keeps)
        model(x).backward()
    module = model.module
    assert fb.equal(module.kept[-1], x)  # what a hook has seen stays what it was
    model(x).backward()  # adds to what there is
    return [p.grad.tolist() for p in module.parameters() if p.grad is not None]


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}], ids=str)
def test_gradients_that_share_memory_are_averaged_one_by_one(
    options: dict[str, Any], keeps: bool
) -> None:
    mean = fb.arange(15.0).view(3, 5) * 1.5
    for a, b, turned in values(run_ranks(_shared, 2, options, keeps)):
        assert a == b == (2 * mean).tolist()
        assert turned == (2 * mean.t()).tolist()


def _replaced(rank: int, size: int) -> list[float]:
    model = DistributedDataParallel(nn.Linear(3, 1, bias=False), bucket_cap_mb=0.00001)
    weight = model.module.weight

    def replace(parameter: fb.Tensor) -> None:
        parameter.grad = fb.zeros_like(parameter)

    weight.register_post_accumulate_grad_hook(replace)
    model(fb.full((1, 3), rank + 1.0)).sum().backward()
    assert weight.grad is not None
    return weight.grad.flatten().tolist()


def test_a_gradient_that_is_replaced_on_the_way_gets_the_mean() -> None:
    assert values(run_ranks(_replaced, 2)) == [[1.5] * 3] * 2


def _replicas(rank: int, size: int) -> list[Any]:
    models = [nn.Linear(3, 2) for _ in range(2)]
    unused = [nn.Parameter(fb.ones(2)) for _ in models]
    replicas = [[*model.parameters(), extra] for model, extra in zip(models, unused, strict=True)]
    assert dist.group.WORLD is not None
    reducer = Reducer(replicas, [[1, 2], [0]], dist.group.WORLD)
    output = sum(m(fb.full((1, 3), float(10 * rank + i))).sum() for i, m in enumerate(models))
    assert isinstance(output, fb.Tensor)
    reducer.prepare_for_backward(output)
    output.backward()
    return [[p.grad.tolist() for p in replica if p.grad is not None] for replica in replicas]


def test_replicas_of_a_process_get_the_sum_of_their_means() -> None:
    weight = [[(0 + 1 + 10 + 11) / 2] * 3] * 2
    for replicas in values(run_ranks(_replicas, 2)):
        assert replicas == [[weight, [2.0, 2.0], [0.0, 0.0]]] * 2


def _mixed(rank: int, size: int) -> None:
    parameters = [nn.Parameter(fb.ones(2)), nn.Parameter(fb.ones(2, dtype=fb.float64))]
    assert dist.group.WORLD is not None
    with pytest.raises(RuntimeError, match="same type"):
        Reducer([parameters], [[0, 1]], dist.group.WORLD)


def test_a_bucket_has_one_dtype() -> None:
    values(run_ranks(_mixed, 1))
