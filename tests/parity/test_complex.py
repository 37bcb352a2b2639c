"""Complex tensors agree with PyTorch in values, dtypes, gradients of both orders and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from complex_numbers import Call, assert_close, both, check  # noqa: E402

C, R, P = ((2, 3), "c"), ((2, 3), "r"), ((2, 3), "p")

CALLS: dict[str, tuple[Call, list[Any]]] = {
    **{
        name: (lambda t, x, name=name: getattr(t, name)(x), [C])
        for name in (
            *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sigmoid"),
            *("neg", "square", "abs", "sgn", "angle", "real", "imag", "view_as_real", "sum"),
            *("mean", "prod", "conj", "conj_physical", "var", "std"),
        )
    },
    "add": (lambda t, x, y: x + y, [C, C]),
    "sub mixed": (lambda t, x, y: x - y, [C, R]),
    "mul": (lambda t, x, y: x * y, [C, C]),
    "mul real by complex": (lambda t, x, y: x * y, [R, C]),
    "mul broadcast": (lambda t, x, y: x * y, [C, ((3,), "r")]),
    "mul complex number": (lambda t, x: x * (2 - 3j), [R]),
    "div": (lambda t, x, y: x / y, [C, C]),
    "div real by complex": (lambda t, x, y: x / y, [R, C]),
    "div complex by real": (lambda t, x, y: x / y, [C, R]),
    "pow": (lambda t, x, y: x**y, [C, C]),
    "pow real base": (lambda t, x, y: x**y, [P, C]),
    "pow number": (lambda t, x: x**3, [C]),
    "pow complex number": (lambda t, x: x ** (1 + 2j), [C]),
    "number to the power": (lambda t, x: 2.0**x, [C]),
    "matmul": (lambda t, x, y: x @ y, [C, ((3, 2), "c")]),
    "matmul vectors": (lambda t, x, y: x @ y, [((3,), "c"), ((3,), "c")]),
    "matmul batch by matrix": (lambda t, x, y: x @ y, [((2, 2, 3), "c"), ((3, 2), "c")]),
    "matmul vector by batch": (lambda t, x, y: x @ y, [((3,), "c"), ((2, 3, 2), "c")]),
    "addmm": (
        lambda t, b, x, y: t.addmm(b, x, y, beta=2, alpha=0.5),
        [((2, 2), "c"), C, ((3, 2), "c")],
    ),
    "linear": (lambda t, x, w: t.nn.functional.linear(x, w), [C, ((4, 3), "c")]),
    "einsum": (lambda t, x, y: t.einsum("ij,kj->ik", x, y), [C, C]),
    "outer": (lambda t, x, y: t.outer(x, y), [((2,), "c"), ((3,), "c")]),
    "prod of dim": (lambda t, x: t.prod(x, 1), [C]),
    "cumprod": (lambda t, x: t.cumprod(x, 1), [C]),
    "cumsum": (lambda t, x: t.cumsum(x, 0), [C]),
    "var of dim": (lambda t, x: t.var(x, 1, unbiased=False), [C]),
    "where": (lambda t, x, y: t.where(x.abs() > 0.9, x, y), [C, C]),
    "complex": (lambda t, x, y: t.complex(x, y), [R, ((3,), "r")]),
    "polar": (lambda t, x, y: t.polar(x, y), [P, R]),
    "view_as_complex": (lambda t, x: t.view_as_complex(x), [((3, 2), "r")]),
    "adjoint": (lambda t, x: t.adjoint(x), [((2, 2, 3), "c")]),
    "mH": (lambda t, x: x.mH @ x, [C]),
    "H": (lambda t, x: x.H @ x, [C]),
    "real cast": (lambda t, x: x.to(t.complex128) * 1j, [R]),
    "cov": (lambda t, x: t.cov(x), [C]),
    "cov weighted": (
        lambda t, x, w: t.cov(x, fweights=t.tensor([1, 2, 1]), aweights=w),
        [C, ((3,), "p")],
    ),
    "corrcoef": (lambda t, x: t.corrcoef(x), [C]),
    "logsumexp": (lambda t, x: t.logsumexp(x * 5, 1), [C]),
    "norm": (lambda t, x: t.norm(x), [C]),
    "norm 3": (lambda t, x: t.norm(x, 3, 1), [C]),
    "angle of real": (lambda t, x: t.angle(x) + x * 1, [R]),
    "index": (lambda t, x: x[:, [0, 2]] * x[1, 1], [C]),
    "cat and flip": (lambda t, x, y: t.cat([x.flip(0), y], 1), [C, C]),
    "softmax-like": (lambda t, x: x.exp() / x.exp().sum(1, keepdim=True), [C]),
    "write into the real part": (lambda t, x, y: _write(t, x, y), [C, R]),
    "write through view_as_complex": (
        lambda t, x, z: _write_pairs(t, x, z),
        [((3, 2), "r"), ((3,), "c")],
    ),
}


def _write(t: Any, x: Any, y: Any) -> Any:
    z = x * 2
    z.real.mul_(y)
    z.imag[1:] = y[1:] ** 2
    return z * z


def _write_pairs(t: Any, x: Any, z: Any) -> Any:
    y = x * 1
    t.view_as_complex(y)[1:].mul_(z[1:])
    return y.sin()


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("name", CALLS)
def test_values_and_both_derivatives_agree(name: str) -> None:
    check(*CALLS[name])


@pytest.mark.parametrize("name", ["abs", "sgn", "angle"])
def test_gradients_at_zero_are_zero_as_in_pytorch(name: str) -> None:
    found = []
    for t in (fb, torch):
        x = t.zeros(2, dtype=t.complex128, requires_grad=True)
        result = getattr(t, name)(x)
        (g,) = t.autograd.grad(result, x, t.ones_like(result))
        found.append(g)
    assert_close(*found)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_infinite_parts_stay_apart(dtype: str) -> None:
    for device in ("cpu", "ref"):
        x = fb.tensor([complex(math.inf, 2), complex(-1, -math.inf)], device=device)
        x = x.to(getattr(fb, dtype))
        assert x.real.tolist() == [math.inf, -1] and x.imag.tolist() == [2, -math.inf]
        assert fb.complex(x.real, x.imag).tolist() == x.tolist()
        assert x.conj().tolist() == [v.conjugate() for v in x.tolist()]


def test_real_and_imag_alias_the_memory_of_any_strides() -> None:
    results = []
    for t in (fb, torch):
        base = t.arange(24, dtype=t.float64).reshape(3, 4, 2)
        z = t.view_as_complex(base)
        part = z.t()[1:, ::2]
        part.real = -1
        part.imag[0] = 5
        t.view_as_real(z)[0, 0, 1] = 7
        results.append((base, part, part.real.stride(), part.imag.storage_offset()))
    assert_close(results[0][0], results[1][0])
    assert_close(results[0][1], results[1][1])
    assert results[0][2:] == results[1][2:]


def test_hooks_and_retained_gradients_show_what_pytorch_shows() -> None:
    found = []
    for t in (fb, torch):
        seen = []
        x = t.tensor([1 + 2j, -3 + 0.5j], dtype=t.complex128, requires_grad=True)
        x.register_hook(lambda g, seen=seen: seen.append(g))
        y = x * (2 - 1j)
        y.retain_grad()
        y.register_hook(lambda g, seen=seen: seen.append(g) or g * 1j)
        y.grad_fn.register_hook(lambda ins, outs, seen=seen: seen.extend((ins[0], outs[0])))
        (y * y).abs().sum().backward()
        found.append([*seen, y.grad, x.grad])
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs)


def test_the_backward_of_a_function_gets_and_gives_what_pytorch_does() -> None:
    found = []
    for t in (fb, torch):

        class Square(t.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return g * (2 * x).conj()

        x = t.tensor([1 + 2j, -3 + 0.5j], dtype=t.complex128, requires_grad=True)
        (g,) = t.autograd.grad(Square.apply(x * 1j).abs().sum(), x, create_graph=True)
        (h,) = t.autograd.grad(g.imag.sum(), x)
        found.append([g, h])
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs)


def test_gradients_accumulate_in_a_complex_leaf() -> None:
    found = []
    for t in (fb, torch):
        x = t.tensor([1 + 2j], dtype=t.complex128, requires_grad=True)
        for _ in range(2):
            (x * x * 1j).real.sum().backward()
        found.append(x.grad)
    assert_close(*found)


def test_conj_of_a_real_tensor_is_the_tensor() -> None:
    x = fb.ones(2)
    assert x.conj() is x and x.real is x and x.resolve_conj() is x


def test_in_place_forms() -> None:
    for name in ("conj_physical_", "sgn_"):
        ours, theirs = both((2, 3), "c")
        assert_close(
            getattr(ours.detach().clone(), name)(), getattr(theirs.detach().clone(), name)()
        )


@pytest.mark.parametrize("kind", ["c", "r"])
def test_predicates_agree(kind: str) -> None:
    ours, theirs = both((2, 3), kind)
    assert ours.is_complex() == theirs.is_complex()
    assert fb.isreal(ours).tolist() == torch.isreal(theirs).tolist()
    assert fb.isreal(fb.tensor([1])).tolist() == [True]
    assert not ours.is_conj() and not ours.is_neg()


ERRORS: dict[str, Call] = {
    "imag of real": lambda t: t.ones(2).imag,
    "view_as_real of real": lambda t: t.view_as_real(t.ones(2)),
    "view_as_complex of complex": lambda t: t.view_as_complex(t.ones(2, dtype=t.complex64)),
    "view_as_complex last size": lambda t: t.view_as_complex(t.ones(3)),
    "view_as_complex scalar": lambda t: t.view_as_complex(t.tensor(1.0)),
    "view_as_complex last stride": lambda t: t.view_as_complex(t.ones(2, 3).t()),
    "view_as_complex odd stride": lambda t: t.view_as_complex(t.ones(3, 3)[:, :2]),
    "view_as_complex odd offset": lambda t: t.view_as_complex(t.ones(5)[1:3]),
    "complex of integers": lambda t: t.complex(t.ones(2).long(), t.ones(2).long()),
    "complex of two dtypes": lambda t: t.complex(t.ones(2), t.ones(2).double()),
    "polar of two dtypes": lambda t: t.polar(t.ones(2), t.ones(2).double()),
    "implicit gradient": lambda t: t.ones((), dtype=t.complex64, requires_grad=True).backward(),
    "real gradient of complex": lambda t: (
        t.ones(2, dtype=t.complex64, requires_grad=True).exp().backward(t.ones(2))
    ),
    "adjoint of vector": lambda t: t.adjoint(t.ones(2)),
    "H of vector": lambda t: t.ones(2, 2, 2).H,
    "integer requires grad": lambda t: t.ones(2).long().requires_grad_(),
    "sign of complex": lambda t: t.sign(t.ones(2, dtype=t.complex64)),
    "digamma of complex": lambda t: t.digamma(t.ones(2, dtype=t.complex64)),
    "erf of complex": lambda t: t.erf(t.ones(2, dtype=t.complex64)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_both_raise_the_same_class(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - the class is what is compared
        ERRORS[name](torch)
    with pytest.raises(type(theirs.value)):
        ERRORS[name](fb)


@pytest.mark.parametrize("check_of", ["gradcheck", "gradgradcheck"])
def test_gradcheck_takes_complex_inputs_and_outputs(check_of: str) -> None:
    x, y = both((2,), "c")[0], both((2,), "r", 1)[0]
    check = getattr(fb.autograd, check_of)
    assert check(lambda x, y: (x * y).exp() + x.conj() * y.sin(), (x, y))
    assert check(lambda x, y: ((x * y).abs(), x.angle()), (x, y))


def test_gradcheck_finds_a_forgotten_conjugate() -> None:
    class Wrong(fb.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    x = both((2,), "c")[0]
    assert not fb.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)


PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e30, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("name", ["asinh", "acosh", "atanh"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_inverse_hyperbolic_functions_have_pytorchs_values_on_the_whole_plane(
    name: str, dtype: str
) -> None:
    points = [complex(a, b) for a in PARTS for b in PARTS]
    theirs = getattr(torch, name)(torch.tensor(points, dtype=getattr(torch, dtype)))
    ours = getattr(fb, name)(fb.tensor(points, dtype=getattr(fb, dtype)))
    expected = torch.view_as_real(theirs).numpy()
    tolerance = 1e-6 if dtype == "complex64" else 1e-15
    np.testing.assert_allclose(fb.view_as_real(ours).numpy(), expected, rtol=tolerance)


@pytest.mark.parametrize("name", ["asinh", "acosh", "atanh"])
def test_inverse_hyperbolic_functions_have_pytorchs_gradients(name: str) -> None:
    points = [1 + 2j, -0.3 + 0.4j, 2 - 1j, -2 - 0.5j]
    grads = []
    for library in (torch, fb):
        z = library.tensor(points, dtype=library.complex128, requires_grad=True)
        getattr(library, name)(z).abs().sum().backward()
        grads.append(z.grad.numpy())
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-14)
