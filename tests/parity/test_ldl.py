"""Factors of symmetric and Hermitian indefinite matrices agree with LAPACK's through PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, ours_of  # noqa: E402

DTYPES = [torch.float64, torch.float32, torch.complex128, torch.complex64]


def matrix(n: int, dtype: Any, hermitian: bool, kind: str) -> Any:
    torch.manual_seed(n)
    a = torch.randn(n, n, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    if kind == "zero diagonal":
        a.diagonal().zero_()
    if kind == "zero row" and n:
        a[0], a[:, 0] = 0, 0
    return a


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["full", "zero diagonal", "zero row"])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_and_solutions_agree(dtype: Any, hermitian: bool, kind: str, device: str) -> None:
    tolerance = 1e-9 if dtype in (torch.float64, torch.complex128) else 2e-3
    for n in (1, 2, 3, 5, 8):
        a = matrix(n, dtype, hermitian, kind)
        b = torch.randn(n, 2, dtype=dtype)
        theirs = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
        ours = fb.linalg.ldl_factor_ex(ours_of(a, device), hermitian=hermitian)
        for mine, reference in zip(ours, theirs, strict=True):
            assert_same(mine, reference, tolerance)
        if not int(theirs.info):
            x = fb.linalg.ldl_solve(*ours[:2], ours_of(b, device), hermitian=hermitian)
            y = torch.linalg.ldl_solve(*theirs[:2], b, hermitian=hermitian)
            assert_same(x, y, tolerance)


@pytest.mark.parametrize("device", DEVICES)
def test_batches_broadcast_and_may_be_empty(device: str) -> None:
    a = torch.stack([matrix(3, torch.float64, False, kind) for kind in ("full", "zero diagonal")])
    for b in (torch.randn(3, 2), torch.randn(4, 1, 3, 2), torch.randn(2, 3, 0)):
        b = b.double()
        theirs = torch.linalg.solve(a, b)  # PyTorch's ldl_solve reads pivots beyond their end here
        ours = fb.linalg.ldl_solve(*fb.linalg.ldl_factor(ours_of(a, device)), ours_of(b, device))
        assert_same(ours, theirs, 1e-9)
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        ours = fb.linalg.ldl_factor_ex(fb.zeros(*shape, device=device))
        theirs = torch.linalg.ldl_factor_ex(torch.zeros(*shape))
        assert [tuple(x.shape) for x in ours] == [tuple(x.shape) for x in theirs]


def test_only_the_lower_triangle_is_read() -> None:
    a = matrix(4, torch.float64, False, "full")
    first, second = (fb.linalg.ldl_factor(ours_of(x)) for x in (a, a.tril()))
    assert first.LD.tolist() == second.LD.tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.linalg.ldl_factor(t.zeros(2, 3)),
        lambda t: t.linalg.ldl_factor(t.zeros(3)),
        lambda t: t.linalg.ldl_factor(t.zeros(2, 2, dtype=t.int64)),
        lambda t: t.linalg.ldl_factor(t.zeros(2, 2, dtype=t.float16)),
        lambda t: t.linalg.ldl_factor(t.zeros(2, 2)),
        lambda t: t.linalg.ldl_factor_ex(t.zeros(2, 2, 2), check_errors=True),
        lambda t: t.linalg.ldl_solve(*t.linalg.ldl_factor(t.eye(2)), t.zeros(3, 1)),
        lambda t: t.linalg.ldl_solve(t.eye(2), t.ones(2), t.zeros(2, 1)),
        lambda t: t.linalg.ldl_solve(t.eye(2), t.ones(3, dtype=t.int32), t.zeros(2, 1)),
        lambda t: t.linalg.ldl_solve(*t.linalg.ldl_factor(t.eye(2)), t.zeros(2, 1).double()),
        lambda t: t.linalg.ldl_factor(t.eye(2).requires_grad_()).LD.sum().backward(),
    ],
)
def test_wrong_arguments_are_refused_alike(call: Any) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - the class is what is compared
        call(torch)
    with pytest.raises(type(theirs.value)):
        call(fb)
