"""`flambeau.autograd.graph`: what ops save goes through hooks, and gradients stay what they are."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import flambeau as fb
from flambeau.autograd import graph
from flambeau.ops import OPS
from flambeau.ops.declaration.parameters import PLAIN, TENSOR
from flambeau.testing.samples import DTYPES, SAMPLES, realise


def make(values, shape, dtype):
    whole = fb.tensor(values, dtype=dtype, device="ref")
    return whole.reshape(shape) if values else fb.zeros(shape, dtype=dtype, device="ref")


def gradients(op, args, around):
    """The first and second gradients of an op, None where there is none."""
    leaves = []

    def leaf(t):
        t = t.detach().clone()
        if t.dtype.fp:
            leaves.append(t.requires_grad_())
        return t

    given = [
        a if kind is PLAIN or a is None else leaf(a) if kind is TENSOR else tuple(map(leaf, a))
        for a, kind in zip(args, op.kinds, strict=True)
    ]
    with around():
        result = op(*given)
        many = [r for r in (result if type(result) is tuple else (result,)) if r.requires_grad]
        if not many:
            return []
        total = sum((r * r).sum().real if r.dtype.is_complex else (r * r).sum() for r in many)
    first = fb.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    rest = [g for g in first if g is not None and g.requires_grad]
    if not rest:
        return list(first)
    again = sum((g * g.conj()).real.sum() if g.dtype.is_complex else (g * g).sum() for g in rest)
    return [*first, *fb.autograd.grad(again, leaves, allow_unused=True)]


NAMES = [
    name
    for name, op in OPS.items()
    if op.inputs_at
    and op.gradient_state == "given"
    and not name.endswith("_")
    and SAMPLES.get(name)
    and "generator" not in op.params
    and "dropout" not in name
    and name not in ("igamma", "igammac")  # ten seconds each on this device
]


@pytest.mark.parametrize("part", range(4))
def test_gradients_of_every_op_are_the_same_through_hooks(part):
    copied = []

    def pack(t):
        copied.append(t)
        return t.detach().clone()

    def hooks():
        return graph.saved_tensors_hooks(pack, lambda t: t.clone())

    for name in NAMES[part::4]:
        op = OPS[name]
        dtype = fb.float64 if fb.float64 in DTYPES[name] else DTYPES[name][0]
        args = realise(SAMPLES[name][0].args, make, dtype, generator=None)
        try:
            plain = gradients(op, args, fb.enable_grad)
        except NotImplementedError:
            continue  # without a second derivative
        for mine, wanted in zip(gradients(op, args, hooks), plain, strict=True):
            assert (mine is None) is (wanted is None), name
            if wanted is not None:
                assert fb.allclose(mine, wanted, rtol=0, atol=0, equal_nan=True), name
    assert len(copied) > 50


def test_packed_tensors_are_freed():
    big = weakref.WeakValueDictionary()
    x = fb.ones(3, requires_grad=True)

    def pack(t):
        return t.tolist()

    with graph.saved_tensors_hooks(pack, fb.tensor):
        middle = x * 2
        big["middle"] = middle
        y = (middle * middle).sum()
    del middle
    gc.collect()
    assert not big
    y.backward()
    assert x.grad.tolist() == [8.0, 8.0, 8.0]


def test_custom_functions_save_inputs_and_results_through_hooks():
    seen = []

    class Exp(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y, None)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y, nothing = ctx.saved_tensors
            assert x.requires_grad and y.requires_grad and nothing is None
            return g * y

    x = fb.zeros(2, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: seen.append(t) or t.detach(), lambda t: t.clone()):
        y = Exp.apply(x)
    (first,) = fb.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = fb.autograd.grad(first.sum(), x)
    assert len(seen) == 2 and second.tolist() == [1.0, 1.0]


def test_unpacking_happens_each_time_and_freed_values_are_an_error():
    opened = []
    x = fb.ones(2, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: opened.append(t) or t):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert len(opened) == 2 and x.grad.tolist() == pytest.approx([2 * 2.718281828] * 2)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_the_innermost_hooks_of_a_thread_count():
    outer, inner, other = [], [], []

    def in_another_thread():
        x = fb.ones(1, requires_grad=True)
        other.append((x * x).sum())

    x = fb.ones(1, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: outer.append(t) or t, lambda t: t):
        with graph.saved_tensors_hooks(lambda t: inner.append(t) or t, lambda t: t):
            x.exp()
            thread = threading.Thread(target=in_another_thread)
            thread.start()
            thread.join()
        x.sin()
    assert (len(outer), len(inner), len(other)) == (1, 1, 1)


def test_wrong_hooks_are_told():
    x = fb.ones(1, requires_grad=True)
    with (
        pytest.raises(RuntimeError, match="modifying its input in place"),
        graph.saved_tensors_hooks(lambda t: t.detach().zero_(), lambda t: t),
    ):
        x.clone().exp().sin()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.backward()


def test_hooks_can_be_refused_for_a_block():
    hooks = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    refused = pytest.raises(RuntimeError, match="not here")
    with graph.disable_saved_tensors_hooks("not here"), refused:
        hooks.__enter__()
    refused = pytest.raises(RuntimeError, match="nor here")
    with hooks, refused:
        graph.disable_saved_tensors_hooks("nor here").__enter__()


def test_writes_to_saved_tensors_can_be_allowed():
    x = fb.ones(2, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        a = x * 3
        y = (a * a).sum()
        a.add_(1)
        y = y + a.exp().sum() * 0
    y.backward()
    assert x.grad.tolist() == [18.0, 18.0]


def test_edges_stand_for_tensors_in_both_directions():
    class Split(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[0] * 3, x[1] * 3

        @staticmethod
        def backward(ctx, first, second):
            return fb.stack([first, second]) * 3

    x = fb.ones(2, 3, requires_grad=True)
    y = Split.apply(x)
    edges = [graph.get_gradient_edge(t) for t in (x, *y)]
    assert [e.output_nr for e in edges] == [0, 0, 1]
    total = (y[0] * y[1]).sum()
    found = fb.autograd.grad(total, edges[1:], retain_graph=True)
    assert [g.tolist() for g in found] == [[3.0] * 3] * 2
    weights = fb.ones(3), fb.full((3,), 2.0)
    fb.autograd.backward(edges[1:], weights)
    assert x.grad.tolist() == [[3.0] * 3, [6.0] * 3]
    (of_leaf,) = fb.autograd.grad((x * 5).sum(), edges[0])
    assert of_leaf.tolist() == [[5.0] * 3] * 2
    with pytest.raises(RuntimeError, match="does not require"):
        graph.get_gradient_edge(fb.ones(1))
    with pytest.raises(TypeError, match="get_gradient_edge"):
        fb.autograd.grad((x * 5).sum(), graph.GradientEdge(total.grad_fn, 0))


def test_counted_writes_are_noticed_in_backward():
    x = fb.ones(2, requires_grad=True)
    a = x * 2
    y = (a * a).sum()
    graph.increment_version([a])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_hooks_of_several_gradients_are_called_once_a_pass():
    calls = []
    a, b, c = (fb.ones(1, requires_grad=True) for _ in range(3))
    handle = graph.register_multi_grad_hook((a, b, c), calls.append)
    for _ in range(2):
        (a * 2 + b * 3).sum().backward()
    assert [[g and g.item() for g in grads] for grads in calls] == [[2.0, 3.0, None]] * 2
    handle.remove()
    (a + b).sum().backward()
    assert len(calls) == 2
    first = []
    with graph.register_multi_grad_hook((a, b), first.append, mode="any"):
        (a * 4 + b * 4).sum().backward()
    assert [g.item() for g in first] == [4.0]
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((a,), calls.append, mode="some")


def test_callbacks_of_the_engine_come_after_the_pass():
    order = []
    x = fb.ones(1, requires_grad=True)
    engine = fb.autograd.Variable._execution_engine
    y = x * 2
    y.register_hook(lambda g: engine.queue_callback(lambda: order.append("end")))
    x.register_hook(lambda g: order.append("leaf"))
    y.backward()
    assert order == ["leaf", "end"]
    with pytest.raises(RuntimeError, match="during backward"):
        engine.queue_callback(order.clear)


def test_tensors_are_packed_by_name_and_once():
    x, y = fb.ones(2, requires_grad=True), fb.full((2,), 3.0, requires_grad=True)
    image, filters = fb.ones(1, 1, 3, 3, requires_grad=True), fb.ones(1, 1, 2, 2)
    filters.requires_grad_()
    for call, names in (
        (lambda: x * y, [y, x]),
        (lambda: fb.conv2d(image, filters), [image, filters]),
        (lambda: fb.where(x > 2, x, y), [fb.tensor([False, False])]),
    ):
        packed, opened = [], []
        with graph.saved_tensors_hooks(
            lambda t, to=packed: to.append(t) or t, lambda t, to=opened: to.append(t) or t
        ):
            result = call()
        assert [t.tolist() for t in packed] == [t.tolist() for t in names]
        result.sum().backward()
        assert [id(t) for t in opened] == [id(t) for t in packed]
