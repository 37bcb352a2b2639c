"""Views share memory with their base, writes are counted, and history follows both.

The assertions are those for memory with addresses; on a backend of immutable arrays the core
refreshes the views, and nothing here may tell the difference.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.testing.backend import _support as kit

LEVEL = "inference"

View = Callable[[Any], Any]

# Each takes a contiguous (3, 4) tensor and selects its elements without repetition.
VIEWS: dict[str, View] = {
    "row": lambda x: x[1],
    "column": lambda x: x[:, 2],
    "step": lambda x: x[::2, 1::2],
    "element": lambda x: x[2, 3],
    "narrow": lambda x: x.narrow(1, 1, 2),
    "nothing": lambda x: x[1:1],
    "transpose": lambda x: x.t(),
    "permute": lambda x: x.view(3, 2, 2).permute(2, 0, 1),
    "view": lambda x: x.view(2, 6),
    "flat": lambda x: x.view(-1),
    "new dimension": lambda x: x[:, None, 1:],
    "squeeze": lambda x: x[0:1].squeeze(0),
    "diagonal": lambda x: x.diagonal(1),
    "slice of transpose": lambda x: x.t()[1:3, ::2],
    "view of slice": lambda x: x[1:].view(2, 2, 2),
    "as_strided": lambda x: x.as_strided((2, 2), (5, 2), 1),
    "split": lambda x: x.split(2, 1)[1],
    "detached": lambda x: x.detach()[1:],
}
# One of several views of one call: PyTorch refuses recorded writes to it.  Or without history.
UNRECORDED = frozenset({"split", "detached"})
REPEATING: dict[str, View] = {
    "expand": lambda x: x[:, :1].expand(3, 5),
    "overlapping": lambda x: x.as_strided((3, 3), (1, 1), 2),
    "windows": lambda x: x.view(-1).unfold(0, 4, 2),
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "add_": lambda v: v.add_(1.5),
    "mul_": lambda v: v.mul_(v.detach().clone()),
    "fill_": lambda v: v.fill_(-3.0),
    "zero_": lambda v: v.zero_(),
    "copy_": lambda v: v.copy_(v.detach().clone() * 2 + 1),
    "copy_ of one": lambda v: v.copy_(v.new_full((), 4.0)),
    "iadd": lambda v: v.__iadd__(2.0),
    "exp_": lambda v: v.exp_(),
    "setitem": lambda v: v.__setitem__(..., 7.0),
}


def views(device: str) -> Iterator[Any]:
    for name, function in VIEWS.items():
        yield kit.case(device, fb.float32, function, id=name.replace(" ", "_"))


def all_views(device: str) -> Iterator[Any]:
    for name, function in (VIEWS | REPEATING).items():
        yield kit.case(device, fb.float32, function, id=name.replace(" ", "_"))


def written_views(device: str) -> Iterator[Any]:
    for view, function in VIEWS.items():
        for write, change in WRITES.items():
            name = f"{view}-{write}".replace(" ", "_")
            yield kit.case(device, fb.float32, function, change, id=name)


def recorded_views(device: str) -> Iterator[Any]:
    for view, function in (VIEWS | REPEATING).items():
        if view != "detached":
            yield kit.case(device, fb.float64, function, id=view.replace(" ", "_"))


def writable_views(device: str) -> Iterator[Any]:
    for name, function in VIEWS.items():
        if name not in UNRECORDED:
            yield kit.case(device, fb.float32, function, id=name.replace(" ", "_"))


def recorded_writes(device: str) -> Iterator[Any]:
    for view, function in VIEWS.items():
        if view not in UNRECORDED:
            for write in ("add", "mul", "mul self", "copy", "zero", "exp"):
                name = f"{view}-{write}".replace(" ", "_")
                yield kit.case(device, fb.float64, function, write, id=name)


def matrix(device: str, dtype: fb.dtype = fb.float32) -> fb.Tensor:
    values = [(i * 5 % 12 - 4) / 4 for i in range(12)]
    return kit.maker(device)(values, (3, 4), dtype)


def places(view: View) -> list[int]:
    """The positions in a (3, 4) matrix that a view selects, from the reference."""
    numbered = kit.maker(kit.REFERENCE)(list(range(12)), (3, 4), fb.int64)
    return kit.numbers(view(numbered))


@kit.cases("view", all_views)
def test_a_view_reads_the_memory_of_its_base(device: str, view: Any) -> None:
    x = matrix(device)
    v = view(x)
    x.mul_(3)
    x[1, 2] = 9.0
    flat = kit.numbers(x)
    assert kit.numbers(v) == [flat[i] for i in places(view)]
    assert flat[6] == 9.0


@kit.cases("view write", written_views)
def test_writes_through_a_view_reach_the_base_and_other_views(
    device: str, view: Any, write: Any
) -> None:
    x = matrix(device)
    v, other, row = view(x), x.t(), x[1]
    alone = v.detach().clone()
    before = kit.numbers(x)
    write(v)
    write(alone)
    expected = list(before)
    for place, value in zip(places(view), kit.numbers(alone), strict=True):
        expected[place] = value
    assert kit.numbers(v) == kit.numbers(alone)
    assert kit.numbers(x) == expected
    assert kit.numbers(other) == [expected[r * 4 + c] for c in range(4) for r in range(3)]
    assert kit.numbers(row) == expected[4:8]


@kit.cases("view", views)
def test_base_and_views_count_writes_together(device: str, view: Any) -> None:
    x = matrix(device)
    v = view(x)
    assert (x._version, v._version) == (0, 0)
    v.add_(1)
    x.zero_()
    assert x._version == v._version == 2
    assert x.clone()._version == 0


@kit.cases("view", all_views)
def test_clones_of_views_share_nothing(device: str, view: Any) -> None:
    x = matrix(device)
    v = view(x)
    before = kit.numbers(v)
    copied = v.clone()
    x.zero_()
    assert kit.numbers(copied) == before
    copied.fill_(5)
    assert set(kit.numbers(x)) == {0.0}


@kit.cases("view", views)
def test_deep_copies_of_a_base_and_a_view_share_memory_of_their_own(device: str, view: Any) -> None:
    base = matrix(device)
    v = view(base)
    before = base.tolist(), v.tolist()
    again, seen = copy.deepcopy([base, v])
    assert (again.tolist(), seen.tolist()) == before
    seen.fill_(-3.0)
    expected = matrix(device)
    view(expected).fill_(-3.0)
    assert again.tolist() == expected.tolist()
    assert (base.tolist(), v.tolist()) == before


@kit.cases("view", all_views)
def test_native_views_alias_on_strided_backends(device: str, view: Any) -> None:
    be = bind(device)
    if not be.strided:
        pytest.skip(f"device {device!r} has no strides")
    x = matrix(device)
    v = view(x)
    if v.numel():
        distance = be.backend.data_ptr(v._a) - be.backend.data_ptr(x._a)
        assert distance == places(view)[0] * x.element_size()
    assert v.storage() == x.storage()


def test_a_source_may_overlap_its_target_exactly(device: str) -> None:
    x = matrix(device)
    before = kit.numbers(x)
    x.copy_(x)
    x[1:].copy_(x[1:])
    assert kit.numbers(x) == before
    x.add_(x)
    assert kit.numbers(x) == [2 * v for v in before]
    x.copy_(x.t().clone().t())
    assert kit.numbers(x) == [2 * v for v in before]


def test_broadcast_and_cast_writes(device: str) -> None:
    for dtype in kit.supported(device):
        x = kit.maker(device)([0] * 6, (2, 3), dtype)
        x.copy_(kit.maker(device)([1, 0, 3], (3,), fb.int64))
        x[:, 1:2] = kit.maker(device)([1.75, 2.25], (2, 1), fb.float32)
        expected = [1, 1.75, 3, 1, 2.25, 3]
        if dtype.category < 2:
            expected = [int(v) for v in expected]
        if dtype is fb.bool:
            expected = [True] * 6
        assert kit.numbers(x) == expected, dtype


@kit.cases("view", recorded_views)
def test_gradients_flow_through_views(device: str, view: Any) -> None:
    x = matrix(device, fb.float64).requires_grad_()
    assert gradcheck(lambda x: view(x) * 2, (x,))
    assert gradgradcheck(lambda x: view(x) * view(x), (x,))


def changed(v: fb.Tensor, write: str, value: fb.Tensor) -> None:
    """Write to `v` in a way that depends on `value`, a 0-d tensor."""
    if write == "add":
        v.add_(value)
    elif write == "mul":
        v.mul_(value)
    elif write == "mul self":
        v.mul_(v.clone())
    elif write == "copy":
        v.copy_(value * value)
    elif write == "zero":
        v.zero_()
    else:
        v.exp_()


@kit.level("training")
@kit.cases("view write", recorded_writes)
def test_gradients_follow_writes_through_views(device: str, view: Any, write: str) -> None:
    """The history of the base is rebased: outside of the region old, inside new."""

    def function(x: fb.Tensor, value: fb.Tensor) -> tuple[Any, ...]:
        base = x * 1.5
        v, stale = view(base), base.t()
        changed(v, write, value)
        return base * base, v * 2, stale + 1

    x = matrix(device, fb.float64).requires_grad_()
    value = kit.maker(device)([1.25], (), fb.float64).requires_grad_()
    assert gradcheck(function, (x, value))
    assert gradgradcheck(function, (x, value), fast_mode=True)


@kit.level("training")
@kit.cases("view", writable_views)
def test_a_write_makes_saved_values_stale(device: str, view: Any) -> None:
    base = matrix(device).requires_grad_() * 1
    y = (base * base).sum()
    view(base).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@kit.level("training")
def test_saved_results_are_watched_too(device: str) -> None:
    x = matrix(device).requires_grad_()
    y = x.exp()
    z = y.sum()
    y[0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@kit.level("training")
def test_writes_that_nobody_saved_are_harmless(device: str) -> None:
    x = matrix(device).requires_grad_()
    y = x + 1
    z = y * 3
    y.zero_()
    z.sum().backward()
    assert x.grad is not None
    assert set(kit.numbers(x.grad)) == {3.0}


@kit.cases("view", writable_views)
def test_recorded_writes_to_leaves_are_refused(device: str, view: Any) -> None:
    x = matrix(device).requires_grad_()
    before = kit.numbers(x)
    for target in (x, view(x)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            target.add_(1)
    assert kit.numbers(x) == before
    with fb.no_grad():
        view(x).add_(1)
    assert x.is_leaf


def test_writes_to_repeated_elements_are_refused(device: str) -> None:
    x = matrix(device)
    before = kit.numbers(x)
    for write in (lambda v: v.add_(1), lambda v: v.copy_(v.clone()), lambda v: v.__imul__(2)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write(x[:, :1].expand(3, 4))
    assert kit.numbers(x) == before


INDICES: dict[str, Any] = {
    "integers": (2, 1),
    "negative": (-1,),
    "steps": (slice(None, None, 2), slice(3, 0, None)),
    "ellipsis": (..., 2),
    "none": (None, 1),
    "list": ([2, 0],),
    "list and slice": (slice(1, None), [3, 0, 3]),
    "two lists": ([0, 2, 1], [1, 1, 3]),
    "outer lists": ([[0], [2]], [1, 3]),
    "mask": "mask",
    "row mask": "rows",
}


def indexed(device: str) -> Iterator[Any]:
    for name, index in INDICES.items():
        yield kit.case(device, fb.float32, index, id=name.replace(" ", "_"))


def _index(x: fb.Tensor, index: object) -> Any:
    if index == "mask":
        return x > 0
    if index == "rows":
        return x[:, 0] > -0.5
    return index


@kit.cases("index", indexed)
def test_indexing_and_assignment_agree_with_reference(device: str, index: object) -> None:
    made = []
    for where in (device, kit.REFERENCE):
        x = matrix(where)
        read = x[_index(x, index)]
        x[_index(x, index)] = 8.0
        once = kit.numbers(x)
        x[_index(x, index)] = read * 2
        made.append((kit.numbers(read), tuple(read.shape), once, kit.numbers(x)))
    assert made[0] == made[1]


def test_detach_and_data_share_memory(device: str) -> None:
    x = matrix(device).requires_grad_()
    y = x * 1
    y.detach().zero_()
    assert set(kit.numbers(y)) == {0.0}
    assert y._version == 1
    y.data.fill_(2)
    assert set(kit.numbers(y)) == {2.0}
