"""autograd.Function: contexts, saved tensors, outputs of every kind, and gradients of gradients."""

import gc
import warnings
import weakref

import pytest

import flambeau as fb
from flambeau.autograd import Function, grad
from flambeau.autograd.function import FunctionCtx, once_differentiable


def function(forward, backward, name="Custom"):
    """A Function from two plain functions."""
    space = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (Function,), space)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, g):
        (result,) = ctx.saved_tensors
        return g * result


class TwoAndThree(Function):
    """x ↦ (2x, 3x); keeps what backward was given in `seen`."""

    seen: list  # type: ignore[type-arg]

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        TwoAndThree.seen = [g, h]
        return g * 2 + h * 3


def test_the_result_has_the_functions_own_history(leaf):
    x = leaf([2.0])
    y = Cube.apply(x)
    assert y.tolist() == [8.0]
    assert y.grad_fn.name() == "CubeBackward"
    assert type(y.grad_fn).__name__ == "CubeBackward"
    assert "grad_fn=<CubeBackward>" in repr(y)
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_forward_runs_without_recording_and_backward_too_unless_create_graph_is_set(leaf):
    seen = []

    def forward(ctx, x):
        seen.append(fb.is_grad_enabled())
        return x * 2

    def backward(ctx, g):
        seen.append((fb.is_grad_enabled(), g.requires_grad))
        return g * 2

    f = function(forward, backward)
    x = leaf([1.0])
    f.apply(x).backward()
    grad(f.apply(x) ** 2, x, create_graph=True)
    assert seen == [False, (False, False), False, (True, True)]
    assert fb.is_grad_enabled()


def test_without_recording_there_is_no_history(leaf, plain):
    with fb.no_grad():
        assert not Cube.apply(leaf([2.0])).requires_grad
    y = Cube.apply(plain([2.0]))
    assert not y.requires_grad
    assert y.grad_fn is None


def test_the_context_is_the_grad_fn_and_carries_attributes(leaf):
    contexts = []

    def forward(ctx, x):
        ctx.factor = 5
        contexts.append(ctx)
        return x * ctx.factor

    def backward(ctx, g):
        contexts.append(ctx)
        return g * ctx.factor

    x = leaf([1.0])
    y = function(forward, backward).apply(x)
    y.backward()
    assert contexts[0] is contexts[1] is y.grad_fn
    assert x.grad.tolist() == [5.0]


def test_each_call_has_a_context_of_its_own(leaf):
    x, y = leaf([1.0]), leaf([2.0])
    a, b = Cube.apply(x), Cube.apply(y)
    assert a.grad_fn is not b.grad_fn
    (a + b).backward()
    assert x.grad.tolist() == [3.0]
    assert y.grad.tolist() == [12.0]


def test_objects_of_functions_have_apply_and_cannot_be_called():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        cube = Cube()
    assert cube.apply(fb.tensor(2.0)).item() == 8.0
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        cube(fb.tensor(2.0))


def test_a_function_without_forward_says_so(leaf):
    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match="implement the forward function"):
        Empty.apply(leaf([1.0]))


def test_a_function_without_backward_says_so_at_backward(leaf):
    class OneWay(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    y = OneWay.apply(leaf([1.0]))
    with pytest.raises(NotImplementedError, match="backward or vjp method.*OneWay"):
        y.backward()


def test_vjp_is_another_name_of_backward(leaf):
    class Vjp(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf([1.0])
    Vjp.apply(x).backward()
    assert x.grad.tolist() == [2.0]


def test_setup_context_separates_the_context_from_forward(leaf):
    class Power(Function):
        @staticmethod
        def forward(x, n):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.n = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, g):
            x, output = ctx.saved_tensors
            return g * ctx.n * output / x, None

    x = leaf([2.0])
    Power.apply(x, 3).backward()
    assert x.grad.tolist() == [12.0]


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_errors_surface_and_recording_is_restored(where, leaf):
    def fail(*args):
        raise ValueError(f"in {where}")

    keep = lambda ctx, t: t * 2  # noqa: E731
    f = function(fail, keep) if where == "forward" else function(keep, fail)
    with pytest.raises(ValueError, match=f"in {where}"):
        f.apply(leaf([1.0])).backward()
    assert fb.is_grad_enabled()


def test_hooks_work_on_custom_nodes(leaf):
    x = leaf([1.0])
    y = Cube.apply(x)
    seen = []
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].item(), outs[0].item())))
    y.backward()
    assert seen == [(30.0, 10.0)]


def test_arguments_may_be_anything_and_get_none_as_gradient(leaf):
    def forward(ctx, n, x, options, y, nothing):
        ctx.n, ctx.m = n, options["m"]
        return x * n + y * ctx.m

    f = function(forward, lambda ctx, g: (None, g * ctx.n, None, g * ctx.m, None))
    x, y = leaf([1.0]), leaf([1.0])
    f.apply(2, x, {"m": 3}, y, None).backward()
    assert x.grad.tolist() == [2.0]
    assert y.grad.tolist() == [3.0]


def test_tensors_inside_containers_are_not_recorded(leaf):
    f = function(lambda ctx, xs: xs[0] * 2, lambda ctx, g: None)
    assert not f.apply([leaf([1.0])]).requires_grad


def test_needs_input_grad_tells_which_gradients_are_wanted(leaf, plain):
    seen = []

    def forward(ctx, x, w, i, n):
        seen.append(ctx.needs_input_grad)
        return x * w

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, None, None, None

    y = function(forward, backward).apply(leaf([1.0]), plain([2.0]), plain([1]), 3)
    assert y.grad_fn.needs_input_grad == (True, False, False, False)
    y.backward()
    assert seen == [(True, False, False, False)] * 2


def test_the_same_tensor_may_be_given_twice(leaf):
    x = leaf([2.0])
    function(lambda ctx, a, b: a * b, lambda ctx, g: (g * 2, g * 30)).apply(x, x).backward()
    assert x.grad.tolist() == [32.0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda g: g, r"incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, g, g), r"incorrect number of gradients \(expected 2, got 3\)"),
        (lambda g: [g, g], "got 1"),
        (lambda g: (g, 1.0), r"expected Variable or None \(got float\)"),
        (lambda g: (fb.ones(3, device=g.device), g), r"invalid gradient at index 0 - got \[3\]"),
        (lambda g: (fb.ones(2, device="meta"), g), "expected device .* but got meta"),
    ],
    ids=["too few", "too many", "list", "number", "shape", "device"],
)
def test_backward_must_return_a_fitting_gradient_per_argument(returned, message, leaf):
    f = function(lambda ctx, x, y: x * y, lambda ctx, g: returned(g))
    with pytest.raises(RuntimeError, match=message):
        f.apply(leaf([1.0, 2.0]), leaf([1.0, 2.0])).sum().backward()


def test_backward_must_not_return_a_gradient_for_what_is_no_tensor(leaf):
    f = function(lambda ctx, x, n: x * n, lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="gradient different than None at position 2"):
        f.apply(leaf([1.0]), 3).backward()


def test_gradients_beyond_the_arguments_may_be_none(leaf):
    x = leaf([1.0])
    function(lambda ctx, x: x * 2, lambda ctx, g: (g * 2, None, None)).apply(x).backward()
    assert x.grad.tolist() == [2.0]


def test_none_is_no_gradient(leaf):
    x = leaf([1.0])
    function(lambda ctx, x: x * 2, lambda ctx, g: None).apply(x).backward()
    assert x.grad is None


def test_gradients_of_arguments_that_need_none_are_dropped(leaf, plain):
    x, c = leaf([1.0]), plain([1.0])
    function(lambda ctx, x, c: x * c, lambda ctx, g: (g, g)).apply(x, c).backward()
    assert x.grad.tolist() == [1.0]
    assert c.grad is None


def test_gradients_are_summed_to_the_shape_and_cast_to_the_dtype_of_the_argument(leaf):
    x = leaf([1.0, 2.0])
    f = function(lambda ctx, x: x.expand(3, 2) * 2, lambda ctx, g: (g * 2).double())
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    assert x.grad.dtype is fb.float32


def test_a_gradient_smaller_than_the_argument_is_refused(leaf):
    f = function(lambda ctx, x: x * 2, lambda ctx, g: g.sum())
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        f.apply(leaf([1.0, 2.0])).sum().backward()


def test_saved_inputs_are_the_tensors_themselves(leaf, plain):
    seen = []

    def forward(ctx, x, w):
        ctx.save_for_backward(x, None, w)
        return x * w

    def backward(ctx, g):
        seen.extend(ctx.saved_tensors)
        return g, None

    x, w = leaf([1.0]), plain([2.0])
    function(forward, backward).apply(x, w).backward()
    assert seen[0] is x
    assert seen[1] is None
    assert seen[2] is w


def test_nothing_saved_is_an_empty_tuple(leaf):
    seen = []

    def forward(ctx, x):
        seen.append(ctx.saved_tensors)
        return x * 2

    function(forward, lambda ctx, g: seen.append(ctx.saved_tensors)).apply(leaf([1.0])).backward()
    assert seen == [(), ()]


def test_the_last_save_for_backward_counts(leaf):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 10)
        return x * 2

    x = leaf([1.0])
    function(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x).backward()
    assert x.grad.tolist() == [10.0]


def test_only_tensors_can_be_saved(leaf):
    f = function(lambda ctx, x: ctx.save_for_backward(x, 3), lambda ctx, g: g)
    with pytest.raises(TypeError, match="argument 1 is of type int"):
        f.apply(leaf([1.0]))


def test_a_write_to_a_saved_input_is_detected(leaf):
    b = leaf([2.0, 1.0]) * 1
    y = Cube.apply(b)
    b.add_(1)
    with pytest.raises(
        RuntimeError, match="CubeBackward.*modified by an inplace operation.*'input'"
    ):
        y.sum().backward()


def test_a_write_to_the_base_of_a_saved_view_is_detected(leaf):
    b = leaf([2.0, 1.0]) * 1
    y = Cube.apply(b[1:])
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_write_to_a_saved_output_is_detected(leaf):
    y = Exp.apply(leaf([2.0, 1.0]))
    y.add_(1)
    with pytest.raises(
        RuntimeError, match="ExpBackward.*modified by an inplace operation.*'output'"
    ):
        y.sum().backward()


def test_a_saved_intermediate_is_not_touched_by_writes_to_the_output(leaf):
    def forward(ctx, x):
        kept = x.exp()
        ctx.save_for_backward(kept)
        return kept * 1

    x = leaf([0.0])
    y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.add_(5)
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_saved_tensors_are_freed_after_backward_unless_retained(leaf):
    x = leaf([2.0])
    y = Cube.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [24.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = y.grad_fn.saved_tensors


def test_a_call_that_saved_nothing_may_be_walked_again(leaf):
    x = leaf([2.0])
    y = function(lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply(x)
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_saved_variables_is_the_old_name_of_saved_tensors(leaf):
    y = Cube.apply(leaf([2.0]))
    with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
        assert y.grad_fn.saved_variables[0].tolist() == [2.0]


def test_saving_an_output_makes_no_cycle(leaf):
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(leaf([1.0]))
        gone = [weakref.ref(y), weakref.ref(y.grad_fn)]
        del y
        assert [r() for r in gone] == [None, None]
    finally:
        gc.enable()


def test_absent_gradients_arrive_as_zeros(leaf):
    x = leaf([1.0, 2.0])
    first, second = TwoAndThree.apply(x)
    second.sum().backward()
    assert [g.tolist() for g in TwoAndThree.seen] == [[0.0, 0.0], [1.0, 1.0]]
    assert x.grad.tolist() == [3.0, 3.0]
    assert first.grad_fn is second.grad_fn


def test_absent_gradients_arrive_as_none_on_request(leaf):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, g, h):
        seen.append((g, h.tolist()))
        return h * 3

    x = leaf([1.0])
    function(forward, backward).apply(x)[1].backward()
    assert seen == [(None, [1.0])]


def test_all_outputs_together_give_the_sum(leaf):
    x = leaf([1.0])
    first, second = TwoAndThree.apply(x)
    (first * second).backward()
    assert x.grad.tolist() == [12.0]


def test_outputs_marked_non_differentiable_have_no_history(leaf):
    seen = []

    def forward(ctx, x):
        values, order = x.sort()
        doubled = x * 2
        ctx.mark_non_differentiable(order, doubled)
        return values, order, doubled

    def backward(ctx, g, h, k):
        seen.append((h.tolist(), k.tolist()))
        return g

    values, order, doubled = function(forward, backward).apply(leaf([2.0, 1.0]))
    assert values.requires_grad
    assert not doubled.requires_grad
    assert doubled.is_leaf
    assert not order.requires_grad
    values.sum().backward()
    assert seen == [([0, 0], [0.0, 0.0])]


def test_a_function_all_of_whose_outputs_are_marked_has_no_history(leaf):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    y = function(forward, lambda ctx, g: g).apply(leaf([1.0]))
    assert not y.requires_grad


def test_integer_outputs_need_no_mark(leaf):
    f = function(lambda ctx, x: (x * 2, x.to(fb.int64)), lambda ctx, g, h: g * 2)
    x = leaf([2.0])
    y, whole = f.apply(x)
    assert not whole.requires_grad
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_outputs_may_be_anything_and_tuples_stay_tuples(leaf):
    seen = []

    def backward(ctx, *grads):
        seen.append(grads[1:])
        return grads[0]

    f = function(lambda ctx, x: (x * 2, "text", None, 7), backward)
    result = f.apply(leaf([1.0]))
    assert isinstance(result, tuple)
    assert result[1:] == ("text", None, 7)
    result[0].backward()
    assert seen == [(None, None, None)]


@pytest.mark.parametrize("returned", [(), 3.0, "text", None])
def test_outputs_without_tensors_pass_through(returned, leaf):
    assert function(lambda ctx, x: returned, lambda ctx, *g: None).apply(leaf([1.0])) == returned


def test_the_same_tensor_may_be_returned_twice(leaf):
    def forward(ctx, x):
        y = x * 2
        return y, y

    x = leaf([2.0])
    a, b = function(forward, lambda ctx, g, h: g + h).apply(x)
    (a + b * 3).backward()
    assert x.grad.tolist() == [4.0]


def test_an_input_returned_as_it_is_becomes_another_tensor_with_its_own_history(leaf):
    x = leaf([2.0])
    y = function(lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x
    assert x.is_leaf
    assert y.grad_fn.name() == "CustomBackward"
    y.backward()
    assert x.grad.tolist() == [5.0]


def test_an_input_returned_without_recording_is_not_changed(plain):
    x = plain([2.0])
    y = function(lambda ctx, x: x, lambda ctx, g: g).apply(x)
    assert not y.requires_grad
    y[0] = 7.0
    assert x.tolist() == [7.0]


def test_a_returned_view_has_the_functions_history_and_the_inputs_memory(leaf):
    def backward(ctx, g):
        return fb.cat([fb.zeros(1, device=g.device), g * 5])

    b = leaf([2.0, 3.0])
    x = b * 1
    y = function(lambda ctx, x: x[1:], backward).apply(x)
    assert y.grad_fn.name() == "CustomBackward"
    y[0].backward()
    assert b.grad.tolist() == [0.0, 5.0]
    with fb.no_grad():
        y.fill_(9.0)
    assert x.tolist() == [2.0, 9.0]


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:]], ids=["itself", "slice"])
def test_recorded_writes_through_a_returned_view_are_refused(view, leaf):
    x = leaf([2.0, 3.0]) * 1
    y = function(lambda ctx, x: view(x), lambda ctx, g: g).apply(x)
    with pytest.raises(
        RuntimeError, match="CustomBackward is a view and is being modified inplace"
    ):
        y.add_(1)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        y[0:1].add_(1)
    assert x.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("use", [lambda y: y * 2, lambda y: y[0] * 2, lambda y: y.sum()])
def test_a_returned_view_cannot_be_used_after_a_recorded_write_to_its_base(use, leaf):
    x = leaf([2.0, 3.0]) * 1
    y = function(lambda ctx, x: x[1:], lambda ctx, g: g).apply(x)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="CustomBackward is a view and its base or another view"):
        use(y)


def test_views_of_arguments_pass_gradients_to_their_base(leaf):
    x = leaf([2.0, 3.0])
    Cube.apply(x[1:]).sum().backward()
    assert x.grad.tolist() == [0.0, 27.0]


def test_history_made_inside_forward_does_not_leave_it(leaf, plain):
    w = leaf([3.0])

    def forward(ctx, x):
        with fb.enable_grad():
            return x * w

    y = function(forward, lambda ctx, g: g).apply(plain([2.0]))
    assert not y.requires_grad


def test_a_graph_made_inside_forward_may_serve_backward(leaf):
    def forward(ctx, x):
        with fb.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = ctx.x**2
        return ctx.y.detach()

    x = leaf([3.0])
    function(forward, lambda ctx, g: grad(ctx.y, ctx.x, g)[0]).apply(x).backward()
    assert x.grad.tolist() == [6.0]


def test_functions_nest(leaf):
    inner = function(lambda ctx, x: x * 2, lambda ctx, g: g * 2, "Inner")
    outer = function(lambda ctx, x: inner.apply(x), lambda ctx, g: inner.apply(g) * 7, "Outer")
    x = leaf([3.0])
    y = outer.apply(x)
    assert y.grad_fn.name() == "OuterBackward"
    y.backward()
    assert x.grad.tolist() == [14.0]


def doubling(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


def test_a_dirty_input_is_returned_as_the_same_tensor_with_new_history(leaf):
    x = leaf([1.0, 2.0])
    b = x * 1
    before = b._version
    y = function(doubling, lambda ctx, g: g * 2).apply(b)
    assert y is b
    assert b._version > before
    assert b.grad_fn.name() == "CustomBackward"
    b.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_dirty_view_changes_the_history_of_its_base(leaf):
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    v = b[1:]
    assert function(doubling, lambda ctx, g: g * 2).apply(v) is v
    assert b.tolist() == [1.0, 4.0, 6.0]
    b.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0]


def test_a_dirty_tensor_without_history_gains_one(leaf, plain):
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        return x.mul_(w)

    x, w = plain([1.0, 2.0]), leaf([3.0, 3.0])
    y = function(forward, lambda ctx, g: (g * 3, g)).apply(x, w)
    assert y is x
    assert x.requires_grad
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:]], ids=["leaf", "view of a leaf"])
def test_leaves_that_require_a_gradient_cannot_be_dirty(view, leaf):
    f = function(doubling, lambda ctx, g: g * 2)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        f.apply(view(leaf([1.0, 2.0])))


def test_dirty_leaves_are_fine_without_requires_grad(plain):
    x = plain([1.0])
    assert function(doubling, lambda ctx, g: g * 2).apply(x) is x
    assert x.tolist() == [2.0]
    assert not x.requires_grad


@pytest.mark.parametrize("returned", [lambda x: x.clone(), lambda x: x.view(-1)])
def test_dirty_inputs_must_be_returned(returned, leaf):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return returned(x)

    with pytest.raises(RuntimeError, match="must all be outputs of the Function"):
        function(forward, lambda ctx, g: g).apply(leaf([1.0]) * 1)


def test_a_dirty_input_can_be_saved_as_output(leaf):
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    x = leaf([0.0])
    y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0] * 3).apply(x * 1)
    y.backward()
    assert x.grad.tolist() == [3.0]


def test_a_dirty_input_beside_a_fresh_output(leaf):
    def forward(ctx, x, y):
        x.add_(1)
        ctx.mark_dirty(x)
        return x, y * 2

    a, b = leaf([1.0]), leaf([1.0])
    x = a * 1
    u, v = function(forward, lambda ctx, g, h: (g, h * 2)).apply(x, b)
    assert u is x
    (u * v).backward()
    assert a.grad.tolist() == [2.0]
    assert b.grad.tolist() == [4.0]


def test_only_tensors_can_be_marked_dirty(leaf):
    f = function(lambda ctx, x: ctx.mark_dirty(3), lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        f.apply(leaf([1.0]))


@pytest.mark.parametrize(
    ("f", "expected"), [(Cube, [12.0, 12.0, 6.0]), (Exp, [7.389056] * 3)], ids=["input", "output"]
)
def test_backward_is_differentiated_if_it_is_made_of_differentiable_operations(f, expected, leaf):
    x = leaf([2.0], dtype=fb.float64)
    (g,) = grad(f.apply(x), x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    (k,) = grad(h, x)
    assert [g.item(), h.item(), k.item()] == pytest.approx(expected)


def test_a_saved_intermediate_is_a_constant_of_the_second_derivative(leaf):
    def forward(ctx, x):
        kept = x * 2
        ctx.save_for_backward(kept)
        return kept * kept

    x = leaf([1.0])
    y = function(forward, lambda ctx, g: g * 4 * ctx.saved_tensors[0]).apply(x)
    (g,) = grad(y, x, create_graph=True)
    assert g.tolist() == [8.0]
    assert grad(g, x, allow_unused=True) == (None,) if g.requires_grad else True


def test_once_differentiable_refuses_the_second_derivative(leaf):
    class Once(Cube):
        backward = staticmethod(once_differentiable(Cube.backward))

    x = leaf([2.0])
    Once.apply(x).backward()
    assert x.grad.tolist() == [12.0]
    (g,) = grad(Once.apply(x) * x, x, create_graph=True)
    assert g.tolist() == [8.0 + 24.0]
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.backward()


@pytest.mark.parametrize("f", [Cube, Exp, TwoAndThree], ids=lambda f: f.__name__)
def test_gradcheck_accepts_custom_functions(f, leaf):
    x = leaf([0.5, 1.5], dtype=fb.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fb.autograd.gradcheck(f.apply, (x,))
        assert fb.autograd.gradgradcheck(f.apply, (x,))


# Without those that PyTorch's context does not let programs set, and those that the example calls.
NOT_SET = {"metadata", "needs_input_grad", "next_functions", "saved_tensors", "saved_variables"}
NAMES_OF_CONTEXTS = {name for name in dir(FunctionCtx) if not name.startswith("_")}

PRIVATE = {
    f"_{name}" for name in "inputs results dirty sources context function hooks saved".split()
}


@pytest.mark.parametrize(
    "taken", sorted(NAMES_OF_CONTEXTS - NOT_SET - {"save_for_backward"} | PRIVATE)
)
def test_attributes_of_the_context_may_have_the_names_that_the_graph_uses(taken, device):
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor):
            setattr(ctx, taken, factor)
            ctx.save_for_backward(x)
            return x * factor, x - factor

        @staticmethod
        def backward(ctx, grad, other):
            assert getattr(ctx, taken) == 3
            return grad * getattr(ctx, taken) + other * ctx.saved_tensors[0], None

    class ScaleApart(Scale):
        @staticmethod
        def forward(x, factor):
            return x * factor, x - factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            setattr(ctx, taken, inputs[1])
            ctx.save_for_backward(inputs[0])

    for function in (Scale, ScaleApart):
        x = fb.tensor([2.0], requires_grad=True, device=device)
        y, z = function.apply(x, 3)
        assert y.grad_fn.name() == f"{function.__name__}Backward"
        (y * z).backward(retain_graph=True)
        (y * z).backward()
        assert x.grad.tolist() == [2 * (3 * -1.0 + 2 * 6.0)]
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()


def test_a_context_whose_names_the_graph_uses_keeps_no_node_alive(device):
    class Named(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.name, ctx.kept = "mine", 5
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    gc.disable()
    try:
        y = Named.apply(fb.ones(1, requires_grad=True, device=device))
        assert y.grad_fn.kept == 5
        with pytest.raises(AttributeError, match="absent"):
            y.grad_fn.absent  # noqa: B018 - what it raises
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_the_context_that_programs_annotate_and_make_is_the_one_that_forward_receives():
    found: list[object] = []

    class Scaled(Function):
        @staticmethod
        def forward(ctx: FunctionCtx, x: fb.Tensor) -> fb.Tensor:
            found.append(ctx)
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx: FunctionCtx, grad: fb.Tensor) -> fb.Tensor:
            (x,) = ctx.saved_tensors
            return grad * x

    x = fb.tensor([2.0], requires_grad=True)
    Scaled.apply(x).backward()
    assert x.grad.tolist() == [2.0]
    assert isinstance(found[0], FunctionCtx)
    assert repr(found[0]).startswith("<ScaledBackward object at ")
    made = FunctionCtx()  # as tests of a forward alone do
    made.scale = 3
    assert Scaled.forward(made, x).tolist() == [6.0]
    assert repr(made).startswith("<FunctionCtx object at ")
