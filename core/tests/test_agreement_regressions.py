"""Differences from PyTorch that random programs found, each as the smallest such program."""

from __future__ import annotations

import gc
import weakref

import pytest

import flambeau as fb

NO_GRAD = "created in no_grad mode"
LEAF = "leaf Variable that requires grad"
OVERLAP = "refer to a single memory location"
STALE = "modified by an inplace operation"


def backward(*tensors):
    fb.autograd.backward(tensors, [fb.ones_like(t.detach()) for t in tensors])


def test_view_made_under_no_grad_passes_no_gradient(leaf):
    x = leaf([1.0, 2.0])
    with fb.no_grad():
        v = x[1:]
    backward(v * 3, x.sum())
    assert x.grad.tolist() == [1.0, 1.0]


def test_view_of_a_view_made_under_no_grad_has_a_node_that_leads_nowhere(leaf):
    x = leaf([1.0, 2.0])
    with fb.no_grad():
        v = x[:]
    w = v[1:]
    assert v.is_leaf and not w.is_leaf and w.requires_grad
    assert w.grad_fn.next_functions == ((None, 0),)
    backward(w)
    assert x.grad is None


def test_view_made_under_no_grad_is_refused_as_a_root(leaf):
    x = leaf([1.0])
    with fb.no_grad():
        v = x[:]
    assert v.requires_grad
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        v.backward()


def test_recorded_write_to_a_view_of_a_view_made_under_no_grad_is_refused(leaf):
    x = leaf([[1.0, 2.0]]) * 2
    with fb.no_grad():
        v = x.select(0, 0)
    with pytest.raises(RuntimeError, match=NO_GRAD):
        v.select(0, 1).mul_(2)


def test_stale_view_made_under_no_grad_is_refused_by_every_view_of_it(leaf):
    x = leaf([1.0, 2.0, 3.0]) * 1
    with fb.no_grad():
        v = x.view(-1)
    x.mul_(2)
    for use in (
        lambda: v[0:1],
        lambda: v.as_strided((1,), (1,), 0),
        lambda: v.unfold(0, 1, 1),
        lambda: v.sum(),
    ):
        with pytest.raises(RuntimeError, match=NO_GRAD):
            use()


def test_view_of_a_stale_view_of_several_is_refused(leaf):
    x = leaf([1.0, 2.0])
    first, _ = x.unbind(0)
    with fb.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        first.view(1)


def test_stale_special_view_is_refused_before_its_other_arguments(leaf):
    x = leaf([[1.0, 2.0]]) * 1
    with fb.no_grad():
        v = x.view(-1)
    x.zero_()
    for use in (lambda: v.diagonal(1, 0, 1), lambda: v.amin(5), lambda: v.select(7, 0)):
        with pytest.raises(RuntimeError, match=NO_GRAD):
            use()


def test_positions_of_extrema_do_not_follow_a_stale_view(leaf):
    x = leaf([1.0, 3.0, 2.0])
    with fb.no_grad():
        v = x.view(-1)
        v.mul_(2)
    assert v.argmax().item() == 1 and v.argmin().item() == 0


def test_view_taken_before_requires_grad_passes_no_gradient(plain):
    x = plain([1.0, 2.0])
    v = x[1:]
    x.requires_grad_()
    w = v.view(1, 1)
    assert v.is_leaf and not w.is_leaf
    backward(w)
    assert x.grad is None and v.grad is None


def test_view_made_a_leaf_receives_the_gradient_of_its_views(plain):
    x = plain([1.0, 2.0, 3.0])
    v = x[1:]
    v.requires_grad_()
    w = v[:1]
    assert v.is_leaf and not w.is_leaf and not x.requires_grad
    backward(w * 2)
    assert v.grad.tolist() == [2.0, 0.0] and x.grad is None


def test_view_of_a_view_made_a_leaf_loses_its_history_by_a_write_to_the_base(plain):
    x = plain([1.0, 2.0, 3.0])
    v = x[1:]
    v.requires_grad_()
    w = v[:1]
    x += 1
    backward(w)
    assert v.grad is None


def test_view_made_a_leaf_follows_its_base_once_that_is_written_to(plain, leaf):
    x, w = plain([1.0, 2.0]), leaf([3.0, 4.0])
    v = x[:1]
    v.requires_grad_()
    x.mul_(w)
    assert not v.is_leaf
    backward(v)
    assert w.grad.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("cut", [lambda x: x.detach_(), lambda x: x.requires_grad_(False)])
def test_view_keeps_its_history_when_its_base_loses_it(leaf, cut):
    x = leaf([1.0, 2.0])
    v = x[1:]
    w = v.view(1, 1)
    cut(x)
    assert v.requires_grad and not v.is_leaf and w.requires_grad and not w.is_leaf
    assert not x[1:].requires_grad
    backward(v, w)
    assert x.grad is None


def test_view_of_a_result_keeps_the_gradient_after_detach_in_place(leaf):
    x = leaf([1.0, 2.0])
    y = x * 3
    v = y[1:]
    y.detach_()
    assert y.is_leaf and not y.requires_grad
    backward(v, v[0:])
    assert x.grad.tolist() == [0.0, 6.0]


def test_view_keeps_the_base_history_it_was_made_with(leaf):
    x = leaf([1.0, 2.0])
    y = x * 3
    v = y[1:]
    y.detach_()
    y.requires_grad_()
    backward(v)
    assert x.grad.tolist() == [0.0, 3.0] and y.grad is None


def test_detaching_in_place_frees_the_graph(leaf):
    y = leaf([1.0, 2.0]) * 3
    first = y[0]
    graph = weakref.ref(y.grad_fn)
    del first
    y.detach_()
    gc.collect()
    assert graph() is None


def test_hook_on_a_view_sees_the_gradient_that_passes_through_a_view_of_it(leaf):
    x = leaf([1.0, 2.0, 3.0])
    v = x[1:]
    seen = []
    v.register_hook(lambda grad: seen.append(grad.tolist()))
    backward(v[0] * 2)
    assert seen == [[2.0, 0.0]]


def test_recorded_write_to_a_view_of_a_leaf_is_refused_after_the_leaf_was_switched_off(leaf):
    x = leaf([[1.0], [2.0]])
    v = x.diagonal(0, 0, 1)
    x.requires_grad_(False)
    with pytest.raises(RuntimeError, match=LEAF):
        v.mul_(2)


def test_a_long_chain_of_views_needs_no_recursion(leaf):
    x = leaf([1.0])
    v = x
    for _ in range(3000):
        v = v.view(1)
    backward(v)
    assert x.grad.tolist() == [1.0]


def test_as_strided_of_a_view_drops_gradients_of_what_the_view_does_not_see(leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    v = x[1:].as_strided((2,), (1,), 1)
    assert v.tolist() == [2.0, 3.0]
    fb.autograd.backward(v, fb.tensor([0.25, 0.5], device=x.device))
    assert x.grad.tolist() == [[0.0, 0.0], [0.5, 0.0], [0.0, 0.0]]


def test_as_strided_of_a_view_follows_the_whole_base_after_a_write(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    v = y[1:].as_strided((2,), (1,), 0)
    y.mul_(2)
    backward(v)
    assert x.grad.tolist() == [2.0, 2.0, 0.0]


def test_write_through_as_strided_of_a_view_reaches_the_whole_base(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[1:].as_strided((2,), (1,), 0).zero_()
    assert y.tolist() == [0.0, 0.0, 3.0]
    backward(y)
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


def test_leaf_that_was_written_to_after_use_is_refused_in_backward(leaf):
    x = leaf([1.0])
    y = x * 1
    x.requires_grad_(False)
    x.copy_(y)
    with pytest.raises(RuntimeError, match="moved into the graph interior"):
        y.backward()


def test_leaf_switched_off_receives_nothing_and_its_results_keep_their_history(leaf):
    x = leaf([1.0])
    y = x * 1
    x.requires_grad_(False)
    assert y.requires_grad
    y.backward()
    assert x.grad is None


def test_second_backward_through_a_written_region_is_refused(plain, leaf):
    x, w = plain([1.0, 2.0]), leaf(3.0)
    x[1:1] = w
    backward(x)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        backward(x)


def test_write_to_the_indices_of_a_maximum_is_noticed(leaf):
    for keepdim in (False, True):
        x = leaf([[1.0, 3.0], [2.0, 0.0]])
        values, indices = x.max(1, keepdim=keepdim)
        indices.zero_()
        with pytest.raises(RuntimeError, match=STALE):
            backward(values)


def test_write_to_an_operand_that_promotion_had_cast_is_noticed(plain, leaf):
    x = leaf([1.0, 2.0], dtype=fb.float64)
    numbers = plain([3, 4])
    y = x * numbers
    numbers.zero_()
    with pytest.raises(RuntimeError, match=STALE):
        backward(y)


def test_promoting_write_to_a_saved_result_is_noticed(leaf):
    x, w = leaf([0.5, -1.0]), leaf([1.0, 1.0], dtype=fb.float64)
    y = (x * 1).sigmoid()
    y += w
    with pytest.raises(RuntimeError, match=STALE):
        backward(y)


def test_using_a_saved_result_in_a_recorded_backward_does_not_hide_later_writes(leaf):
    x = leaf([0.5, -1.0])
    y = x.sigmoid()
    (first,) = fb.autograd.grad(y.sum(), x, create_graph=True)
    fb.autograd.grad((first * first).sum(), x, retain_graph=True)
    with fb.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match=STALE):
        backward(y)


def test_product_of_two_views_made_under_no_grad_has_no_gradient(leaf):
    x = leaf([1.0, 2.0])
    with fb.no_grad():
        v = x.view(-1)
    product = v @ v
    assert product.requires_grad and not product.is_leaf
    backward(product, x.sum())
    assert x.grad.tolist() == [1.0, 1.0]


def test_gradient_of_a_mean_of_everything_has_the_shape_of_the_input(leaf):
    x = leaf([[1.0], [2.0]])
    x.mean().backward(fb.tensor(0.5, device=x.device))
    assert x.grad.tolist() == [[0.25], [0.25]]


def test_assigning_a_tensor_to_itself_with_a_new_dimension_changes_nothing(plain):
    x = plain([[1, 2], [3, 4]])
    x[None, :] = x
    assert x.tolist() == [[1, 2], [3, 4]]


def test_assigning_a_row_of_a_matrix_to_all_of_it_repeats_the_row(plain):
    x = plain([[1.0, 2.0], [3.0, 4.0]])
    x[:] = x[1]
    assert x.tolist() == [[3.0, 4.0], [3.0, 4.0]]


def test_copying_a_row_of_a_matrix_to_all_of_it_is_refused(plain):
    x = plain([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match=OVERLAP):
        x.copy_(x[1])
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_expanded_memory_may_be_assigned_to_itself(plain):
    x = plain([1.0]).expand(3)
    x[:] = x
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_alias_may_be_copied_to_what_it_aliases_whatever_its_dimensions_of_size_one(plain):
    x = plain([[1.0, 2.0], [3.0, 4.0]])[:1, None]
    x.detach().copy_(x)
    assert x.tolist() == [[[1.0, 2.0]]]


@pytest.mark.parametrize("value", [5.0, [5.0], [[[5.0]]]])
def test_mask_takes_one_value_of_any_dtype_and_rank(plain, value):
    x = plain([1, 2, 3])
    x[plain([True, False, True])] = plain(value)
    assert x.tolist() == [5, 2, 5]


def test_value_assigned_by_a_mask_receives_its_gradient_in_its_own_dtype(leaf):
    x, w = leaf([1.0, 2.0, 3.0], dtype=fb.float64), leaf([5.0])
    y = x * 1
    y[fb.tensor([True, False, True], device=x.device)] = w
    backward(y)
    assert w.grad.tolist() == [2.0] and w.grad.dtype is fb.float32
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_index_tensors_take_no_value_of_another_dtype(plain):
    x = plain([1.0, 2.0])
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[plain([0, 1])] = plain(3)
    assert x.tolist() == [1.0, 2.0]


def test_several_masks_take_no_value_of_another_dtype(plain):
    x = plain([[1.0, 2.0], [3.0, 4.0]])
    mask = plain([True, False])
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[mask, mask] = plain(3)


def test_index_out_of_range_writes_nothing(plain):
    x = plain([1.0])
    with pytest.raises(IndexError):
        x[plain([0, 1])] = 5.0
    assert x.tolist() == [1.0] and x._version == 0


def test_write_by_index_into_expanded_memory_keeps_what_was_written(plain):
    x = plain([1.0, 2.0, 3.0])
    x.expand(2, 3)[plain([True, False])] = plain([4.0, 5.0, 6.0])
    assert x.tolist() == [4.0, 5.0, 6.0]


def test_of_several_values_for_one_place_of_expanded_memory_the_last_stays(plain):
    x = plain([[1.0], [2.0]])
    x.expand(2, 3)[:, plain([0, 2])] = plain([[3.0, 4.0], [5.0, 6.0]])
    assert x.tolist() == [[4.0], [6.0]]


def test_write_by_index_into_expanded_memory_passes_the_gradient_of_what_stays(leaf):
    x, w = leaf([1.0, 2.0]), leaf([3.0])
    y = x * 1
    y.expand(3, 2)[fb.tensor([0], device=x.device), :1] = w
    assert y.tolist() == [3.0, 2.0]
    backward(y)
    assert x.grad.tolist() == [0.0, 1.0] and w.grad.tolist() == [1.0]


def test_stale_view_may_be_copied_into_a_tensor_without_history(plain, leaf):
    y = leaf(2.0) * 1
    with fb.no_grad():
        v = y.view(())
    y.add_(3)
    target = plain([True, False])
    target.copy_(v)
    assert target.tolist() == [True, True]


@pytest.fixture
def turned(device):
    """A transposed matrix, whose elements do not lie in row-major order where strides exist."""
    return fb.arange(6.0, device=device).view(2, 3).t()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fb.cat([x, x], 1),
        lambda x: fb.stack([x, x], 1),
        lambda x: x.cumsum(0),
        lambda x: x.cumprod(1),
        lambda x: x.softmax(0),
        lambda x: x.log_softmax(1),
        lambda x: x.expand(2, 3, 2).sum(0),
        lambda x: x.expand(2, 3, 2).mean(0),
        lambda x: x.expand(2, 3, 2).prod(0),
        lambda x: x.expand(2, 3, 2).amax(0),
        lambda x: (x.expand(2, 3, 2) > 1).any(0),
        lambda x: x.expand(2, 3, 2).logsumexp(0),
        lambda x: x.t()[:1].expand(2, 3).clone(),
        lambda x: x.t()[:1].expand(2, 3).to(fb.float64),
    ],
)
def test_result_is_row_major_whatever_the_order_of_the_operand(turned, function):
    y = function(turned)
    assert y.is_contiguous()
    flat = y.flatten()
    flat.zero_()  # a view of `y`, as of every row-major tensor
    assert not y.any() and y._version == 1


def test_reshaped_copy_is_no_view(turned):
    y = turned.reshape(-1)
    assert not y._is_view()
    y.zero_()
    assert turned.sum().item() == 15.0


def test_extrema_along_a_dimension_are_no_views(leaf):
    values, indices = leaf([[1.0, 2.0]]).max(1)
    assert not values._is_view() and not indices._is_view()
    values.detach_()
    assert values.is_leaf


def test_new_dimensions_of_size_one_have_the_stride_that_fits(device):
    x = fb.zeros(3, 2, device=device)
    assert x.expand(1, 3, 2).stride() == (6, 2, 1)
    assert x.expand(1, 4, 3, 2).stride() == (0, 0, 2, 1)


def test_empty_vectors_are_joined_along_any_dimension(plain):
    assert fb.cat([plain([]), plain([])], 2).shape == (0,)


def test_least_of_no_elements_is_refused(device):
    for function in (fb.amin, fb.amax):
        with pytest.raises(IndexError, match="non-zero size"):
            function(fb.zeros(0, 0, device=device), 0)


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64, fb.int64])
def test_xlogy_of_a_number_is_xlogy_of_a_tensor_of_it(dtype):
    y = fb.tensor([1, 4, 0], dtype=dtype)
    for x in (0.0, 2.0):
        alike = fb.xlogy(fb.full((3,), x, dtype=fb.promote_types(dtype, fb.float32)), y)
        assert fb.xlogy(x, y).tolist() == alike.tolist()
        assert fb.xlogy(x, y).dtype is (dtype if dtype.is_floating_point else fb.float32)


@pytest.mark.parametrize("device", ["cpu", "ref"])
@pytest.mark.parametrize("dtype", [fb.float64, fb.float32, fb.float16, fb.bfloat16])
def test_nan_has_a_sign(dtype, device):
    nan = float("nan")
    x = fb.tensor([nan, -nan, -0.0, 0.0, -1.0], dtype=dtype, device=device)
    assert x.signbit().tolist() == [False, True, True, False, True]
    assert x[::2].signbit().tolist() == [False, True, True]
    assert fb.copysign(fb.ones_like(x), x).tolist() == [1, -1, -1, 1, -1]


@pytest.mark.parametrize("name", ["norm", "sum", "mean", "amax"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_a_reduction_of_a_transposed_matrix_has_the_bits_of_the_other_dimension(
    name, keepdim, device
):
    x = fb.randn(128, 30, generator=fb.Generator().manual_seed(0)).to(device)
    reduce = getattr(fb, name)
    across = reduce(x, dim=0, keepdim=keepdim)
    flipped = reduce(x.t(), dim=1, keepdim=keepdim)
    assert flipped.is_contiguous()
    assert flipped.flatten().tolist() == across.flatten().tolist()
    assert reduce(x.t(), dim=0, keepdim=keepdim).flatten().tolist() == (
        reduce(x, dim=1, keepdim=keepdim).flatten().tolist()
    )
