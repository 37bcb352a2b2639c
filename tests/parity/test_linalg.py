"""Linear algebra agrees with PyTorch: values, shapes, both derivatives, errors.

The signs of singular vectors and eigenvectors are left to choose. For square matrices the LAPACKs
of PyTorch and NumPy choose alike; all else is compared in what does not depend on the choice.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, flattened, ours_of, theirs_of  # noqa: E402

I = torch.tensor  # noqa: E741
S, B, T, W = (3, 3), (2, 3, 3), (4, 3), (3, 4)
EMPTY, NONE = (0, 0), (0, 3, 3)


def spd(x: Any) -> Any:
    """A positive-definite matrix that depends on all of x."""
    return x @ x.mT + x.new_ones(x.shape[-1]).diag()


def sym(x: Any) -> Any:
    return x + x.mT


def spaced(*shape: int) -> Any:
    """Numbers with well separated singular values."""
    count = torch.Size(shape).numel()
    values = (torch.arange(count, dtype=torch.float64) * 2.3 + 0.4).sin() * 1.5
    values = values.reshape(shape)
    values = values + torch.eye(*shape[-2:], dtype=torch.float64) * torch.arange(1, shape[-1] + 1)
    return values.requires_grad_()


X, XB, XT, XW = spaced(3, 3), spaced(2, 3, 3), spaced(4, 3), spaced(3, 4)
RANK1 = I([[1.0, 2.0, -1.0], [2.0, 4.0, -2.0], [0.5, 1.0, -0.5]], dtype=torch.float64)
RANK2 = I([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], dtype=torch.float64)
ZERO = torch.zeros(3, 3, dtype=torch.float64)
L = "linalg"

CALLS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("addbmm", lambda t, m, a, b: t.addbmm(m, a, b, beta=2, alpha=3), ((1, 4), B, (2, 3, 4))),
    ("baddbmm", lambda t, m, a, b: t.baddbmm(m, a, b, beta=2), ((2, 3, 4), B, (2, 3, 4))),
    ("baddbmm row", lambda t, m, a, b: m.baddbmm(a, b, alpha=0.5), ((4,), B, (2, 3, 4))),
    ("addmv", lambda t, m, a, b: t.addmv(m, a, b, beta=0.5, alpha=-1), ((4,), (4, 3), (3,))),
    ("addmv number", lambda t, m, a, b: t.addmv(m, a, b), ((), (4, 3), (3,))),
    ("addr", lambda t, m, a, b: t.addr(m, a, b, beta=3), ((1, 4), (3,), (4,))),
    ("chain_matmul", lambda t, *m: t.chain_matmul(*m), ((2, 3), (3, 5), (5, 1), (1, 4))),
    ("chain of one", lambda t, m: t.chain_matmul(m), (W,)),
    ("multi_dot", lambda t, *m: t.linalg.multi_dot(m), ((2,), (2, 5), (5, 3), (3,))),
    *[
        (f"matrix_power {n}", lambda t, x, n=n: t.matrix_power(x, n), (XB,))
        for n in (1, 2, 5, -1, -3)
    ],
    ("matrix_power 0", lambda t, x: t.matrix_power(x.detach(), 0), (XB,)),
    ("matrix_exp", lambda t, x: t.matrix_exp(x), (B,)),
    ("matrix_exp large", lambda t, x: t.linalg.matrix_exp(x * 3), (S,)),
    ("matrix_exp empty", lambda t, x: t.matrix_exp(x), (EMPTY,)),
    ("cholesky", lambda t, x: t.linalg.cholesky(spd(x)), (B,)),
    ("cholesky upper", lambda t, x: t.linalg.cholesky(spd(x), upper=True), (S,)),
    ("cholesky leaf", lambda t, x: t.cholesky(x), (spd(X.detach()).requires_grad_(),)),
    ("cholesky empty", lambda t, x: t.linalg.cholesky(x), (EMPTY,)),
    ("cholesky none", lambda t, x: t.linalg.cholesky(x), (NONE,)),
    ("cholesky_ex", lambda t, x: t.linalg.cholesky_ex(spd(x)), (B,)),
    ("cholesky_solve", lambda t, b, x: t.cholesky_solve(b, x.tril()), (T[::-1], X)),
    ("cholesky_solve upper", lambda t, b, x: t.cholesky_solve(b, x.triu(), True), ((3, 2), XB)),
    ("cholesky_inverse", lambda t, x: t.cholesky_inverse(x.tril()), (XB,)),
    ("cholesky_inverse upper", lambda t, x: t.cholesky_inverse(x.triu(), upper=True), (X,)),
    *[
        (f"qr {mode} {k}", lambda t, x, mode=mode: t.linalg.qr(x, mode), (x,))
        for mode in ("reduced", "complete")
        for k, x in (("square", X), ("wide", XW), ("batch", XB))
    ],
    ("qr tall", lambda t, x: t.linalg.qr(x), (XT,)),
    ("qr some", lambda t, x: t.qr(x), (XT,)),
    ("qr complete tall", lambda t, x: t.linalg.qr(x.detach(), "complete"), (XT,)),
    ("qr r", lambda t, x: t.linalg.qr(x.detach(), "r"), (XT,)),
    ("qr empty", lambda t, x: t.linalg.qr(x.detach()), ((0, 3),)),
    ("geqrf", lambda t, x: t.geqrf(x.detach()), (XT,)),
    ("orgqr", lambda t, x, tau: t.orgqr(x, tau), (XT, (3,))),
    ("householder batch", lambda t, x, tau: t.linalg.householder_product(x, tau), (XB, (2, 2))),
    ("ormqr", lambda t, x, u, c: t.ormqr(x.detach(), u.detach(), c.detach()), (XT, (3,), T)),
    (
        "ormqr right, transposed",
        lambda t, x, u, c: t.ormqr(x.detach(), u.detach(), c.detach(), False, True),
        (XT, (3,), W),
    ),
    ("lu_factor", lambda t, x: t.linalg.lu_factor(x), (XB,)),
    ("lu_factor wide", lambda t, x: t.linalg.lu_factor(x), (XW,)),
    ("lu_factor tall", lambda t, x: t.linalg.lu_factor(x), (XT,)),
    ("lu", lambda t, x: t.linalg.lu(x), (XB,)),
    ("lu tall", lambda t, x: t.linalg.lu(x), (XT,)),
    ("lu wide", lambda t, x: t.linalg.lu(x), (XW,)),
    ("lu_solve", lambda t, x, b: t.linalg.lu_solve(*t.linalg.lu_factor(x), b), (XB, (3, 2))),
    *[
        (
            f"lu_solve {left} {adjoint}",
            lambda t, x, b, left=left, adjoint=adjoint: t.linalg.lu_solve(
                *t.linalg.lu_factor(x), b, left=left, adjoint=adjoint
            ),
            (X, S),
        )
        for left in (True, False)
        for adjoint in (True, False)
    ],
    ("torch.lu_solve", lambda t, b, x: t.lu_solve(b, *t.linalg.lu_factor(x)), ((3, 2), X)),
    ("lu_unpack", lambda t, x: t.lu_unpack(*t.linalg.lu_factor(x)), (XW,)),
    ("solve", lambda t, x, b: t.linalg.solve(x, b), (XB, (3, 2))),
    ("solve vector", lambda t, x, b: t.linalg.solve(x, b), (X, (3,))),
    ("solve vectors", lambda t, x, b: t.linalg.solve(x, b), (XB, (2, 3))),
    ("solve right", lambda t, x, b: t.linalg.solve(x, b, left=False), (XB, (4, 3))),
    ("solve empty", lambda t, x, b: t.linalg.solve(x, b), (EMPTY, (0, 2))),
    ("solve none", lambda t, x, b: t.linalg.solve(x, b), (NONE, (3, 2))),
    ("solve_ex", lambda t, x, b: t.linalg.solve_ex(x, b), (X, (3, 2))),
    ("inv", lambda t, x: t.linalg.inv(x), (XB,)),
    ("inverse", lambda t, x: x.inverse(), (X,)),
    ("inv transposed", lambda t, x: t.linalg.inv(x.mT), (XB,)),
    ("inv_ex", lambda t, x: t.linalg.inv_ex(x), (XB,)),
    *[
        (
            f"solve_triangular {upper} {left} {unit}",
            lambda t, x, b, upper=upper, left=left, unit=unit: t.linalg.solve_triangular(
                x, b, upper=upper, left=left, unitriangular=unit
            ),
            (XB, S),
        )
        for upper in (True, False)
        for left in (True, False)
        for unit in (True, False)
    ],
    *[
        (
            f"triangular_solve {upper} {turn} {unit}",
            lambda t, b, x, upper=upper, turn=turn, unit=unit: (
                t.triangular_solve(b, x, upper, turn, unit).solution
            ),
            ((3, 2), X),
        )
        for upper in (True, False)
        for turn in (True, False)
        for unit in (True, False)
    ],
    ("pinv", lambda t, x: t.linalg.pinv(x), (XT,)),
    ("pinv wide", lambda t, x: x.pinverse(), (XW,)),
    ("pinv batch", lambda t, x: t.linalg.pinv(x), (XB,)),
    ("pinv singular", lambda t, x: t.linalg.pinv(x.detach(), rtol=1e-10), (RANK1,)),
    ("pinv hermitian", lambda t, x: t.linalg.pinv(spd(x), hermitian=True), (S,)),
    ("pinv empty", lambda t, x: t.linalg.pinv(x), ((0, 3),)),
    ("lstsq", lambda t, x, b: t.linalg.lstsq(x, b).solution, (XT, (4, 2))),
    ("lstsq batch", lambda t, x, b: t.linalg.lstsq(x, b).solution, (XB, (2, 3, 1))),
    ("lstsq vectors", lambda t, x, b: t.linalg.lstsq(x, b).solution, (XB, (2, 3))),
    ("lstsq wide", lambda t, x, b: t.linalg.lstsq(x, b).solution, (XW, (3, 2))),
    *[
        (
            f"lstsq {driver} {len(operands[1])}",
            lambda t, x, b, driver=driver: tuple(
                t.linalg.lstsq(x.detach(), b.detach(), driver=driver)
            ),
            operands,
        )
        for driver in ("gels", "gelsy", "gelsd", "gelss")
        for operands in ((XT, (4, 2)), ((1, 3, 3), (2, 3, 2)), ((2, 1, 3, 3), (1, 2, 3, 1)))
    ],
    ("det", lambda t, x: t.linalg.det(x), (XB,)),
    ("det one", lambda t, x: x.det(), ((1, 1),)),
    ("det empty", lambda t, x: t.det(x), (EMPTY,)),
    ("slogdet", lambda t, x: t.linalg.slogdet(x), (XB,)),
    ("torch.slogdet", lambda t, x: tuple(t.slogdet(x)), (X,)),
    ("logdet", lambda t, x: t.logdet(spd(x)), (B,)),
    ("logdet zero", lambda t, x: t.logdet(x), (ZERO,)),
    ("logdet negative", lambda t, x: t.logdet(x), (-torch.eye(3, dtype=torch.float64),)),
    ("svdvals", lambda t, x: t.linalg.svdvals(x), (XT,)),
    ("svdvals wide", lambda t, x: t.linalg.svdvals(x), (XW,)),
    ("eigvalsh", lambda t, x: t.linalg.eigvalsh(sym(x)), (XB,)),
    ("eigvalsh upper", lambda t, x: t.linalg.eigvalsh(sym(x), "U"), (X,)),
    ("eigvals", lambda t, x: t.linalg.eigvals(x).abs().sum(-1), (XB,)),
    *[
        (f"matrix_norm {p}", lambda t, x, p=p: t.linalg.matrix_norm(x, p), (XB,))
        for p in ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf"))
    ],
    ("matrix_norm dims", lambda t, x: t.linalg.matrix_norm(x, 1, (0, 2), True), ((2, 3, 4),)),
    ("matrix_norm nuc dims", lambda t, x: t.linalg.matrix_norm(x, "nuc", (2, 0), True), (XB,)),
    *[
        (f"vector_norm {p}", lambda t, x, p=p: t.linalg.vector_norm(x, p, 1), (T,))
        for p in (1, 2, 3, 0.5, -1, float("inf"), -float("inf"))
    ],
    ("vector_norm 0", lambda t, x: t.linalg.vector_norm(x.detach(), 0, 1), (T,)),
    ("vector_norm all", lambda t, x: t.linalg.vector_norm(x, keepdim=True), (T,)),
    ("norm", lambda t, x: t.linalg.norm(x), (B,)),
    ("norm 2", lambda t, x: t.linalg.norm(x, 2), (X,)),
    ("norm nuc", lambda t, x: t.linalg.norm(x, "nuc", (0, 1)), (XT,)),
    ("norm vector", lambda t, x: t.linalg.norm(x, 3, 0), (T,)),
    ("torch.norm nuc", lambda t, x: t.norm(x, "nuc"), (XT,)),
    ("torch.norm nuc dims", lambda t, x: x.norm("nuc", dim=(0, 2), keepdim=True), (XB,)),
    ("torch.norm fro", lambda t, x: x.norm("fro", dim=(0, 1)), (T,)),
    ("torch.norm inf", lambda t, x: x.norm(float("inf"), 1), (T,)),
    *[(f"cond {p}", lambda t, x, p=p: t.linalg.cond(x, p), (XB,)) for p in (None, 2, -2, "nuc")],
    *[  # PyTorch cannot differentiate these
        (f"cond {p}", lambda t, x, p=p: t.linalg.cond(x.detach(), p), (XB,))
        for p in (1, -1, "fro", float("inf"))
    ],
    ("cond singular", lambda t, x: t.linalg.cond(x, 1), (ZERO,)),
    ("matrix_rank", lambda t, x: t.linalg.matrix_rank(x), (RANK1,)),
    ("matrix_rank 2", lambda t, x: t.linalg.matrix_rank(x), (RANK2,)),
    ("matrix_rank atol", lambda t, x: t.linalg.matrix_rank(x, atol=3.0), (XB,)),
    ("matrix_rank hermitian", lambda t, x: t.linalg.matrix_rank(sym(x), hermitian=True), (RANK1,)),
    ("tensorinv", lambda t, x: t.linalg.tensorinv(x.reshape(2, 2, 4)), (spaced(4, 4),)),
    (
        "tensorsolve",
        lambda t, x, b: t.linalg.tensorsolve(x.reshape(2, 2, 4), b),
        (spaced(4, 4), (2, 2)),
    ),
    ("cross", lambda t, x, y: t.linalg.cross(x, y), (T, (1, 3))),
    ("vecdot", lambda t, x, y: t.linalg.vecdot(x, y, dim=0), (T, T)),
    ("diagonal", lambda t, x: t.linalg.diagonal(x, offset=1), (B,)),
    ("vander", lambda t, x: t.linalg.vander(x), (S,)),
    ("vander N", lambda t, x: t.linalg.vander(x, N=5), ((4,),)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in CALLS])
def test_values_and_both_derivatives_agree(call: Any, operands: Any, device: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(call, operands, device, 1e-7)


SIGNED = [
    ("svd", lambda t, x: t.linalg.svd(x, full_matrices=False), (XB,)),
    ("torch.svd", lambda t, x: tuple(t.svd(x)), (X,)),
    ("eigh", lambda t, x: t.linalg.eigh(sym(x)), (XB,)),
    ("eigh upper", lambda t, x: t.linalg.eigh(sym(x), "U"), (X,)),
]


@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in SIGNED])
def test_vectors_of_square_matrices_have_the_same_signs(call: Any, operands: Any) -> None:
    check(call, operands, "cpu", 1e-7)


INVARIANT = [
    ("U S Vh", lambda t, x: _rebuilt(*t.linalg.svd(x, full_matrices=False)), (XT,)),
    ("full U S Vh", lambda t, x: _rebuilt(*t.linalg.svd(x)), (XB,)),
    ("U Uh", lambda t, x: _projector(t.linalg.svd(x, full_matrices=False)[0], 2), (XT,)),
    ("projector", lambda t, x: _projector(t.linalg.eigh(sym(x))[1], 2), (XB,)),
    ("V f(w) Vh", lambda t, x: _rebuilt_square(*t.linalg.eigh(spd(x))), (X,)),
    ("V w V^-1", lambda t, x: _diagonalised(t, *t.linalg.eig(x)), (XB,)),
]


def _rebuilt(u: Any, s: Any, vh: Any) -> Any:
    k = s.shape[-1]
    return (u[..., :k] * s.sin().unsqueeze(-2)) @ vh[..., :k, :]


def _projector(v: Any, count: int) -> Any:
    return v[..., :count] @ v[..., :count].mT


def _rebuilt_square(w: Any, v: Any) -> Any:
    return (v * w.log().unsqueeze(-2)) @ v.mT


def _diagonalised(t: Any, w: Any, v: Any) -> Any:
    return t.real((v * (w * w).unsqueeze(-2)) @ t.linalg.inv(v))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in INVARIANT])
def test_what_does_not_depend_on_signs_agrees(call: Any, operands: Any, device: str) -> None:
    check(call, operands, device, 1e-7)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [fb.float64, fb.complex128])
@pytest.mark.parametrize("matrix", [RANK1, RANK2, ZERO], ids=["rank 1", "rank 2", "zero"])
def test_determinant_of_singular_matrices_has_both_derivatives(
    matrix: Any, dtype: Any, device: str
) -> None:
    x = fb.tensor(matrix.tolist(), dtype=dtype, device=device).requires_grad_()
    if device == "cpu" or dtype is fb.float64:
        assert fb.autograd.gradcheck(fb.linalg.det, (x,))
    if dtype is fb.float64 and device == "cpu":
        assert fb.autograd.gradgradcheck(fb.linalg.det, (x,))


def test_gradient_of_a_rank_2_determinant_is_its_cofactors() -> None:
    x = ours_of(RANK2).requires_grad_()
    x.det().backward()
    cofactors = I([[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]]).double()
    assert_same(x.grad, cofactors, 1e-12)


Z = torch.complex(spaced(3, 3).detach(), (spaced(3, 3).detach() * 2).cos())
COMPLEX = [
    ("cholesky", lambda t, z: t.linalg.cholesky(_hpd(t, z))),
    ("qr", lambda t, z: t.linalg.qr(z)),
    ("lu", lambda t, z: t.linalg.lu(z)),
    ("solve", lambda t, z: t.linalg.solve(z, z[:, :2])),
    ("inv", lambda t, z: t.linalg.inv(z)),
    ("pinv", lambda t, z: t.linalg.pinv(z[:, :2])),
    ("det", lambda t, z: t.linalg.det(z)),
    ("slogdet", lambda t, z: t.linalg.slogdet(z)),
    ("svdvals", lambda t, z: t.linalg.svdvals(z)),
    ("eigvalsh", lambda t, z: t.linalg.eigvalsh(_hpd(t, z))),
    ("eigh", lambda t, z: _moduli(t.linalg.eigh(_hpd(t, z))[1])),
    ("svd", lambda t, z: _moduli(t.linalg.svd(z)[0])),
    ("eig", lambda t, z: _moduli(t.linalg.eig(z)[1])),
    ("matrix_exp", lambda t, z: t.matrix_exp(z)),
    ("solve_triangular", lambda t, z: t.linalg.solve_triangular(z, z, upper=True)),
    ("householder", lambda t, z: t.linalg.householder_product(z, z[0])),
    ("matrix_norm", lambda t, z: t.linalg.matrix_norm(z, "nuc")),
    ("vecdot", lambda t, z: t.linalg.vecdot(z, z[0])),
]


def _hpd(t: Any, z: Any) -> Any:
    return z @ z.mT.conj() + t.eye(3, dtype=z.dtype)


def _moduli(v: Any) -> Any:
    return v.abs()


@pytest.mark.parametrize("call", [pytest.param(c[1], id=c[0]) for c in COMPLEX])
def test_complex_values_and_gradients_agree(call: Any) -> None:
    theirs = Z.clone().requires_grad_()
    mine = fb.tensor(Z.tolist(), dtype=fb.complex128).requires_grad_()
    results = []
    for library, z in ((torch, theirs), (fb, mine)):
        found = flattened(call(library, z))
        total = 0
        for y in found:
            if y.requires_grad:
                weights = library.arange(1, y.numel() + 1, dtype=library.float64)
                total = total + (y.abs() * weights.reshape(tuple(y.shape))).sum()
                if y.is_complex():
                    total = total + (y.real * weights.cos().reshape(tuple(y.shape))).sum()
        total.backward()
        results.append([*found, z.grad])
    for ours, expected in zip(results[1], results[0], strict=True):
        assert str(ours.dtype) == str(expected.dtype)
        found = torch.tensor(ours.detach().tolist(), dtype=expected.dtype)
        torch.testing.assert_close(found, expected.detach(), rtol=1e-8, atol=1e-8)


SINGULAR = I([[1.0, 2.0], [2.0, 4.0]])
SINGULARS = torch.stack([torch.eye(2), SINGULAR])
NAN = torch.full((2, 2), float("nan"))
ERRORS: list[tuple[str, Any, tuple[Any, ...], str]] = [
    ("cholesky", lambda t, x: t.linalg.cholesky(x), (-torch.eye(2),), "leading minor of order 1"),
    ("cholesky batch", lambda t, x: t.linalg.cholesky(-x), (SINGULARS,), "Batch element 0"),
    ("cholesky_ex", lambda t, x: t.linalg.cholesky_ex(-x, check_errors=True), (SINGULAR,), "order"),
    ("cholesky ints", lambda t, x: t.linalg.cholesky(x), (I([[1]]),), "Got Long"),
    ("inv half", lambda t, x: t.linalg.inv(x), (I([[1.0]]).half(),), "Half"),
    ("cholesky wide", lambda t, x: t.linalg.cholesky(x), (W,), "3 by 4"),
    ("cholesky vector", lambda t, x: t.linalg.cholesky(x), ((3,),), "at least 2 dimensions"),
    ("inv", lambda t, x: t.linalg.inv(x), (SINGULAR,), "singular"),
    ("inv batch", lambda t, x: t.linalg.inv(x), (SINGULARS,), "Batch element 1"),
    ("inverse", lambda t, x: t.inverse(x), (SINGULAR,), "singular"),
    ("solve", lambda t, x: t.linalg.solve(x, x), (SINGULAR,), "singular"),
    ("solve batch", lambda t, x: t.linalg.solve(x, x), (SINGULARS,), "Batch element 1"),
    ("solve shapes", lambda t, x, b: t.linalg.solve(x, b), (S, (4, 2)), "4x2"),
    ("solve dtypes", lambda t, x, b: t.linalg.solve(x, b), (S, SINGULAR), "Float"),
    (
        "triangular",
        lambda t, x, b: t.linalg.solve_triangular(x, b, upper=True),
        (S, W[::-1]),
        "4x3",
    ),
    ("lu_factor", lambda t, x: t.linalg.lu_factor(x), (SINGULAR,), "U[2,2] is zero"),
    ("lu_solve", lambda t, x, p: t.linalg.lu_solve(x, p, x), (S, I([1, 2, 3])), "int32"),
    ("svd", lambda t, x: t.linalg.svd(x), (NAN,), "non-finite"),
    ("svdvals", lambda t, x: t.linalg.svdvals(x), (NAN,), "non-finite"),
    ("eig", lambda t, x: t.linalg.eig(x), (NAN,), "infs or NaNs"),
    ("eigh", lambda t, x: t.linalg.eigh(x, "X"), (S,), "UPLO"),
    ("eigh wide", lambda t, x: t.linalg.eigh(x), (W,), "3 by 4"),
    ("qr", lambda t, x: t.linalg.qr(x, "full"), (S,), "mode"),
    ("det", lambda t, x: t.linalg.det(x), (W,), "3 by 4"),
    ("slogdet ints", lambda t, x: t.linalg.slogdet(x), (I([[1]]),), "Long"),
    ("matrix_norm", lambda t, x: t.linalg.matrix_norm(x, 3), (S,), "not supported"),
    ("matrix_norm dims", lambda t, x: t.linalg.matrix_norm(x, 1, (0, 0)), (S,), "different"),
    ("norm", lambda t, x: t.linalg.norm(x, 2), (B,), "3D"),
    ("cond", lambda t, x: t.linalg.cond(x, "x"), (S,), "norm type"),
    ("matrix_power", lambda t, x: t.matrix_power(x, 1.5), (S,), "int"),
    ("matrix_power wide", lambda t, x: t.matrix_power(x, 2), (W,), "square"),
    ("matrix_exp", lambda t, x: t.matrix_exp(x), (W,), "3 by 4"),
    ("multi_dot", lambda t, x: t.linalg.multi_dot([x]), (S,), "at least 2"),
    ("chain_matmul", lambda t: t.chain_matmul(), (), "one or more"),
    ("addmv", lambda t, x: t.addmv(x, x, x), (S,), "got 2, 2, 2"),
    ("addr", lambda t, x: t.addr(x, x, x), (S,), "vec1"),
    ("addbmm", lambda t, x, y: t.addbmm(x[0], x, y), (B, (3, 3, 3)), "batch2"),
    ("householder", lambda t, x, u: t.linalg.householder_product(x, u), (W, (3,)), "shape"),
    ("tensorinv", lambda t, x: t.linalg.tensorinv(x), ((2, 3, 2),), "prod"),
    ("tensorsolve", lambda t, x, b: t.linalg.tensorsolve(x, b), ((2, 3, 2), (3,)), "prod"),
    ("vander", lambda t, x: t.linalg.vander(x, N=1), ((3,),), "N must be"),
    ("lstsq driver", lambda t, x: t.linalg.lstsq(x, x, driver="x"), (S,), "driver"),
    ("pinv vector", lambda t, x: t.linalg.pinv(x), ((3,),), "2 or more"),
]


@pytest.mark.parametrize(
    ("call", "operands", "text"), [pytest.param(*c[1:], id=c[0]) for c in ERRORS]
)
def test_errors_are_of_the_same_class(call: Any, operands: Any, text: str) -> None:
    theirs = [theirs_of(operand, place) for place, operand in enumerate(operands)]
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever PyTorch raises
        call(torch, *theirs)
    wanted = {torch.linalg.LinAlgError: fb.linalg.LinAlgError}.get(expected.type, expected.type)
    with pytest.raises(wanted) as found:
        call(fb, *[ours_of(x) for x in theirs])
    assert found.type is wanted
    assert text in str(found.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "matrix",
    [
        [[math.nan]],
        [[1.0, math.nan], [math.nan, 1.0]],
        [[1.0, 0.0], [0.0, math.nan]],
        [[[1.0, 0.0], [0.0, 1.0]], [[math.nan, 0.0], [0.0, 1.0]]],
        [[[1.0, 2.0], [2.0, 1.0]], [[math.nan, 0.0], [0.0, -1.0]]],
    ],
    ids=str,
)
def test_cholesky_says_which_minor_is_no_number(matrix: Any, dtype: str) -> None:
    places, refused = [], []
    for lib in (fb, torch):
        a = lib.tensor(matrix, dtype=getattr(lib, dtype))
        places.append(lib.linalg.cholesky_ex(a)[1].tolist())
        try:
            refused.append(str(lib.linalg.cholesky(a).tolist()))
        except RuntimeError as error:
            refused.append(str(error))
    assert places[0] == places[1]
    assert refused[0] == refused[1]
