"""The recorded graph: memory of gradients, numbering of nodes, threads, and what is freed."""

import gc
import subprocess
import sys
import threading
import weakref

import pytest

import flambeau as fb
from flambeau._autograd.node import Node
from flambeau.autograd import grad
from flambeau.ops import OPS


def values(*tensors):
    return [t.tolist() for t in tensors]


def test_hot_fields_have_no_class_default():
    # Apart: a subclass with a dtype of its own, as other tests make, gives the class a descriptor.
    fields = ("_a", "_be", "dtype", "_rg")
    code = f"import flambeau as fb; print([hasattr(fb.Tensor, n) for n in {fields}])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == str([False] * 4)


def test_cached_scalars_keep_the_sign_of_zero_apart(plain):
    x = plain([1.0])
    signs = [fb.atan2(x * zero, plain([-1.0])).item() for zero in (0.0, -0.0, 0, 0.0)]
    assert [s > 0 for s in signs] == [True, False, True, True]


def test_cached_scalars_keep_nan_and_numbers_apart(plain):
    x = plain([1.0])
    for _ in range(2):
        assert (x * float("nan")).isnan().item()
        assert (x * 1.0).item() == 1.0


def test_cached_scalars_keep_bool_int_and_float_apart(plain):
    x, flag = plain([2]), plain([True])
    for _ in range(2):
        assert (x * 1).dtype is fb.int64
        assert (x * True).dtype is fb.int64
        assert (x * 1.0).dtype is fb.float32
        assert (flag * True).dtype is fb.bool
        assert (flag * 1).dtype is fb.int64


def test_both_sides_of_a_sum_get_gradients_of_their_own(leaf, plain):
    x, y, given = leaf([1.0, 2.0]), leaf([1.0, 2.0]), plain([5.0, 6.0])
    (x + y).backward(given)
    x.grad.add_(1)
    assert values(x.grad, y.grad, given) == [[6.0, 7.0], [5.0, 6.0], [5.0, 6.0]]


@pytest.mark.parametrize("route", [lambda x: x, lambda x: x.view(2, 1), lambda x: x + 0])
def test_a_gradient_shares_no_memory_with_the_given_one(route, leaf):
    x = leaf([1.0, 2.0])
    y = route(x)
    given = fb.ones(*y.shape, device=x.device)
    y.backward(given)
    x.grad.add_(1)
    assert given.sum().item() == 2.0


def test_a_gradient_shares_no_memory_with_what_a_hook_saw_or_returned(leaf, plain):
    seen, returned = [], plain([7.0, 7.0])
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    x.register_hook(seen.append)
    y.register_hook(lambda grad: returned)
    (x * 2 + y * 2).backward(plain([1.0, 1.0]))
    x.grad.add_(1)
    y.grad.add_(1)
    assert values(*seen, returned) == [[2.0, 2.0], [7.0, 7.0]]


def test_a_gradient_shares_no_memory_with_a_retained_one(leaf):
    x = leaf([1.0, 2.0])
    y = x + 0
    y.retain_grad()
    y.sum().backward()
    y.grad.mul_(2)
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_broadcast_gradient_is_stored_in_memory_that_can_be_written(leaf):
    x = leaf([1.0, 2.0, 3.0])
    x.sum().backward()
    x.grad[0] = 9.0
    assert x.grad.tolist() == [9.0, 1.0, 1.0]


def test_gradients_that_formulas_make_are_not_copied(leaf, monkeypatch):
    x, weight, bias = leaf([[1.0, 2.0], [0.0, 1.0]]), leaf([[3.0, 4.0]] * 3), leaf([5.0] * 3)
    loss = (fb.nn.functional.linear(x, weight, bias) * 2).sum()
    monkeypatch.setattr(x._be, "clone", None)  # would fail
    loss.backward()
    assert x.grad.tolist() == [[18.0, 24.0]] * 2
    assert weight.grad.tolist() == [[2.0, 6.0]] * 3
    assert bias.grad.tolist() == [4.0] * 3


@pytest.mark.parametrize("data", [0.0, [0.0], [0.0, 0.0]])
def test_leaves_of_zeros_are_not_taken_for_missing_edges(data, leaf):
    x = leaf(data)
    (x * 3).sum().backward()
    assert (x.grad == 3).all().item()


def reachable(node):
    found, stack = {}, [node]
    while stack:
        n = stack.pop()
        if isinstance(n, Node) and n.seq not in found:
            found[n.seq] = n
            stack.extend(n.edges)
    return found.values()


class Doubled(fb.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


def test_every_node_is_numbered_after_those_it_points_to(leaf):
    x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([5.0, 6.0])
    base = x * 1
    view = base[0]
    base.mul_(2)
    view.mul_(w)
    row = view[1:].exp()
    first, second = Doubled.apply(view)
    values_, _ = base.sort()
    total = (row.sum() + (first * second).sum() + values_.sum() + base.t()[0].sum()).exp()
    nodes = reachable(total.grad_fn)
    assert len(nodes) > 15
    for node in nodes:
        for e in node.edges:
            if isinstance(e, Node):
                assert node.seq > e.seq, (node, e)


def test_only_what_a_gradient_needs_is_saved_and_watched(leaf, plain):
    x, c = leaf([2.0]), plain([3.0])
    y = x * c  # the gradient of x needs c; nobody needs x
    x.detach().add_(1)
    y.backward()
    assert x.grad.tolist() == [3.0]


def test_a_saved_operand_is_watched_if_the_other_side_needs_it(leaf):
    x, c = leaf([2.0]), leaf([3.0])
    y = x * c
    x.detach().add_(1)
    with pytest.raises(RuntimeError, match="(?s)MulBackward0.*version 1; expected version 0"):
        y.backward()


def test_gradient_state_of_every_op_is_declared():
    states = {op.gradient_state.partition(":")[0] for op in OPS.values()}
    assert states <= {"given", "not differentiable", "missing", "undeclared"}
    undeclared = [
        op.name
        for op in OPS.values()
        if op.gradient_state == "undeclared" and op.tier == "primitive"
    ]
    assert undeclared == []


def test_a_chain_of_100_000_nodes_needs_no_recursion(device):
    x = fb.zeros(1, device=device, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y  # freeing the chain must not recurse either


def test_accumulation_from_eight_threads_into_one_leaf_is_exact(device):
    x = fb.zeros(3, device=device, requires_grad=True)
    start = threading.Barrier(8)
    failures = []

    def work():
        try:
            start.wait(60)
            for _ in range(200):
                (x * 2).sum().backward()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    assert failures == []
    assert x.grad.tolist() == [3200.0] * 3


def test_one_graph_may_be_walked_by_several_threads(device):
    x = fb.ones(2, device=device, requires_grad=True)
    y = (x * 3).exp().sum()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(grad(y, x, retain_graph=True)[0]), daemon=True)
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    assert len({str(g.tolist()) for g in found}) == 1
    assert len(found) == 4


@pytest.fixture
def no_collector():
    """Runs the test without the cycle collector, so that only reference counts free memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def graphs():
    def saved_results(x):
        return (x.exp() * x.tanh()).sum()

    def views(x):
        return (x[0] * x.t()[1].unsqueeze(0).expand(2, 2).diagonal()).sum()

    def in_place(x):
        y = x * 1
        y.mul_(x)
        y.exp_()
        return y.sum()

    def in_place_on_a_view(x):
        y = x * 1
        v = y[0]
        y[1] = v
        v.tanh_()
        return (y * v).sum()

    def custom(x):
        first, second = Doubled.apply(x)
        return (first * second).sum()

    def several_outputs(x):
        found, _ = x.sort()
        return (found * x.softmax(0)).sum()

    return [saved_results, views, in_place, in_place_on_a_view, custom, several_outputs]


@pytest.mark.parametrize("graph", graphs(), ids=lambda f: f.__name__)
@pytest.mark.parametrize("walked", ["unused", "backward", "create_graph"])
def test_a_graph_is_freed_without_the_cycle_collector(graph, walked, device, no_collector):
    x = fb.tensor([[0.1, 0.2], [0.3, 0.4]], device=device, requires_grad=True)
    y = graph(x)
    gone = [weakref.ref(y), *(weakref.ref(n) for n in reachable(y.grad_fn))]
    if walked == "backward":
        y.backward()
    elif walked == "create_graph":
        (g,) = grad(y, x, create_graph=True)
        (h,) = grad(g.sum(), x, retain_graph=True)
        gone += [weakref.ref(g), weakref.ref(h), *(weakref.ref(n) for n in reachable(g.grad_fn))]
        del g, h
    del y
    alive = [r() for r in gone if r() is not None]
    assert alive == []


def holders(native):
    """How many references to an array there are besides the caller's own name."""
    return sys.getrefcount(native) - 3


def test_backward_frees_saved_operands_at_once(device, no_collector):
    x = fb.ones(3, device=device, requires_grad=True)
    operand = x * 2
    native = operand._a
    y = (operand * operand).sum()
    del operand
    assert holders(native) > 0
    y.backward()
    assert holders(native) == 0


def test_backward_frees_saved_results_at_once(device, no_collector):
    x = fb.ones(3, device=device, requires_grad=True)
    result = x.exp()
    native = result._a
    y = result.sum()
    del result
    assert holders(native) > 0
    y.backward()
    assert holders(native) == 0


def test_retain_graph_keeps_saved_arrays_as_long_as_the_graph(device, no_collector):
    x = fb.ones(3, device=device, requires_grad=True)
    result = x.exp()
    native = result._a
    y = result.sum()
    del result
    y.backward(retain_graph=True)
    assert holders(native) > 0
    del y
    assert holders(native) == 0


def test_a_tensor_is_freed_when_its_last_name_goes(device, no_collector):
    x = fb.ones(3, device=device, requires_grad=True)
    y = x * 2
    gone = weakref.ref(y)
    del y
    assert gone() is None


def test_hooks_and_retained_gradients_are_freed_with_the_graph(device, no_collector):
    x = fb.ones(2, device=device, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    gone = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    assert gone() is None
