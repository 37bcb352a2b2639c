"""`as_strided_scatter`, `nonzero_static` and tensors of given strides agree with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import DEVICES, assert_same, check_error, ours_of  # noqa: E402

REGIONS = [
    ((2, 2), (1, 2), 1),
    ((3,), (4,), None),
    ((), (), 2),
    ((0, 2), (1, 1), 0),
    ((2,), (3,), 0),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("region", REGIONS)
def test_regions_by_strides_are_replaced(region: Any, device: str) -> None:
    size, stride, offset = region
    x = torch.arange(12.0, dtype=torch.float64).sin().reshape(3, 4)
    src = torch.ones(size, dtype=torch.float64) * 3
    expected = torch.as_strided_scatter(x, src, size, stride, offset)
    ours = ours_of(x, device), ours_of(src, device)
    assert_same(fb.as_strided_scatter(*ours, size, stride, offset), expected)
    # PyTorch's own derivatives are not those of differences.
    for operand in ours:
        operand.requires_grad_()
    for test in (fb.autograd.gradcheck, fb.autograd.gradgradcheck):
        assert test(lambda x, src: fb.as_strided_scatter(x, src, size, stride, offset), ours)


def test_regions_that_lie_outside_or_have_another_shape_are_refused() -> None:
    check_error(lambda t, x, src: t.as_strided_scatter(x, src, (2,), (4,)), ((4,), (2,)))
    check_error(lambda t, x, src: t.as_strided_scatter(x, src, (3,), (1,)), ((4,), (2,)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [0, 1, 3, 7])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (0, 2)])
def test_as_many_places_of_nonzeros_as_were_asked_for(
    shape: tuple[int, ...], size: int, device: str
) -> None:
    x = (torch.arange(6)[: max(1, torch.Size(shape).numel())] % 3)[: torch.Size(shape).numel()]
    x = x.reshape(shape)
    expected = torch.nonzero_static(x, size=size, fill_value=-5)
    assert_same(fb.nonzero_static(ours_of(x, device), size=size, fill_value=-5), expected)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (0, 2, 3, 1)])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (2, 0, 1, 3)])
def test_permuted_tensors_have_the_strides_of_pytorch(
    shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    expected = torch.empty_permuted(shape, order)
    found = fb.empty_permuted(shape, order)
    assert (tuple(found.shape), found.stride()) == (tuple(expected.shape), expected.stride())


@pytest.mark.parametrize("order", [(0, 0), (0, -1), (0,), (0, 2)])
def test_orders_that_name_no_permutation_are_refused(order: tuple[int, ...]) -> None:
    check_error(lambda t: t.empty_permuted((2, 3), order), ())


def test_new_tensors_of_given_strides_take_after_the_old() -> None:
    for t in (fb, torch):
        made = t.tensor([1], dtype=t.int16).new_empty_strided((2, 3), (1, 4))
        assert (made.stride(), made.dtype) == ((1, 4), t.int16)
        assert t.zeros(1).new_empty_strided((2,), (1,), dtype=t.float64).dtype is t.float64
