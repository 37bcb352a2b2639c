"""`flambeau.func`: transforms nest, compose with each other, and leave no trace."""

from __future__ import annotations

import threading

import pytest

import flambeau as fb
from flambeau.func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)


def vector(*numbers, **options):
    return fb.tensor(numbers, dtype=fb.float64, **options)


def same(a, b, tolerance=1e-9):
    assert a.shape == b.shape
    assert a.dtype is b.dtype
    assert fb.allclose(a, b, rtol=tolerance, atol=tolerance)


X = vector(0.5, -1.0, 2.0)


def test_gradients_of_gradients_are_higher_derivatives():
    derivative = fb.sin
    for expected in (fb.cos, lambda x: -x.sin(), lambda x: -x.cos()):
        derivative = grad(derivative)
        same(derivative(X[0]), expected(X[0]))


def test_an_inner_gradient_is_not_confused_with_an_outer_one():
    same(grad(lambda x: x * grad(lambda y: x + y)(x))(X[0]), vector(1.0)[0])
    same(grad(lambda x: x * grad(lambda y: x * y)(x))(X[2]), vector(4.0)[0])
    found = jvp(lambda x: x * jvp(lambda y: x + y, (X[1],), (X[1] * 0 + 1,))[1], (X[2],), (X[0],))
    same(found[1], X[0])


def test_jacobians_agree_in_both_modes_and_nest():
    def f(x):
        return (x * x.sum()).exp() + x.roll(1)

    same(jacrev(f)(X), jacfwd(f)(X))
    same(jacrev(f, chunk_size=2)(X), jacfwd(f)(X))
    same(jacrev(f, chunk_size=1)(X), jacfwd(f)(X))
    g = lambda x: (x**3).prod() + x.sin().sum()  # noqa: E731
    expected = fb.autograd.functional.hessian(g, X)
    for outer, inner in [(jacfwd, jacrev), (jacrev, jacfwd), (jacrev, jacrev), (jacfwd, jacfwd)]:
        same(outer(inner(g))(X), expected)
    same(hessian(g)(X), expected)


def test_products_with_jacobians_agree_with_the_jacobian():
    def f(x):
        return x.cumsum(0) * x.tanh()

    jacobian, v = jacrev(f)(X), vector(1.0, -2.0, 0.25)
    value, product = vjp(f, X)
    same(value, f(X))
    same(product(v)[0], v @ jacobian)
    same(product(2 * v)[0], 2 * v @ jacobian)
    same(jvp(f, (X,), (v,))[1], jacobian @ v)
    value, derivative = linearize(f, X)
    same(value, f(X))
    same(derivative(v), jacobian @ v)
    same(vmap(derivative)(fb.eye(3, dtype=fb.float64)), jacobian.T)


def test_gradients_have_the_structure_of_the_arguments():
    def f(weights, x, *, scale):
        return ((weights["w"] @ x + weights["b"][0]) * scale).sum(), {"x": x * 2}

    weights = {"w": X * 2, "b": [vector(1.0)[0]]}
    found, (value, aux) = grad_and_value(f, argnums=(0, 1), has_aux=True)(weights, X, scale=3.0)
    same(found[0]["w"], 3 * X)
    same(found[0]["b"][0], vector(3.0)[0])
    same(found[1], 6 * X)
    same(value, f(weights, X, scale=3.0)[0])
    same(aux["x"], X * 2)
    assert not value.requires_grad


def test_results_are_differentiable_from_outside():
    x = X.clone().requires_grad_()
    grad(lambda x: (x**3).sum())(x).sum().backward()
    same(x.grad, 6 * X)
    x = X.clone().requires_grad_()
    vmap(lambda y: y * x.sum())(x).sum().backward()
    same(x.grad, 2 * X.sum() * fb.ones(3, dtype=fb.float64))
    w = vector(2.0, requires_grad=True)
    jvp(lambda y: w * y.sin(), (X,), (X,))[1].sum().backward()
    same(w.grad, (X.cos() * X).sum().reshape(1))


def test_no_grad_inside_stops_one_level_and_outside_none():
    def f(x):
        with fb.no_grad():
            constant = x**2
        return (x**3 - constant).sum()

    same(grad(f)(X), 3 * X**2)
    same(grad(lambda x: grad(f)(x).sum())(X), 6 * X)
    with fb.no_grad():
        same(grad(lambda x: (x**3).sum())(X), 3 * X**2)
        assert not fb.is_grad_enabled()


def test_detach_stops_all_levels():
    same(grad(lambda x: vmap(lambda y: y.detach() * y)(x).sum())(X), X)
    same(jvp(lambda x: x.detach() * x, (X,), (fb.ones_like(X),))[1], X)


def test_mapped_dimensions_come_from_and_go_where_they_are_asked():
    x, y = fb.randn(2, 3, 4), fb.randn(3, 4, 2)
    found = vmap(lambda a, b: a + b, in_dims=(0, 2), out_dims=-1)(x, y)
    assert fb.equal(found, x.permute(1, 2, 0) + y)
    nested = vmap(vmap(lambda a, b: a @ b), in_dims=(1, 0))(x.permute(0, 1, 2), y.movedim(2, 1))
    assert fb.allclose(nested, (x.permute(1, 0, 2) * y.movedim(2, 1)).sum(-1), atol=1e-6)
    tree = vmap(lambda t: {"s": t["a"] * 2, "n": 3}, ({"a": 1},), {"s": 1, "n": None})({"a": x})
    assert tree["n"] == 3
    assert fb.equal(tree["s"], x * 2)
    assert vmap(lambda a: fb.tensor(1.0))(x).shape == (2,)
    assert vmap(lambda a: a.sum(), chunk_size=2)(y).shape == (3,)


def test_an_empty_batch_gives_an_empty_result():
    assert vmap(lambda a: a.sin().sum(0))(fb.zeros(0, 3, 4)).shape == (0, 4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: vmap(lambda a: 1.0)(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(fb.mul)(x, fb.ones(2)), ValueError, "same size"),
        (lambda x: vmap(lambda: x)(), ValueError, "no inputs"),
        (lambda x: vmap(fb.sin, (None,))(x), ValueError, "at least one Tensor"),
        (lambda x: vmap(fb.sin, 3)(x), ValueError, "in_dim=3"),
        (lambda x: vmap(fb.sin, [0])(x), ValueError, "in_dims"),
        (lambda x: vmap(fb.sin, ((0, 0),))(x), ValueError, "not compatible"),
        (lambda x: vmap(fb.sin, 0, (0, 0))(x), ValueError, "not compatible"),
        (lambda x: vmap(fb.sin, 0, "a")(x), ValueError, "out_dims"),
        (lambda x: vmap(fb.sin, 0, 5)(x), IndexError, "out of range"),
        (lambda x: vmap(fb.sin, out_dims=None)(x), ValueError, "out_dim is None"),
        (lambda x: vmap(fb.sin, chunk_size=0), ValueError, "chunk_size"),
        (lambda x: vmap(fb.sin, randomness="some"), RuntimeError, "randomness"),
        (lambda x: vmap(lambda a: a.item())(x), RuntimeError, "vmap"),
        (lambda x: vmap(lambda a: a if a > 0 else -a)(x), RuntimeError, "control flow"),
        (lambda x: vmap(lambda a: fb.nonzero(a))(x), RuntimeError, "dynamic shape"),
        (lambda x: vmap(lambda a: a + fb.rand(()))(x), RuntimeError, "randomness"),
        (lambda x: vmap(lambda a: fb.zeros(()).add_(a))(x), RuntimeError, "inplace"),
        (lambda x: grad(fb.sin)(x), RuntimeError, "scalar tensor"),
        (lambda x: grad(lambda a: 1)(x), RuntimeError, "to return a tensor"),
        (lambda x: grad(fb.sum, argnums=1)(x), RuntimeError, "positional inputs"),
        (lambda x: grad(fb.sum, argnums=(0, 0))(x), RuntimeError, "unique"),
        (lambda x: grad(lambda a: a.sum(), has_aux=True)(x), RuntimeError, "tuple"),
        (lambda x: grad(lambda a: X.mul_(a).sum())(x), RuntimeError, "captured Tensor"),
        (lambda x: vjp(lambda a: None, x), RuntimeError, "non-empty"),
        (lambda x: vjp(lambda a: 2, x), RuntimeError, "only tensors"),
        (lambda x: vjp(fb.sin, x)[1]((x, x)), RuntimeError, "structure"),
        (lambda x: jvp(fb.sin, x, x), RuntimeError, "tuple"),
        (lambda x: jvp(fb.sin, (x,), (x, x)), RuntimeError, "structure"),
        (lambda x: jvp(lambda a: x, (x,), (x,), strict=True), RuntimeError, "independent"),
        (lambda x: jacrev(fb.sin, chunk_size=0), ValueError, "chunk_size"),
        (lambda x: jacrev(fb.sin)(x + 0j), RuntimeError, "real"),
        (lambda x: functionalize(fb.sin, remove="all"), RuntimeError, "remove"),
    ],
)
def test_what_has_no_meaning_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(fb.ones(3, dtype=fb.float64))


def test_an_error_inside_leaves_no_level_behind():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: grad(lambda b: 1 / 0)(a))(X)
    assert type(fb.zeros(2)._a) is type(X._a)
    same(fb.zeros(3, dtype=fb.float64) + X, X)


def test_random_numbers_differ_or_agree_as_asked():
    fb.manual_seed(0)
    draw = lambda a: a * 0 + fb.rand(4)  # noqa: E731
    same_rows = vmap(draw, randomness="same")(fb.zeros(3))
    assert fb.equal(same_rows[0], same_rows[1])
    for f in (
        draw,
        lambda a: fb.rand_like(fb.zeros(4)),
        lambda a: fb.dropout(fb.ones(64), 0.5, True),
    ):
        rows = vmap(f, randomness="different")(fb.zeros(3))
        assert not fb.equal(rows[0], rows[1])
    nested = vmap(vmap(draw, randomness="different"), randomness="different")(fb.zeros(2, 2))
    assert len({tuple(row.tolist()) for row in nested.reshape(4, 4)}) == 4
    inner = vmap(vmap(draw, randomness="different"), randomness="same")(fb.zeros(2, 2))
    assert fb.equal(inner[0], inner[1]) and not fb.equal(inner[0][0], inner[0][1])


def test_one_seed_gives_a_batch_the_numbers_of_one_large_draw():
    fb.manual_seed(3)
    found = vmap(lambda a: fb.rand(4), randomness="different")(fb.zeros(3))
    fb.manual_seed(3)
    assert fb.equal(found, fb.rand(3, 4))


def test_writes_inside_are_seen_inside_and_reach_the_arguments():
    def f(x):
        y = x.clone()
        y[0] = 7
        y[1:].mul_(x[1:])
        return y

    same(jacrev(f)(X), fb.diag(vector(0.0, -2.0, 4.0)))
    same(jacfwd(f)(X), fb.diag(vector(0.0, -2.0, 4.0)))
    batch = fb.stack([X, X + 1])
    same(vmap(f)(batch), fb.stack([f(X), f(X + 1)]))
    vmap(lambda row: row.add_(1), in_dims=1)(batch)
    same(batch, fb.stack([X, X + 1]) + 1)
    made = grad(lambda x: fb.zeros(3, dtype=fb.float64).add_(x).square().sum())(X)
    same(made, 2 * X)


def test_functionalised_functions_compute_the_same():
    def f(x):
        y = x + x
        z = y.view(-1)
        y.add_(1)
        x.mul_(2)
        return z * z

    x, y = X.clone(), X.clone()
    same(functionalize(f)(x), f(y))
    same(x, y)
    same(jacrev(functionalize(lambda a: f(a.clone())))(X), jacrev(lambda a: f(a.clone()))(X))


class Cube(fb.autograd.Function):
    """x³ with 5x² for a gradient, to see whose it is."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, *grads):
        (x,) = ctx.saved_tensors
        return grads[0] * 5 * x**2


def test_functions_with_their_own_gradient_keep_it():
    same(grad(lambda x: Cube.apply(x).sum())(X), 5 * X**2)
    same(grad(lambda x: grad(lambda y: Cube.apply(y).sum())(x).sum())(X), 10 * X)
    same(vmap(grad(Cube.apply))(X), 5 * X**2)
    same(grad(lambda x: vmap(Cube.apply)(x).sum())(X), 5 * X**2)
    same(jvp(Cube.apply, (X,), (fb.ones_like(X),))[1], 5 * X**2)


def test_functions_without_a_separate_context_are_refused():
    class Old(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, *grads):
            return grads[0] * 2

    with pytest.raises(RuntimeError, match="setup_context"):
        grad(lambda x: Old.apply(x).sum())(X)


def test_batches_of_gradients_go_through_one_backward():
    x = X.clone().requires_grad_()
    y = x.exp() * x.sigmoid() + x.prod() + fb.logsumexp(x, 0)
    weights = fb.eye(3, dtype=fb.float64)
    rows = [fb.autograd.grad(y, x, w, retain_graph=True)[0] for w in weights]
    (found,) = fb.autograd.grad(y, x, weights, is_grads_batched=True)
    same(found, fb.stack(rows))


def test_threads_have_levels_of_their_own():
    seen = []

    def work():
        seen.append(type(fb.zeros(2)._a))

    def f(x):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x.sum()

    grad(f)(X)
    assert seen == [type(X._a)]


def test_tensors_of_levels_say_what_they_are():
    texts = []
    vmap(lambda a: grad(lambda b: texts.append(repr(b)) or b.sum())(a))(fb.ones(2, 3))
    assert texts[0].startswith("GradTrackingTensor(lvl=2, value=")
    assert "BatchedTensor(lvl=1, bdim=0, value=" in texts[0]


@pytest.mark.parametrize("dim", [0, 1])
def test_bytes_are_read_as_another_dtype_for_each_entry_of_a_batch(dim):
    x = vector(1.0, -1.0, 2.0, -2.0).reshape(2, 2)
    result = vmap(lambda row: row.view(fb.int64), in_dims=dim, out_dims=dim)(x)
    assert fb.equal(result, x.view(fb.int64))
    halves = vmap(lambda row: row.view(fb.int32))(x)
    assert fb.equal(halves, x.view(fb.int32))


def test_bytes_are_read_within_nested_transforms():
    x = vector(3.0, -4.0).reshape(2, 1)
    signs = vmap(grad(lambda row: fb.copysign(2 * row, row).sum()))(x)
    assert fb.equal(signs, fb.full((2, 1), 2.0, dtype=fb.float64))
    value, tangent = jvp(lambda row: row.view(fb.int64), (x,), (x,))
    assert fb.equal(value, x.view(fb.int64)) and not tangent.any()
