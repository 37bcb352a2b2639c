"""One value written where a mask holds is written as at its places: recorded, and in plans."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb


@st.composite
def writes(draw: Any) -> tuple[list[int], list[Any], int]:
    """A shape, a key of which one item is the rank of a mask, and its place."""
    shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    rank = draw(st.integers(1, len(shape)))
    first = draw(st.integers(0, len(shape) - rank))
    key: list[Any] = []
    for n in shape[:first]:
        key += draw(st.sampled_from([[slice(None)], [slice(0, 2)], [None, slice(None)]]))
        if n and draw(st.booleans()):
            key[-1] = draw(st.integers(-n, n - 1))
    if first and draw(st.booleans()):
        key = [Ellipsis] if draw(st.booleans()) else [*key, Ellipsis]
    place = len(key)
    key.append(tuple(shape[first : first + rank]))
    rest = shape[first + rank :]
    if Ellipsis in key:
        key += [draw(st.sampled_from([slice(None), slice(1, None)])) for _ in rest]
    else:
        for n in rest[: draw(st.integers(0, len(rest)))]:
            key.append(draw(st.integers(-n, n - 1)) if n else slice(None))
        key += draw(st.sampled_from([[], [Ellipsis], [None], [Ellipsis, None]]))
    return shape, key, place


VALUES = [2.5, -3, True, fb.tensor(4.0), fb.tensor([5]), fb.tensor([[6.0]], dtype=fb.float64)]


@settings(max_examples=60, deadline=None)
@given(writes(), st.sampled_from(VALUES), st.integers(0, 2**12))
def test_a_mask_writes_as_its_places_do(
    written: tuple[list[int], list[Any], int], value: Any, seed: int
) -> None:
    shape, key, place = written
    fb.manual_seed(seed)
    x, mask = fb.randn(shape), fb.rand(key[place]) > 0.5

    def by_mask(x: fb.Tensor, mask: fb.Tensor) -> fb.Tensor:
        y = x * 2
        y[(*key[:place], mask, *key[place + 1 :])] = value
        return y * y

    expected = x * 2
    places = mask.nonzero(as_tuple=True)
    number = value.item() if isinstance(value, fb.Tensor) else value
    # Integers are applied first: PyTorch's index tensors do not broadcast with them.
    whole = (*key[:place], *[slice(None)] * mask.dim(), *key[place + 1 :])
    region = expected[whole]
    after = _after(key, place, region, mask)
    first = region.dim() - after - mask.dim()
    region[(*[slice(None)] * first, *places)] = float(number)
    kept = fb.ones_like(x)
    kept[whole][(*[slice(None)] * first, *places)] = 0.0

    assert fb.equal(by_mask(x, mask), expected * expected)
    compiled = fb.compile(by_mask)
    for _ in range(3):
        assert fb.equal(compiled(x, mask), expected * expected)
    assert compiled.explain().replays == 1

    leaf = x.clone().requires_grad_()

    def slope(leaf: fb.Tensor, mask: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
        y = by_mask(leaf, mask)
        return y.detach(), fb.autograd.grad(y.sum(), leaf)[0]

    steep = fb.compile(slope)
    for run in (slope, steep, steep, steep):
        y, dx = run(leaf, mask)
        assert fb.equal(y, expected * expected)
        assert fb.equal(dx, 8 * x * kept)
    assert steep.explain().replays == 1


def _after(key: list[Any], place: int, region: fb.Tensor, mask: fb.Tensor) -> int:
    if Ellipsis in key[:place]:
        return len(key) - place - 1
    return region.dim() - mask.dim() - sum(type(k) is not int for k in key[:place])


def test_a_plan_reads_the_mask_anew() -> None:
    def fill(x: fb.Tensor, mask: fb.Tensor) -> fb.Tensor:
        y = x.clone()
        y[mask] = -1.0
        return y

    compiled = fb.compile(fill)
    x = fb.arange(6.0).reshape(3, 2)
    for rows in ([True, False, True], [False, False, True], [False, True, False], [True] * 3):
        mask = fb.tensor(rows)
        assert fb.equal(compiled(x, mask), fill(x, mask))
    assert compiled.explain().replays == 2


@pytest.mark.parametrize("value", [fb.tensor(3.0), fb.tensor([[3.0]])])
def test_the_value_that_is_written_has_a_gradient(value: fb.Tensor) -> None:
    x = fb.zeros(3, 2, requires_grad=True)
    v = value.clone().requires_grad_()
    y = x * 1
    y[fb.tensor([True, False, True])] = v
    dx, dv = fb.autograd.grad((y * y).sum(), (x, v))
    assert dv.shape == v.shape
    assert dv.sum().item() == 24.0
    assert not dx.any()


def test_what_no_mask_fits_is_refused_as_before() -> None:
    y = fb.zeros(3, 2, requires_grad=True) * 1
    with pytest.raises(IndexError, match="The shape of the mask"):
        y[fb.tensor([True, False])] = 1.0
    with pytest.raises(IndexError, match="too many indices"):
        y[fb.ones(3, 2, 1) > 0] = 1.0
    repeated = (fb.zeros(3, 1, requires_grad=True) * 1).expand(3, 2)
    repeated[fb.tensor([True, False, True])] = 1.0
    assert repeated[:, 0].tolist() == [1.0, 0.0, 1.0]
    same = fb.tensor([True, False, True])
    same[same] = False
    assert not same.any()
    view = fb.zeros(2, 3, requires_grad=True).clone().t()
    view[fb.tensor([True, False, True])] = 7.0
    assert view.stride() == (1, 3)
    assert view.tolist() == [[7.0, 7.0], [0.0, 0.0], [7.0, 7.0]]
