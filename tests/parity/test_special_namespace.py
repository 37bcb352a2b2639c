"""The names of ``torch.special`` agree with PyTorch in values and both derivatives."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, ours_of  # noqa: E402

INF, NAN = math.inf, math.nan


def f64(*values: float, grad: bool = True) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


REAL = f64(-3.7, -1.25, -0.3, 0.2, 0.51, 1.0, 1.9, 2.5, 4.75, 5.25, 9.0)
POSITIVE = f64(0.1, 0.75, 1.5, 2.25, 6.5, 30.0)
PROBABILITIES = f64(1e-9, 5e-4, 0.02, 0.3, 0.5, 0.9, 0.9999)
EDGES = f64(-INF, -30.0, 0.0, 1.0, 30.0, INF, NAN, grad=False)

CALLS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("entr", lambda s, x: s.entr(x), (POSITIVE,)),
    ("erfcx", lambda s, x: s.erfcx(x), (REAL,)),
    ("log_ndtr", lambda s, x: s.log_ndtr(x), (REAL,)),
    ("ndtr", lambda s, x: s.ndtr(x), (REAL,)),
    ("xlog1py", lambda s, x, y: s.xlog1py(x, y), (REAL[:6].detach().requires_grad_(), POSITIVE)),
    ("xlog1py number", lambda s, x: s.xlog1py(x, 2.0), (REAL,)),
    ("expit", lambda s, x: s.expit(x), (REAL,)),
    ("gammaln", lambda s, x: s.gammaln(x), (POSITIVE,)),
    ("softmax", lambda s, x: s.softmax(x, 0), (REAL,)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in CALLS])
def test_values_and_both_derivatives_agree(call: Any, operands: Any, device: str) -> None:
    check(lambda t, *xs: call(t.special, *xs), operands, device)


def test_the_inverse_of_the_normal_distribution_agrees() -> None:
    # PyTorch's second derivative of ndtri has few digits; values and slopes are compared.
    theirs = PROBABILITIES.detach().requires_grad_()
    ours = ours_of(theirs)
    assert_same(fb.special.ndtri(ours), torch.special.ndtri(theirs), 1e-9)
    torch.special.ndtri(theirs).sum().backward()
    fb.special.ndtri(ours).sum().backward()
    assert_same(ours.grad, theirs.grad, 1e-8)


@pytest.mark.parametrize("name", ["entr", "erfcx", "log_ndtr", "ndtr", "ndtri"])
@pytest.mark.parametrize("device", DEVICES)
def test_edges_and_dtypes_agree(name: str, device: str) -> None:
    for x in (EDGES, EDGES.float(), torch.tensor([0, 1, 2])):
        tolerance = 1e-9 if x.dtype is torch.float64 else 1e-5
        ours = getattr(fb.special, name)(ours_of(x.detach(), device))
        assert_same(ours, getattr(torch.special, name)(x), tolerance)


@pytest.mark.parametrize("device", DEVICES)
def test_airys_function_agrees_and_has_no_gradient(device: str) -> None:
    # PyTorch's has six digits near -2; the true values are SciPy's.
    from scipy.special import airy

    x = [-60.0, -25.3, -9.1, -8.9, -5.0, -2.0988, -1.0, 0.0, 0.9, 1.1, 5.0, 30.0, 103.0, 120.0]
    found = fb.special.airy_ai(fb.tensor(x, dtype=fb.float64, device=device))
    assert found.tolist() == pytest.approx(airy(x)[0].tolist(), rel=1e-12, abs=1e-300)
    assert_same(found, torch.special.airy_ai(torch.tensor(x, dtype=torch.float64)), 1e-5)
    edges = fb.special.airy_ai(fb.tensor([INF, -INF, NAN], device=device))
    assert_same(edges, torch.special.airy_ai(torch.tensor([INF, -INF, NAN])), 0)
    assert not fb.special.airy_ai(fb.ones(1, device=device, requires_grad=True)).requires_grad
    for dtype in (torch.float32, torch.int64, torch.bool):
        given = torch.tensor([0, 1]).to(dtype)
        assert_same(fb.special.airy_ai(ours_of(given, device)), torch.special.airy_ai(given), 1e-6)


@pytest.mark.parametrize("space", ["linalg", "special", "fft"])
def test_every_public_name_of_pytorch_is_here(space: str) -> None:
    theirs, ours = getattr(torch, space), getattr(fb, space)
    public = {n for n in dir(theirs) if not n.startswith("_")} | set(getattr(theirs, "__all__", ()))
    helpers = {"Tensor", "torch", "common_args", "common_notes", "factory_common_args"}
    helpers |= {"multi_dim_common"}
    assert sorted(n for n in public - helpers if not hasattr(ours, n)) == []


def test_a_gradient_that_pytorch_lacks_raises_its_class() -> None:
    for library in (torch, fb):
        x = library.tensor([1.5], requires_grad=True)
        with pytest.raises(NotImplementedError, match="derivative|gradient"):
            library.special.zeta(x, library.tensor([2.0])).backward()


BEYOND = {"betainc", "betaincinv", "gammaincinv", "gammainccinv"}  # SciPy's names
BEYOND |= {"log_betainc", "log_gammainc", "log_gammaincc", "log_i0"}


def test_every_name_is_pytorchs_or_of_a_quantile() -> None:
    found = {name for name in fb.special.__all__ if not hasattr(torch.special, name)}
    assert found == BEYOND
