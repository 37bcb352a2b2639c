"""Hooks on tensors, leaves and nodes: when they run, what they see and what they may change."""

import gc
import weakref

import pytest

import flambeau as fb
from flambeau.autograd import grad
from flambeau.utils.hooks import RemovableHandle


@pytest.fixture
def x(device):
    return fb.tensor([1.0, 2.0], device=device, requires_grad=True)


def like(x, data):
    return fb.tensor(data, device=x.device)


def test_a_hook_may_replace_the_gradient_until_it_is_removed(x):
    handle = x.register_hook(lambda g: g * 2)
    x.backward(like(x, [1.0, 2.0]))
    assert x.grad.tolist() == [2.0, 4.0]
    handle.remove()
    handle.remove()
    x.backward(like(x, [1.0, 2.0]))
    assert x.grad.tolist() == [3.0, 6.0]


def test_a_hook_that_returns_none_keeps_the_gradient(x):
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_handle_is_a_block_after_which_the_hook_is_gone(x):
    with x.register_hook(lambda g: g * 5) as handle:
        assert isinstance(handle, RemovableHandle)
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_a_hook_sees_the_sum_of_all_contributions_once(x):
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5.0, 5.0]]


def test_a_hook_of_a_result_changes_what_flows_on(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    assert x.grad.tolist() == [60.0, 60.0]


def test_hooks_run_in_order_of_registration_each_on_the_result_of_the_last(x):
    y = x * 1
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]


def test_hooks_of_results_run_before_those_of_what_they_came_from(x):
    order = []
    y = x * 2
    x.register_hook(lambda g: order.append("x"))
    y.register_hook(lambda g: order.append("y"))
    y.sum().backward()
    assert order == ["y", "x"]


def test_the_same_hook_registered_twice_runs_twice(x):
    double = lambda g: g * 2  # noqa: E731
    x.register_hook(double)
    x.register_hook(double)
    x.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_a_hook_may_remove_itself(x):
    calls = []

    def once(g):
        calls.append(g)
        handle.remove()

    handle = x.register_hook(once)
    x.sum().backward()
    x.sum().backward()
    assert len(calls) == 1


def test_hooks_apply_to_what_grad_returns(x):
    x.register_hook(lambda g: g * 10)
    assert grad((x * 2).sum(), x)[0].tolist() == [20.0, 20.0]


def test_a_hook_of_one_output_of_several_sees_its_gradient_only(x):
    values, _ = x.sort(descending=True)
    first, _ = values.split([1, 1])
    seen = []
    values.register_hook(lambda g: seen.append(g.tolist()))
    (first * 3).sum().backward()
    assert seen == [[3.0, 0.0]]


def test_a_hook_registered_before_an_in_place_write_keeps_its_place(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [60.0, 60.0]


def test_hooks_under_create_graph_are_differentiated(x):
    with x.register_hook(lambda g: g * x):
        (g,) = grad((x * x).sum(), x, create_graph=True)
    assert g.tolist() == [2.0, 8.0]
    assert grad(g.sum(), x)[0].tolist() == [4.0, 8.0]


def test_retained_gradients_are_those_after_the_hooks(x):
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert y.grad.tolist() == [10.0, 10.0]


@pytest.mark.parametrize(
    ("hook", "error", "message"),
    [
        (lambda g: fb.ones(3, device=g.device), RuntimeError, "changed the size of value"),
        (lambda g: g.double(), RuntimeError, "changed the type of value"),
        (lambda g: 3, TypeError, "must return a Tensor or None, got int"),
        (lambda g: 1 / 0, ZeroDivisionError, "division by zero"),
    ],
    ids=["shape", "dtype", "type", "raises"],
)
def test_unfit_results_and_errors_of_hooks_surface(hook, error, message, x):
    x.register_hook(hook)
    with pytest.raises(error, match=message):
        x.sum().backward()
    assert x.grad is None
    assert fb.is_grad_enabled()


def test_hooks_need_a_tensor_that_requires_a_gradient(x):
    with pytest.raises(
        RuntimeError, match="cannot register a hook on a tensor that doesn't require"
    ):
        x.detach().register_hook(print)


def test_hooks_do_not_keep_their_tensor_alive(x):
    gc.collect()
    gc.disable()
    try:
        y = x * 2
        y.register_hook(lambda g: g)
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_a_post_accumulate_hook_sees_the_leaf_with_its_gradient(x):
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    x.sum().backward()
    assert seen == [(True, [2.0, 2.0]), (True, [5.0, 5.0])]


def test_a_post_accumulate_hook_may_consume_the_gradient(x):
    def step(t):
        with fb.no_grad():
            t.sub_(t.grad)
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.grad is None
    assert x.tolist() == [-1.0, 0.0]


def test_post_accumulate_hooks_do_not_run_for_grad(x):
    seen = []
    x.register_post_accumulate_grad_hook(seen.append)
    grad((x * 2).sum(), x)
    assert seen == []


def test_post_accumulate_hooks_are_for_leaves_only(x):
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


@pytest.mark.parametrize("beyond", [False, True])
def test_a_node_s_hooks_are_for_passes_that_go_through_it(x, beyond):
    y = x * 1
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    of_y, *of_x = grad((y * 3).sum(), [y, x] if beyond else [y])
    assert of_y.tolist() == [3.0, 3.0]
    assert [g.tolist() for g in of_x] == ([[30.0, 30.0]] if beyond else [])


def test_a_tensor_s_hooks_are_for_passes_that_end_at_it_too(x):
    y = x * 1
    y.register_hook(lambda g: g * 2)
    assert grad((y * 3).sum(), y)[0].tolist() == [6.0, 6.0]


def test_a_pre_hook_of_a_node_may_replace_the_gradients_of_its_outputs(x):
    y = x * 2
    handle = y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [22.0, 22.0]


def test_a_hook_of_a_node_sees_both_sides_and_may_replace_the_gradients_of_its_inputs(x):
    w = like(x, [3.0, 4.0])
    y = x * w
    seen = []

    def hook(grad_inputs, grad_outputs):
        seen.append((grad_inputs[0].tolist(), grad_inputs[1], grad_outputs[0].tolist()))
        return grad_inputs[0] * 10, None

    y.grad_fn.register_hook(hook)
    y.sum().backward()
    assert seen == [([3.0, 4.0], None, [1.0, 1.0])]
    assert x.grad.tolist() == [30.0, 40.0]


def test_a_hook_of_a_node_must_return_a_gradient_per_input(x):
    y = x.exp()
    y.grad_fn.register_hook(lambda ins, outs: (ins[0], ins[0], ins[0]))
    with pytest.raises(RuntimeError, match=r"incorrect number of values \(got 3, but expected 1\)"):
        y.sum().backward()


def test_a_node_carries_notes_of_the_user(x):
    y = x * 2
    y.grad_fn.metadata["layer"] = 3
    assert y.grad_fn.metadata == {"layer": 3}


def test_hooks_are_set_at_once_as_programs_that_rebuild_tensors_do(x):
    x._backward_hooks = {0: lambda grad: 2 * grad}
    x.sum().backward()
    assert x.grad.tolist() == (2 * fb.ones_like(x)).tolist()
    x.grad = x._backward_hooks = None
    x.sum().backward()
    assert x.grad.tolist() == fb.ones_like(x).tolist() and x._backward_hooks is None
