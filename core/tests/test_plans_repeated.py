"""The shortest way to a plan: what tells a call from the one before it."""

from collections import OrderedDict, deque

import pytest

import flambeau as fb
from flambeau._types import trees


def counted(function, *args, calls=3, **kwargs):
    """`function` compiled, and called until a call like these is looked at first."""
    compiled = fb.compile(function)
    for _ in range(calls):
        compiled(*args, **kwargs)
    return compiled


def told(x, y, scale=1.0):
    """What a call is told apart by, as digits of a number."""
    facts = [x is y, x.requires_grad, y.stride()[-1], x.size(0), scale, fb.is_grad_enabled()]
    return (x * y).exp() * sum(10.0**i * fact for i, fact in enumerate(facts))


X, Y = fb.arange(6.0).reshape(2, 3).clone(), fb.ones(2, 3)
CALLS = {
    "the same again": (X, Y),
    "other values": (X + 1, Y),
    "one tensor twice": (X, X),
    "other strides": (X, Y.t().contiguous().t()),
    "another shape": (X[:1], Y[:1]),
    "another dtype": (X.double(), Y.double()),
    "a gradient": (X.clone().requires_grad_(), Y),
    "a gradient of a result": (X.clone().requires_grad_() * 1, Y),
    "a view": (X.reshape(3, 2).reshape(2, 3), Y),
    "a view with a gradient": (X.clone().requires_grad_().reshape(3, 2).reshape(2, 3), Y),
    "a view that asks for one": (X.clone().reshape(3, 2).reshape(2, 3).requires_grad_(), Y),
    "a number more": (X, Y, 2.0),
    "an integer": (X, Y, 1),
    "minus zero": (X, Y, -0.0),
    "a subclass that counts as a tensor": (fb.nn.Parameter(X), Y),
}


@pytest.mark.parametrize("before", CALLS)
@pytest.mark.parametrize("grad", [True, False])
def test_calls_of_another_kind_are_told_from_the_last(before, grad):
    with fb.set_grad_enabled(grad):
        compiled = counted(told, *CALLS[before])
        for args in (*CALLS.values(), CALLS[before]):
            for _ in range(4):
                found, plain = compiled(*args), told(*args)
                assert fb.equal(found, plain)
                assert found.requires_grad is plain.requires_grad
            with fb.set_grad_enabled(not grad):
                assert fb.equal(compiled(*args), told(*args))
        assert fb.equal(compiled(X, y=Y), told(X, y=Y))
    assert compiled.explain().replays > len(CALLS)


def test_numbers_and_text_among_tensors_in_lists_are_told_apart():
    def chosen(pair, name, places):
        return pair[0] * len(name) + (pair[1] if places[0] else 0)

    compiled = counted(chosen, [X, Y], "add", (1, 2))
    for pair in ([X, Y], (X, Y), [Y, X], [X, X]):
        for name in ("add", "to", "sub"):
            for places in ((1, 2), (0, 2), [1, 2], (True, 2)):
                for _ in range(3):
                    found = compiled(pair, name, places)
                    assert fb.equal(found, chosen(pair, name, places))
    assert compiled.explain().replays > 36


def test_five_tensors_of_which_two_are_one_are_no_call_of_five():
    def same(a, b, c, d, e):
        return a + b + c + d + (e * 2 if a is e else e)

    five = [fb.full((2,), float(i)) for i in range(5)]
    compiled = counted(same, *five)
    for args in (five, [*five[:4], five[0]], five):
        assert fb.equal(compiled(*args), same(*args))
    assert compiled.explain().replays == 3


def test_calls_with_a_wrong_number_of_arguments_raise_the_function_s_error():
    compiled = counted(told, X, Y)
    for args in ((), (X,), (X, Y, 1.0, 2.0)):
        with pytest.raises(TypeError, match="argument"):
            compiled(*args)
    assert compiled.explain().replays == 1


def test_calls_that_raise_within_a_plan_count_as_replays():
    compiled = counted(lambda x, i: x[i] * 2, Y, fb.tensor([0, 1]), calls=4)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(Y, fb.tensor([0, 5]))
    assert compiled.explain().replays == 3


def test_a_mode_or_a_global_that_changes_is_noticed():
    space = {"fb": fb, "scale": 2.0}
    exec("def f(x):\n    return (x * scale).exp()", space)
    compiled = counted(space["f"], X, calls=4)
    space["scale"] = 3.0
    assert fb.equal(compiled(X), (X * 3).exp())
    with fb.autocast("cpu", dtype=fb.bfloat16):
        assert fb.equal(compiled(X), (X * 3).exp())
    with pytest.warns(UserWarning, match="Anomaly"), fb.autograd.detect_anomaly():
        assert fb.equal(compiled(X), (X * 3).exp())
    fb.set_default_dtype(fb.float64)
    try:
        assert fb.equal(compiled(X), (X * 3).exp())
    finally:
        fb.set_default_dtype(fb.float32)


def test_forgotten_plans_are_not_repeated():
    compiled = counted(told, X, Y, calls=5)
    compiled.forget()
    assert fb.equal(compiled(X, Y), told(X, Y))
    assert compiled.explain().plans == 0


def test_a_function_that_calls_a_script_which_has_plans_has_one():
    @fb.jit.script
    def inner(x, y):
        return (x * 2 + y).tanh().exp()

    for _ in range(30):
        inner(X, Y)
    compiled = counted(lambda x, y: inner(x, y) * 2, X, Y, calls=5)
    assert compiled.explain().replays == 3
    assert fb.equal(compiled(X, Y), inner(X, Y) * 2)


def test_a_script_that_asks_for_a_gradient_is_answered_where_none_are_recorded():
    def asked(x, y):
        if x.requires_grad:
            return (x * 2 + y).tanh().exp()
        return (x - y).tanh().exp()

    class Frozen(fb.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = fb.nn.Parameter(fb.ones(2, 3))

        def forward(self, x):
            if self.weight.requires_grad:
                return (x * self.weight + 1).tanh().exp()
            return (x - self.weight).tanh().exp()

    scripted, net = fb.jit.script(asked), Frozen()
    module = fb.jit.script(net)
    with fb.no_grad():
        for _ in range(30):
            scripted(X, Y)
            module(X)
        wants = X.clone().requires_grad_()
        assert fb.equal(scripted(wants, Y), asked(wants, Y))
        assert fb.equal(scripted(X, Y), asked(X, Y))
        for flag in (False, True, False):
            net.weight.requires_grad_(flag)
            for _ in range(4):
                assert fb.equal(module(X), net(X))


def test_a_function_whose_backward_pass_raises_is_called_as_it_is():
    class Never(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.exp()

        @staticmethod
        def backward(ctx, *grad_outputs):
            raise ArithmeticError("no derivative")

    x = fb.ones(2, requires_grad=True)
    compiled = counted(lambda x: Never.apply(x) * 2, x)
    assert "the backward pass raises ArithmeticError" in str(compiled.explain())
    with pytest.raises(ArithmeticError, match="no derivative"):
        compiled(x).sum().backward()


class Pair:
    """A container that says how it is taken apart."""

    def __init__(self, first, second):
        self.first, self.second = first, second


def pair_flatten(pair):
    return [pair.first, pair.second], "pair"


def pair_unflatten(parts, context):
    assert context == "pair"
    return Pair(*parts)


@pytest.fixture
def pairs():
    trees.register_pytree_node(Pair, pair_flatten, pair_unflatten)
    yield Pair
    trees.SUPPORTED_NODES.pop(Pair)


def test_results_in_containers_that_are_registered_are_in_new_ones(pairs):
    def function(x, w):
        y = x @ w
        held = OrderedDict(twice=y * 2, none=None, inner=pairs(y, [y.exp(), x]))
        return pairs(held, deque([y.sum()]))

    x, w = fb.randn(2, 3), fb.randn(3, 3, requires_grad=True)
    compiled, before = fb.compile(function, fullgraph=True), []
    for _ in range(5):
        found = compiled(x, w)
        held, (total,) = found.first, found.second
        assert type(found) is Pair and type(held) is OrderedDict and type(found.second) is deque
        assert all(found is not one for one in before)
        before.append(found)
        assert list(held) == ["twice", "none", "inner"] and held["none"] is None
        assert held["inner"].second[1] is x
        assert fb.equal(held["twice"], held["inner"].first * 2)
        (grad,) = fb.autograd.grad(total + held["inner"].second[0].sum(), w)
        y = x @ w
        assert fb.equal(grad, fb.autograd.grad(y.sum() + y.exp().sum(), w)[0])
    assert compiled.explain().replays == 3
