"""backward and grad: what is computed, where it is stored, and what is refused."""

import weakref

import pytest

import flambeau as fb
from flambeau._autograd.node import AccumulateGrad
from flambeau.autograd import Variable, backward, grad


def values(*tensors):
    return [None if t is None else t.tolist() for t in tensors]


def test_backward_fills_the_gradients_of_all_leaves(leaf):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * w).sum().backward()
    assert values(x.grad, w.grad) == [[3.0, 4.0], [1.0, 2.0]]


def test_backward_accumulates_until_the_gradient_is_cleared(leaf):
    x = leaf([1.0])
    (x * 2).backward()
    (x * 5).backward()
    assert x.grad.tolist() == [7.0]
    x.grad = None
    (x * 3).backward()
    assert x.grad.tolist() == [3.0]


def test_accumulation_keeps_the_gradient_tensor_where_memory_can_be_written(leaf):
    x = leaf([1.0])
    if x.device.type == "ref":
        pytest.skip("arrays of the reference device cannot be written")
    (x * 2).backward()
    held = x.grad
    (x * 5).backward()
    assert x.grad is held
    assert held.tolist() == [7.0]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_needs_no_gradient_argument(shape, device):
    x = fb.full(shape, 3.0, device=device, requires_grad=True)
    (x * x).backward()
    assert x.grad.shape == shape
    assert x.grad.item() == 6.0


def test_more_elements_need_a_gradient_argument(leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        (x * 2).backward()
    (x * 2).backward(fb.tensor([1.0, 10.0], device=x.device))
    assert x.grad.tolist() == [2.0, 20.0]


def test_the_gradient_of_a_leaf_itself_is_the_given_one(leaf, plain):
    x = leaf([1.0, 2.0])
    x.backward(plain([5.0, 6.0]))
    assert x.grad.tolist() == [5.0, 6.0]


def test_a_given_gradient_takes_the_dtype_of_its_output(leaf):
    x = leaf([1.0, 2.0])
    x.backward(fb.ones(2, dtype=fb.float64, device=x.device))
    assert x.grad.dtype is fb.float32


def test_backward_refuses_what_has_no_history(plain):
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        plain([1.0]).backward()


def test_backward_refuses_gradients_of_another_shape(leaf, plain):
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        leaf([1.0, 2.0]).backward(plain([1.0, 1.0, 1.0]))


def test_backward_refuses_gradients_on_another_device(leaf):
    with pytest.raises(RuntimeError, match="meta"):
        leaf([1.0]).backward(fb.ones(1, device="meta"))


def test_backward_refuses_another_number_of_gradients(leaf):
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        backward([x * 2, x * 3], [None])


def test_gradients_beyond_the_tensors_are_not_looked_at(leaf, plain):
    x = leaf([1.0, 2.0])
    (x * 3).backward((plain([1.0, 10.0]), plain([5.0])))
    assert values(x.grad) == [[3.0, 30.0]]


def test_several_roots_add_their_gradients(leaf, plain):
    x, y = leaf([1.0]), leaf([1.0, 2.0])
    backward([x * 2, (y * 3) * x], [None, plain([1.0, 10.0])])
    assert values(x.grad, y.grad) == [[2.0 + 3.0 + 60.0], [3.0, 30.0]]


def test_one_root_may_depend_on_another(leaf):
    x = leaf([2.0])
    y = x * x
    z = y * 3
    backward([y, z])
    assert x.grad.tolist() == [4.0 + 12.0]


def test_the_same_root_twice_counts_twice(leaf):
    x = leaf([2.0])
    y = x * 3
    backward([y, y])
    assert x.grad.tolist() == [6.0]


def test_no_roots_do_nothing():
    assert backward([]) is None


def test_grad_variables_is_the_old_name_of_grad_tensors(leaf, plain):
    x = leaf([1.0, 2.0])
    with pytest.warns(FutureWarning, match="grad_variables"):
        backward(x * 2, grad_variables=plain([1.0, 3.0]))
    assert x.grad.tolist() == [2.0, 6.0]
    with (
        pytest.warns(FutureWarning, match="grad_variables"),
        pytest.raises(RuntimeError, match="both passed to"),
    ):
        backward(x * 2, plain([1.0, 3.0]), grad_variables=plain([1.0, 3.0]))


def test_inputs_restricts_accumulation_to_the_named_tensors(leaf):
    x, y = leaf([2.0]), leaf([3.0])
    h = x * 2
    (h * y).backward(inputs=[h, y])
    assert values(x.grad, y.grad, h._grad) == [None, [4.0], [3.0]]


def test_inputs_must_not_be_empty(leaf):
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward\\(\\)` cannot be empty"):
        leaf([1.0]).backward(inputs=[])


def test_diamonds_are_visited_once_per_node(leaf):
    x = leaf([1.0])
    visits = []
    y = x * 2
    y.register_hook(lambda g: visits.append(g.tolist()))
    ((y * 3) + (y * 4) + y).backward()
    assert visits == [[8.0]]
    assert x.grad.tolist() == [16.0]


def test_integer_results_carry_no_history(leaf):
    y = leaf([2.5]).to(fb.int64) * 2
    assert not y.requires_grad


def test_a_second_backward_explains_the_freed_graph(leaf):
    x = leaf([2.0])
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="(?s)second time.*retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [4.0]


def test_a_second_backward_is_fine_where_nothing_was_saved(leaf):
    x = leaf([2.0])
    y = x + 1
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_retain_graph_keeps_the_graph_for_another_pass(leaf):
    x = leaf([2.0])
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_create_graph_records_the_backward_itself(leaf):
    x = leaf([2.0])
    (g,) = grad(x**4, x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    (k,) = grad(h, x)
    assert values(g, h, k) == [[32.0], [48.0], [48.0]]
    assert g.requires_grad
    assert not k.requires_grad


def test_create_graph_implies_retain_graph(leaf):
    x = leaf([2.0])
    y = x * x
    grad(y, x, create_graph=True)
    assert grad(y, x)[0].tolist() == [4.0]


def test_retain_graph_false_wins_over_create_graph(leaf):
    x = leaf([2.0])
    y = x * x
    grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        grad(y, x)


def test_backward_with_create_graph_gives_gradients_that_can_be_differentiated(leaf):
    x = leaf([2.0])
    (x * x * x).backward(create_graph=True)
    assert x.grad.requires_grad
    assert grad(x.grad, x)[0].tolist() == [12.0]


def test_gradients_flow_into_grad_outputs_under_create_graph(leaf):
    x, v = leaf([2.0]), leaf([3.0])
    (g,) = grad(x * x, x, v, create_graph=True)
    assert grad(g, v)[0].tolist() == [4.0]


def test_grad_returns_a_tuple_and_accumulates_nothing(leaf):
    x, w = leaf([2.0]), leaf([3.0])
    found = grad(x * w, [x, w])
    assert isinstance(found, tuple)
    assert values(*found) == [[3.0], [2.0]]
    assert x.grad is None
    assert w.grad is None


def test_grad_of_intermediate_tensors(leaf):
    x = leaf([2.0])
    y = x * 3
    assert values(*grad(y * y, [y, x])) == [[12.0], [36.0]]


def test_grad_with_respect_to_the_output_itself_is_its_gradient(leaf):
    y = leaf([2.0]) * 3
    assert values(*grad(y, y)) == [[1.0]]


def test_grad_of_a_repeated_input_is_given_twice(leaf):
    x = leaf([2.0])
    assert values(*grad(x * x, [x, x])) == [[4.0], [4.0]]


def test_grad_of_a_view_counts_only_what_went_through_it(leaf):
    x = leaf([1.0, 2.0])
    v = x[0]
    assert values(*grad((v * 2).sum(), v)) == [2.0]
    assert grad((x * 2).sum(), v, allow_unused=True) == (None,)


def test_unused_inputs_are_an_error_unless_allowed(leaf):
    x, unused = leaf([1.0]), leaf([1.0])
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        grad(x * 2, unused)
    assert grad(x * 2, unused, allow_unused=True) == (None,)
    assert values(*grad(x * 2, unused, materialize_grads=True)) == [[0.0]]
    with pytest.raises(ValueError, match="materialize_grads"):
        grad(x * 2, unused, allow_unused=False, materialize_grads=True)


def test_grad_refuses_inputs_without_requires_grad(leaf, plain):
    with pytest.raises(
        RuntimeError, match="One of the differentiated Tensors does not require grad"
    ):
        grad(leaf([1.0]) * 2, plain([1.0]))


def test_grad_refuses_an_empty_list_of_inputs(leaf):
    with pytest.raises((ValueError, RuntimeError), match="empty"):
        grad(leaf([1.0]) * 2, [])


def test_grad_refuses_outputs_without_history(leaf, plain):
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(plain([1.0]), leaf([1.0]))


def test_only_inputs_false_warns_and_is_ignored(leaf):
    x = leaf([2.0])
    with pytest.warns(FutureWarning, match="only_inputs"):
        found = grad(x * 3, x, only_inputs=False)
    assert values(*found) == [[3.0]]
    assert x.grad is None


def test_grad_skips_what_does_not_lead_to_the_inputs(leaf):
    x, w = leaf([2.0]), leaf([3.0])
    aside = w * 2
    ran = []
    aside.register_hook(lambda g: ran.append(g))
    assert values(*grad(x * aside, x)) == [[6.0]]
    assert ran == []


def test_leaf_rules(device):
    made = fb.rand(3, device=device, requires_grad=True)
    cast = made.double()
    result = made + 2
    without = fb.rand(3, device=device).double()
    switched = fb.rand(3, device=device).double().requires_grad_()
    assert [t.is_leaf for t in (made, cast, result, without, switched)] == [
        True, False, False, True, True,
    ]  # fmt: skip


def test_grad_is_none_before_the_first_backward(leaf):
    assert leaf([1.0]).grad is None


def test_only_leaves_get_a_gradient(leaf):
    x = leaf([1.0])
    y = x * 2
    y.backward()
    assert x.grad.tolist() == [2.0]
    assert y._grad is None


def test_grad_fn_names_the_operation_and_links_to_its_inputs(leaf):
    x = leaf([1.0])
    y = x * 2
    z = y + x
    assert x.grad_fn is None
    assert z.grad_fn.name() == "AddBackward0"
    (first, index), (second, _) = z.grad_fn.next_functions
    assert first is y.grad_fn
    assert index == 0
    assert isinstance(second, AccumulateGrad)
    assert second.variable is x


def test_results_require_a_gradient_if_an_operand_does(leaf, plain):
    assert (leaf([1.0]) * plain([1.0])).requires_grad
    assert not (plain([1.0]) * plain([1.0])).requires_grad


def test_requires_grad_of_a_result_cannot_be_switched_off(leaf):
    y = leaf([1.0]) * 2
    with pytest.raises(
        RuntimeError, match="you can only change requires_grad flags of leaf variables"
    ):
        y.requires_grad = False
    y.requires_grad = True


@pytest.mark.parametrize("dtype", [fb.bool, fb.uint8, fb.int32, fb.int64])
def test_only_floating_tensors_can_require_a_gradient(dtype, device):
    with pytest.raises(RuntimeError, match="floating point"):
        fb.ones(1, dtype=dtype, device=device).requires_grad_()
    with pytest.raises(RuntimeError, match="floating point"):
        fb.ones(1, dtype=dtype, device=device, requires_grad=True)


def test_detach_gives_the_same_memory_without_history(leaf):
    y = leaf([1.0, 2.0]) * 1
    d = y.detach()
    assert not d.requires_grad
    assert d.grad_fn is None
    d[0] = 9.0
    assert y.tolist() == [9.0, 2.0]
    y.data[1] = 8.0
    assert d.tolist() == [9.0, 8.0]


def test_writes_to_a_detached_tensor_are_noticed_by_backward(leaf):
    y = leaf([2.0]) * 1
    z = y * y
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_detach_in_place_makes_a_leaf(leaf):
    y = leaf([1.0]) * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad


def test_views_cannot_be_detached_in_place(leaf):
    v = (leaf([1.0, 2.0]) * 1)[0:1]
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        v.detach_()


def test_retain_grad_keeps_the_gradient_of_a_result(leaf):
    x = leaf([1.0])
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    z = y * 3
    z.backward(retain_graph=True)
    z.backward()
    assert values(y.grad, x.grad) == [[6.0], [12.0]]


def test_retain_grad_of_a_leaf_changes_nothing(leaf):
    x = leaf([1.0])
    x.retain_grad()
    assert not x.retains_grad
    x.backward()
    assert x.grad.tolist() == [1.0]


def test_retain_grad_needs_requires_grad(plain):
    with pytest.raises(
        RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"
    ):
        plain([1.0]).retain_grad()


def test_a_retained_gradient_does_not_keep_its_tensor_alive(leaf):
    x = leaf([1.0])
    y = x * 2
    y.retain_grad()
    z = y * 3
    gone = weakref.ref(y)
    del y
    assert gone() is None
    z.backward()
    assert x.grad.tolist() == [6.0]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (lambda x: fb.ones(2, device=x.device), RuntimeError),
        (lambda x: fb.ones(1, dtype=fb.float64, device=x.device), RuntimeError),
        (lambda x: fb.ones(1, device="meta"), RuntimeError),
        (lambda x: x, RuntimeError),
        (lambda x: 3, TypeError),
    ],
    ids=["shape", "dtype", "device", "itself", "type"],
)
def test_unfit_gradients_cannot_be_assigned(value, error, leaf):
    x = leaf([1.0])
    with pytest.raises(error):
        x.grad = value(x)
    assert x.grad is None


def test_gradients_can_be_assigned_and_deleted(leaf, plain):
    x = leaf([1.0])
    x.grad = plain([4.0])
    (x * 2).backward()
    assert x.grad.tolist() == [6.0]
    del x.grad
    assert x.grad is None


def test_a_leaf_switched_off_between_forward_and_backward_gets_no_gradient(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    x.requires_grad_(False)
    y.backward()
    assert values(x.grad, w.grad) == [None, [1.0]]


def test_a_leaf_detached_between_forward_and_backward_gets_no_gradient(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    x.detach_()
    y.backward()
    assert values(x.grad, w.grad) == [None, [1.0]]


def test_replacing_data_after_the_forward_pass_does_not_change_its_gradient(leaf, plain):
    x, w = leaf([2.0]), plain([3.0])
    y = x * x * w
    x.data = plain([50.0])
    w.data = plain([70.0])
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_variable_is_a_tensor(plain):
    t = plain([1.0])
    v = Variable(t, requires_grad=True)
    assert type(v) is fb.Tensor
    assert v.requires_grad
    assert isinstance(v, Variable)
    assert isinstance(t, Variable)
    assert not isinstance(3, Variable)


def test_variable_shares_memory_and_leaves_the_tensor_alone(leaf):
    x = leaf([1.0])
    v = Variable(x)
    assert not v.requires_grad
    v[0] = 5.0
    assert x.tolist() == [5.0]
    assert x.requires_grad


def test_variable_refuses_what_is_no_tensor():
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        Variable(3)


def test_variable_warns_that_volatile_has_no_effect(plain):
    with pytest.warns(UserWarning, match="volatile was removed"):
        v = Variable(plain([1.0]), requires_grad=True, volatile=True)
    assert v.requires_grad


def test_an_error_in_backward_leaves_recording_as_it_was(leaf):
    x = leaf([1.0])
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).backward()
    assert fb.is_grad_enabled()
    assert (x * 2).requires_grad


def test_a_number_before_a_tensor_is_as_one_behind_it(leaf):
    for before, behind in (
        (lambda x: 3 * x, lambda x: x * 3),
        (lambda x: 0.1 + x, lambda x: x + 0.1),
        (lambda x: True + x, lambda x: x + True),
        (lambda x: 2j * x, lambda x: x * 2j),
    ):
        a, b = leaf([0.1, -2.0, 3.0]), leaf([0.1, -2.0, 3.0])
        ours, theirs = before(a), behind(b)
        assert ours.dtype is theirs.dtype and ours.tolist() == theirs.tolist()
        assert type(ours.grad_fn) is type(theirs.grad_fn)
        assert len(ours.grad_fn.next_functions) == len(theirs.grad_fn.next_functions)
        ours.abs().sum().backward()
        theirs.abs().sum().backward()
        assert a.grad.tolist() == b.grad.tolist()
