"""Bessel functions, incomplete gamma functions, zeta and orthogonal polynomials agree with PyTorch.

PyTorch has no derivatives for most of them: values are compared with its own, derivatives by
differences.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
scipy_special = pytest.importorskip("scipy.special", reason="it has more digits than PyTorch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, ours_of  # noqa: E402

BESSEL = ("i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1")
BESSEL_RIGHT = (
    *("bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
)
POLYNOMIALS = (
    *(f"{kind}chebyshev_polynomial_{letter}" for kind in ("", "shifted_") for letter in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he"),
    *("laguerre_polynomial_l", "legendre_polynomial_p"),
)
SCIPY = {
    **{f"bessel_{kind}{n}": f"{kind}{n}" for kind in "jy" for n in (0, 1)},
    **{f"modified_bessel_k{n}": f"k{n}" for n in (0, 1)},
    **{f"scaled_modified_bessel_k{n}": f"k{n}e" for n in (0, 1)},
}
REACH = [0.0, 1e-9, 1e-3, 0.5, 1.0, 1.99, 2.01, 5.0, 12.5, 24.9, 25.1, 60.0, 300.0]


def f64(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [*BESSEL, *BESSEL_RIGHT])
def test_bessel_functions_agree(name: str, device: str) -> None:
    values = REACH if name in BESSEL_RIGHT else [*REACH, *(-v for v in REACH)]
    x = f64(*values, math.nan)
    found = getattr(fb.special, name)(ours_of(x, device)).tolist()
    exact = getattr(scipy_special, SCIPY.get(name, name))(x.numpy()).tolist()
    for a, b in zip(found, exact, strict=True):
        assert a == pytest.approx(b, rel=1e-12, abs=1e-15, nan_ok=True)
    theirs = getattr(torch.special, name)(x).tolist()
    for a, b in zip(found, theirs, strict=True):
        # PyTorch's own have eight digits around 5.
        assert a == pytest.approx(b, rel=2e-7, abs=2e-8, nan_ok=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [*BESSEL, "modified_bessel_i0", "spherical_bessel_j0"])
def test_dtypes_agree(name: str, device: str) -> None:
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bool):
        x = torch.tensor([0, 1, 1], dtype=dtype)
        theirs = getattr(torch.special, name)(x)
        assert_same(getattr(fb.special, name)(ours_of(x, device)), theirs, 1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["i1", "i1e", "bessel_j1"])
def test_slopes_of_order_one_at_zero_are_a_half(name: str, device: str) -> None:
    x = fb.zeros(1, dtype=fb.float64, device=device, requires_grad=True)
    getattr(fb.special, name)(x).backward()
    assert x.grad.tolist() == [0.5]


@pytest.mark.parametrize("device", DEVICES)
def test_i0_and_i1_have_the_derivatives_of_pytorch(device: str) -> None:
    x = f64(-3.0, -0.5, 0.25, 1.0, 7.0).requires_grad_()
    for name in ("i0", "i0e", "i1", "i1e"):
        check(lambda t, x, n=name: getattr(t.special, n)(x), (x,), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions_agree(name: str, device: str) -> None:
    a = f64(1e-3, 0.5, 1.0, 7.5, 80.0, 99.0, 101.0, 500.0, 1e4).reshape(-1, 1)
    x = f64(1e-5, 0.3, 1.0, 8.0, 75.0, 120.0, 520.0, 9900.0, 10100.0)
    found = getattr(fb, name)(ours_of(a, device), ours_of(x, device))
    exact = getattr(scipy_special, "gammainc" if name == "igamma" else "gammaincc")
    assert_same(found, torch.from_numpy(exact(a.numpy(), x.numpy())), 1e-12)
    assert_same(found, getattr(torch, name)(a, x), 1e-8)  # PyTorch's has nine digits


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_limits_of_incomplete_gamma_functions_agree(name: str, device: str) -> None:
    inf, nan = math.inf, math.nan
    a = f64(1.0, 2.0, 0.0, 0.0, 5.0, inf, 2.0, -1.0, 2.0, nan, inf)
    x = f64(0.0, inf, 0.0, 1.0, -1.0, 3.0, 0.0, 1.0, nan, 1.0, inf)
    theirs = getattr(torch, name)(a, x)
    assert_same(getattr(fb, name)(ours_of(a, device), ours_of(x, device)), theirs)


@pytest.mark.parametrize("device", DEVICES)
def test_incomplete_gamma_has_a_gradient_in_its_second_argument(device: str) -> None:
    a, x = f64(0.5, 2.0, 9.0), f64(0.25, 3.0, 8.0).requires_grad_()
    for name in ("igamma", "igammac"):
        check(lambda t, a, x, n=name: getattr(t, n)(a, x), (a, x), device)


@pytest.mark.parametrize("device", DEVICES)
def test_zeta_agrees(device: str) -> None:
    x = f64(1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 30.0).reshape(-1, 1)
    q = f64(0.25, 1.0, 7.5, 100.0, -2.0, -1.5, 0.0)
    theirs = torch.special.zeta(x, q)
    ours = fb.special.zeta(ours_of(x, device), ours_of(q, device))
    for a, b in zip(ours.flatten().tolist(), theirs.flatten().tolist(), strict=True):
        assert a == pytest.approx(b, rel=1e-12, nan_ok=True)
    q = f64(0.25, 3.0).requires_grad_()
    check(lambda t, q: t.special.zeta(2.5, q), (q,), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_agree(name: str, device: str) -> None:
    x = f64(-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 3.0).reshape(-1, 1)
    n = torch.tensor([-1, 0, 1, 2, 3, 6, 9])
    theirs = getattr(torch.special, name)(x, n)
    assert_same(getattr(fb.special, name)(ours_of(x, device), ours_of(n, device)), theirs)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_have_derivatives(name: str) -> None:
    x = fb.tensor([-0.6, 0.3, 1.7], dtype=fb.float64, requires_grad=True)
    function = getattr(fb.special, name)
    assert fb.autograd.gradcheck(lambda x: function(x, 4), (x,))


def test_fractions_of_degrees_are_dropped_and_a_number_may_be_the_argument() -> None:
    n = fb.tensor([3.9, 2.0])
    assert fb.special.chebyshev_polynomial_t(0.5, n).tolist() == [-1.0, -0.5]
    with pytest.raises(TypeError, match="must be Tensor"):
        fb.special.chebyshev_polynomial_t(0.5, 3)
