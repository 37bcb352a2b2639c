"""Special functions agree with PyTorch in values, both derivatives, dtypes and errors."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

NAN, INF = math.nan, math.inf


def f64(*values: float, grad: bool = True) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


REAL = f64(-3.7, -1.25, -0.3, 0.2, 0.51, 1.0, 1.9, 2.5, 7.25)
INSIDE = f64(-0.99, -0.5, -1e-3, 0.2, 0.7, 0.999)
POSITIVE = f64(0.1, 0.75, 1.5, 2.25, 6.5, 30.0)

CALLS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("erfc", lambda t, x: t.erfc(x), (REAL,)),
    ("erfinv", lambda t, x: t.erfinv(x), (INSIDE,)),
    ("lgamma", lambda t, x: t.lgamma(x), (POSITIVE,)),
    ("mvlgamma", lambda t, x: t.mvlgamma(x, 3), (f64(1.5, 2.25, 9.0),)),
    ("frac", lambda t, x: t.frac(x), (REAL,)),
    ("nan_to_num", lambda t, x: t.nan_to_num(x, 1.5, -2), (f64(NAN, INF, -1.0, -INF),)),
    (
        "nan_to_num",
        lambda t, x: t.nan_to_num(x, math.inf, -math.inf, 2.5),
        (f64(NAN, INF, -1.0, -INF),),
    ),
    ("exp2", lambda t, x: t.exp2(x), (REAL,)),
    ("logit", lambda t, x: t.logit(x), (f64(0.1, 0.5, 0.9),)),
    ("logit eps", lambda t, x: t.logit(x, 0.2), (f64(0.1, 0.5, 0.9),)),
    ("xlogy", lambda t, x, y: t.xlogy(x, y), (REAL, f64(*range(1, 10)))),
    ("xlogy at 0", lambda t, x, y: t.xlogy(x, y), (f64(0.0, -0.0, 0.0, 1.0), f64(0.5, 3, 1, 2))),
    ("xlog1py at 0", lambda t, x, y: t.special.xlog1py(x, y), (f64(0.0, 0.0), f64(-0.5, 3.0))),
    ("xlogy number", lambda t, x: t.xlogy(x, 3.0), (REAL,)),
    ("hypot", lambda t, x, y: t.hypot(x, y), (REAL, f64(*range(1, 10)))),
    ("positive", lambda t, x: t.positive(x) * 2, (REAL,)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in CALLS])
def test_values_and_both_derivatives_agree(call: Any, operands: Any, device: str) -> None:
    check(call, operands, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_polygamma_and_its_derivatives_agree(n: int, device: str) -> None:
    # PyTorch's own trigamma has nine digits.
    check(lambda t, x: t.polygamma(n, x), (REAL,), device, 1e-8)
    check(lambda t, x: x.polygamma(n), (POSITIVE,), device, 1e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_digamma_and_its_derivatives_agree(device: str) -> None:
    check(lambda t, x: t.digamma(x), (REAL,), device, 1e-8)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "name", ["erfc", "erfinv", "lgamma", "digamma", "frac", "nan_to_num", "signbit", "exp2"]
)
def test_corners_agree(name: str, device: str) -> None:
    x = f64(0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, -2.0, 1e-300, 1e10, -1e-5, grad=False)
    if name == "frac":
        x = x[~x.isinf()]  # PyTorch: nan on some processors, 0 on others
    assert_same(getattr(fb, name)(ours_of(x, device)), getattr(torch, name)(x))


@pytest.mark.parametrize("device", DEVICES)
def test_tail_of_erfc_keeps_its_relative_precision(device: str) -> None:
    for x in (0.5, 0.6, 1.0, 3.0, 5.9, 6.1, 12.6, 20.0, 26.0):
        found = fb.erfc(fb.tensor(x, dtype=fb.float64, device=device)).item()
        assert found == pytest.approx(math.erfc(x), rel=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_erfinv_inverts_erf_near_its_ends(device: str) -> None:
    x = f64(1 - 1e-10, -1 + 1e-12, 1 - 1e-15, grad=False)
    assert_same(fb.erfinv(ours_of(x, device)), torch.erfinv(x), 1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_poles_of_even_derivatives_of_digamma_are_negative(device: str) -> None:
    x = f64(0.0, -1.0, -2.0, grad=False)
    assert_same(fb.polygamma(2, ours_of(x, device)), torch.polygamma(2, x))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "name", ["erfc", "erfinv", "lgamma", "digamma", "exp2", "nan_to_num", "signbit"]
)
def test_dtypes_agree(name: str, dtype: str) -> None:
    x = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype))
    assert_same(getattr(fb, name)(ours_of(x)), getattr(torch, name)(x), 1e-6)


@pytest.mark.parametrize("name", ["erfc", "erfinv", "frac", "lgamma", "digamma", "nan_to_num"])
def test_in_place_forms_agree(name: str) -> None:
    x = f64(0.25, 0.5, grad=False)
    ours = ours_of(x)
    assert getattr(ours, f"{name}_")() is ours
    assert_same(ours, getattr(x, f"{name}_")())


def test_polygamma_in_place_agrees() -> None:
    assert_same(ours_of(POSITIVE.detach()).polygamma_(2), POSITIVE.detach().polygamma(2))


def test_mvlgamma_of_integers_is_floating() -> None:
    assert_same(fb.mvlgamma(fb.tensor([3, 4]), 2), torch.mvlgamma(torch.tensor([3, 4]), 2), 1e-6)


def test_hypot_does_not_overflow() -> None:
    big = fb.tensor([3e300, INF, 0.0], dtype=fb.float64)
    other = fb.tensor([4e300, NAN, 0.0], dtype=fb.float64)
    assert fb.hypot(big, other).tolist() == [5e300, INF, 0.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.polygamma(-1, t.ones(1)), "does not support negative n"),
        (lambda t: t.mvlgamma(t.ones(1), 0), "greater than or equal to 1"),
        (lambda t: t.frac(t.tensor([1])), "not implemented"),
        (lambda t: t.positive(t.tensor([True])), "on a bool tensor is not supported"),
        (lambda t: t.erfc(1.0), "must be Tensor"),
        (lambda t: t.tensor([1]).erfc_(), "can't be cast to the desired output type"),
    ],
)
def test_errors_have_the_class_of_pytorch(call: Any, text: str) -> None:
    check_error(call, (), text)


def test_gradients_of_x_log_y_at_corners_are_those_of_pytorch() -> None:
    corners = [0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan]
    pairs = torch.tensor(list(product(corners, corners)), dtype=torch.float64)
    found = []
    for t in (torch, fb):
        x, y = (t.tensor(pairs[:, i].tolist(), dtype=t.float64, requires_grad=True) for i in (0, 1))
        result = t.xlogy(x, y)
        grads = t.autograd.grad(result.sum(), (x, y), create_graph=True)
        again = t.autograd.grad(sum(g.sum() for g in grads), (x, y))
        found.append([result, *grads, *again])
    assert_same(found[1], found[0])
    with pytest.raises(NotImplementedError):
        fb.xlogy(fb.ones(1, dtype=fb.complex64), fb.ones(1))
