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


def test_every_name_is_pytorchs() -> None:
    assert all(hasattr(torch.special, name) for name in fb.special.__all__)
