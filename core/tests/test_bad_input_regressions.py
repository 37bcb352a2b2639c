"""Calls that once ended in a wrong result or in the wrong exception."""

from __future__ import annotations

import math

import pytest

import flambeau as fb


@pytest.mark.parametrize("number", [1.5, object()])
def test_an_index_of_another_type_is_an_index_error(number):
    with pytest.raises(IndexError, match="only integers"):
        fb.ones(3)[number]


def test_a_0d_index_tensor_selects_a_view():
    x = fb.zeros(3)
    x[fb.tensor(1)].add_(2)
    assert x.tolist() == [0, 2, 0]


def test_an_integer_tensor_has_no_negative_powers():
    with pytest.raises(RuntimeError, match="negative integer powers"):
        fb.tensor([2]) ** -1


@pytest.mark.parametrize("call", [fb.sort, lambda x: fb.topk(x, 1), lambda x: fb.max(x, 0)])
def test_complex_numbers_have_no_order(call):
    with pytest.raises(RuntimeError, match="complex"):
        call(fb.ones(3, dtype=fb.complex64))


def test_a_dtype_without_a_kernel_is_not_implemented():
    with pytest.raises(NotImplementedError):
        fb.ones(2, dtype=fb.complex64).ceil()


def test_arange_takes_its_end_by_name():
    assert fb.arange(end=3).tolist() == [0, 1, 2]


def test_arange_wants_finite_ends():
    with pytest.raises(RuntimeError, match="unsupported range"):
        fb.arange(math.nan)


def test_scatter_multiplies():
    index = fb.tensor([0, 0, 2])
    found = fb.full((3,), 2.0).scatter(0, index, fb.tensor([3.0, 5.0, 7.0]), reduce="multiply")
    assert found.tolist() == [30, 2, 14]


def test_methods_of_several_results_give_them_all():
    q = fb.eye(2)
    assert q.slogdet().logabsdet.item() == 0
    assert q.geqrf().tau.tolist() == [0, 0]


def test_norm_as_a_method_takes_a_dtype():
    assert fb.ones(4).norm(2, dtype=fb.float64).dtype is fb.float64


def test_a_place_that_is_filled_twice_passes_its_gradient_on_once():
    value = fb.tensor(1.0, requires_grad=True)
    fb.zeros(3).index_fill(0, fb.tensor([1, 1]), value).sum().backward()
    assert value.grad.item() == 1


def test_the_slope_of_a_standard_deviation_of_zero_is_zero():
    x = fb.ones(3, requires_grad=True)
    x.std().backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [math.inf, -math.inf])
def test_an_extreme_norm_of_no_elements_is_refused(p):
    with pytest.raises(RuntimeError, match="no identity"):
        fb.ones(2, 0).norm(p, dim=1)


def test_a_complex_number_fills_a_bool_tensor_with_whether_it_is_zero():
    assert fb.zeros(1, dtype=fb.bool).fill_(1j).tolist() == [True]


@pytest.mark.parametrize("call", [fb.abs_, fb.is_complex, fb.zeros, lambda x: fb.ones(2).expand(x)])
def test_what_is_no_tensor_or_size_is_a_type_error(call):
    with pytest.raises(TypeError, match="must be"):
        call(["a"])


def test_integers_can_be_cast_to_unsigned_ones():
    assert fb.can_cast(fb.int8, fb.uint8)


def test_a_list_of_tensors_keeps_their_dtype():
    assert fb.tensor([fb.tensor(1.0, dtype=fb.float64)]).dtype is fb.float64


@pytest.mark.parametrize("height", [3, 1])
def test_places_of_a_leaf_that_share_memory_have_equal_parts_of_the_gradient(height):
    x = fb.tensor([1.0, 2.0, 3.0]).expand(height, 3).detach().requires_grad_()
    x.unfold(1, 2, 1).square().sum().backward()
    assert x.grad.tolist() == [[2, 8, 6]] * height


@pytest.mark.parametrize(
    "call",
    [
        lambda: fb.zeros(2).put([], fb.ones(2)),
        lambda: fb.repeat([]),
        lambda: fb.layer_norm(fb.ones(2), [2], [1.0, 1.0]),
        lambda: fb.ones(3).add([-7], alpha=2),
    ],
)
def test_lists_in_the_place_of_tensors_are_type_errors(call):
    with pytest.raises(TypeError, match="must be Tensor"):
        call()
