"""Collectives that gradients flow through: their backward passes are their adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
import flambeau.distributed.nn.functional as collectives
from flambeau import nn  # before the processes fork
from flambeau.testing.ranks import run_ranks, values

Tensors = tuple[fb.Tensor, ...]
SHAPE = 2, 3


def _as_tuple(found: Any) -> Tensors:
    return found if isinstance(found, tuple) else (found,)


def _uneven(rank: int, size: int) -> tuple[list[int], list[int]]:
    """Lengths of the parts that a rank gets and gives: rank i gives rank j 1 row if j > i."""
    return [int(rank > i) for i in range(size)], [int(j > rank) for j in range(size)]


def _uneven_exchange(x: fb.Tensor) -> fb.Tensor:
    rank, size = dist.get_rank(), dist.get_world_size()
    got, given = _uneven(rank, size)
    rows = fb.cat([x] * size)[: sum(given)]
    into = rows.new_empty(sum(got), SHAPE[1])
    return collectives.all_to_all_single(into, rows, got, given)


ONE: dict[str, Callable[[fb.Tensor], Any]] = {
    "broadcast": lambda x: collectives.broadcast(x, 1),
    "gather": lambda x: collectives.gather(x, 2),
    "all_gather": collectives.all_gather,
    "all_gather transposed": lambda x: collectives.all_gather(x.t()),
    "all_reduce": collectives.all_reduce,
    "all_reduce average": lambda x: collectives.all_reduce(x, dist.ReduceOp.AVG),
    "all_to_all_single": lambda x: collectives.all_to_all_single(fb.empty(3, 2).double(), x.t()),
    "all_to_all_single uneven": _uneven_exchange,
}
"""Of one tensor in each process."""
MANY: dict[str, Callable[[Tensors], Any]] = {
    "scatter": lambda xs: collectives.scatter(xs, 1),
    "reduce_scatter": lambda xs: collectives.reduce_scatter(fb.empty_like(xs[0]), xs),
    "reduce_scatter average": lambda xs: collectives.reduce_scatter(
        fb.empty_like(xs[0]), xs, dist.ReduceOp.AVG
    ),
    "all_to_all": lambda xs: collectives.all_to_all([fb.empty_like(x) for x in xs], xs),
}
"""Of a tensor for each process in each process."""


def _numbers(rank: int, count: int, seed: int, like: Tensors | None = None) -> Tensors:
    """Small whole numbers, so that sums of products are exact."""
    generator = fb.Generator().manual_seed(100 * seed + rank)
    shapes = [tuple(t.shape) for t in like] if like is not None else [SHAPE] * count
    return tuple(
        fb.randint(-999, 1000, shape, generator=generator).to(fb.float64) for shape in shapes
    )


def _product(a: Tensors, b: Tensors) -> fb.Tensor:
    total = fb.zeros((), dtype=fb.float64)
    for left, right in zip(a, b, strict=True):
        total = total + (left * right).sum()
    return total


def _adjoint(rank: int, size: int, name: str) -> tuple[float, ...]:
    """Both sides of <w, C y> = <C* w, y>, and how far C** is from C, summed over processes."""

    def call(tensors: Tensors) -> Tensors:
        return _as_tuple(ONE[name](*tensors) if name in ONE else MANY[name](tensors))

    count = 1 if name in ONE else size
    x = tuple(t.requires_grad_() for t in _numbers(rank, count, 1))
    y = _numbers(rank, count, 2)
    out = call(x)
    w = tuple(t.requires_grad_() for t in _numbers(rank, 0, 3, like=out))
    grads = fb.autograd.grad(out, x, w, create_graph=True)
    of_y = call(y)
    again = fb.autograd.grad(_product(grads, y), w)
    apart = sum(float((a - b).abs().sum()) for a, b in zip(again, of_y, strict=True))
    sides = fb.stack([_product(w, of_y), _product(grads, y)]).detach()
    dist.all_reduce(sides)
    return *sides.tolist(), apart


@pytest.mark.parametrize("name", [*ONE, *MANY])
def test_the_backward_pass_of_a_collective_is_its_adjoint_and_so_again(name: str) -> None:
    for left, right, apart in values(run_ranks(_adjoint, 3, name)):
        assert left == pytest.approx(right, rel=1e-12) and left != 0
        assert apart == pytest.approx(0, abs=1e-12)


def _reduced(rank: int, size: int) -> Any:
    x = fb.tensor([rank + 1.0]).requires_grad_()
    total = collectives.reduce(x, 1)
    (total * (10.0 if rank == 1 else 7.0)).sum().backward()
    mean = collectives.reduce(x, 0, dist.ReduceOp.AVG)
    return total.item(), x.grad.item(), mean.item()


def test_what_one_rank_gets_of_all_has_the_gradient_of_that_rank() -> None:
    assert values(run_ranks(_reduced, 3)) == [(1.0, 10.0, 2.0), (6.0, 10.0, 2.0), (3.0, 10.0, 3.0)]


def _refused(rank: int, size: int) -> str:
    x = fb.tensor([rank + 1.0]).requires_grad_()
    largest = collectives.all_reduce(x, dist.ReduceOp.MAX)
    assert largest.item() == size
    with pytest.raises(NotImplementedError) as caught:
        largest.backward()
    return str(caught.value)


def test_no_gradient_is_made_up_for_what_is_not_linear() -> None:
    assert all("ReduceOp.MAX" in words for words in values(run_ranks(_refused, 2)))


def _contrastive(rank: int, size: int) -> list[list[float]]:
    """The loss of pairs among those of all processes, as CLIP has it."""
    fb.manual_seed(0)
    data = fb.randn(2 * size, 4, dtype=fb.float64)
    model = nn.Linear(4, 3).double()
    own = model(data[2 * rank : 2 * rank + 2])
    everything = fb.cat(collectives.all_gather(own))
    targets = fb.arange(2 * size)
    nn.functional.cross_entropy(everything @ everything.t(), targets).div(size).backward()
    dist.all_reduce(model.weight.grad)
    return model.weight.grad.tolist()


def test_a_loss_over_all_processes_has_the_gradient_of_one_process() -> None:
    fb.manual_seed(0)
    data = fb.randn(4, 4, dtype=fb.float64)
    model = nn.Linear(4, 3).double()
    found = model(data)
    nn.functional.cross_entropy(found @ found.t(), fb.arange(4)).backward()
    for weight in values(run_ranks(_contrastive, 2)):
        fb.testing.assert_close(fb.tensor(weight, dtype=fb.float64), model.weight.grad)
