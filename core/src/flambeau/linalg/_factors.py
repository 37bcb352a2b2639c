"""Cholesky, LU and QR decompositions."""

from __future__ import annotations

from typing import Any

from flambeau._autograd.modes import recording
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver, deliver_all
from flambeau.autograd.function import Function
from flambeau.linalg import _results as R
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.table import OPS
from flambeau.ops.matrices.matrix_algebra import (
    LinAlgError,
    adjoint_of,
    check_info,
    conjugate,
    eye_like,
    first_nonzero,
    matrices,
    on_meta,
    one_dtype,
    squares,
)

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {} is not positive-definite)."
)


class BothTriangles(Function):
    """A matrix that is Hermitian by agreement: its gradient is, whichever triangle is read."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor) -> Tensor:
        """A copy."""
        return a.clone()

    @staticmethod
    def setup_context(ctx: object, inputs: object, output: object) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: object, *grads: Any) -> Tensor:
        """The Hermitian part."""
        (g,) = grads
        return (g + adjoint_of(g)) / 2


def hermitian(a: Tensor) -> Tensor:
    """`a`, whose gradient will be Hermitian."""
    return BothTriangles.apply(a) if a.requires_grad and recording() else a


def lower_factor(a: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """The Cholesky factor, lower or upper, from the triangle of its name; and the infos."""
    a = hermitian(a)
    factor, info = OPS["cholesky_ex"](adjoint_of(a) if upper else a)
    return conjugate(factor).contiguous().mT if upper else factor, info


def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower L with L Lᴴ = A, or the upper U = Lᴴ, of a positive-definite Hermitian matrix.

    Shapes: A (..., n, n), of which one triangle is read; its gradient is Hermitian.

    Raises:
        LinAlgError: a matrix is not positive-definite.

    >>> import flambeau as fb
    >>> fb.linalg.cholesky(fb.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    factor, info = lower_factor(squares("linalg.cholesky", A), upper)
    check_info("linalg.cholesky", info, NOT_POSITIVE)
    return deliver(factor, out, A, exact=True, share="anything")


def cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False, out: object = None
) -> R.linalg_cholesky_ex:
    """As `cholesky`; instead of raising, the order of the first minor that is not positive, or 0.

    >>> import flambeau as fb
    >>> fb.linalg.cholesky_ex(fb.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    factor, info = lower_factor(squares("linalg.cholesky_ex", A), upper)
    if check_errors:
        check_info("linalg.cholesky_ex", info, NOT_POSITIVE)
    return deliver_all(R.linalg_cholesky_ex(factor, info), out, A, exact=True, share="anything")  # type: ignore[return-value]


def qr(A: Tensor, mode: str = "reduced", *, out: object = None) -> R.linalg_qr:
    """Q with orthonormal columns and upper triangular R with Q R = A.

    Shapes: A (..., m, n); mode "reduced": Q (..., m, k), R (..., k, n) with k = min(m, n);
    "complete": Q (..., m, m), R (..., m, n); "r": the reduced R and an empty Q.

    Raises:
        RuntimeError: another mode.

    >>> import flambeau as fb
    >>> fb.linalg.qr(fb.tensor([[3.0], [4.0]])).R
    tensor([[-5.]])
    """
    a = matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    q, r = OPS["qr"](a, mode == "complete")
    return deliver_all(
        R.linalg_qr(a.new_empty((0,)) if mode == "r" else q, r),
        out,
        A,
        exact=True,
        share="anything",
    )  # type: ignore[return-value]


def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of H₁ H₂ … Hₖ with Hᵢ = 1 - tauᵢ vᵢ vᵢᴴ, as `geqrf` leaves them.

    Shapes: A (..., m, n) with m ≥ n, whose column i holds vᵢ below the diagonal; tau (..., k)
    with k ≤ n.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.linalg.householder_product(fb.tensor([[0.0], [1.0]]), fb.tensor([1.0]))
    tensor([[ 0.],
            [-1.]])
    """
    name = "torch.linalg.householder_product"
    a, t = matrices(name, A, "input"), tau
    one_dtype(name, a, t)
    if a.shape[-2] < a.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if t.dim() != a.dim() - 1 or t.shape[:-1] != a.shape[:-2] or t.shape[-1] > a.shape[-1]:
        raise RuntimeError(
            f"{name}: tau must hold at most one number per column of input, got shapes "
            f"{list(t.shape)} and {list(a.shape)}"
        )
    return deliver(OPS["householder_product"](a, t), out, A, tau, share="anything")


def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: object = None
) -> R.linalg_ldl_factor_ex:
    """As `ldl_factor`; instead of raising, the place of the first zero block of D, or 0.

    >>> import flambeau as fb
    >>> fb.linalg.ldl_factor_ex(fb.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    found = _ldl("torch.linalg.ldl_factor_ex", A, hermitian, check_errors)
    return deliver_all(R.linalg_ldl_factor_ex(*found), out, A, exact=True, share="anything")  # type: ignore[return-value]


def ldl_factor(A: Tensor, *, hermitian: bool = False, out: object = None) -> R.linalg_ldl_factor:
    """L and D in one matrix, and the interchanges, of a symmetric matrix that may be indefinite.

    A = L D Lᵀ, or L D Lᴴ if it is `hermitian`, where L is a product of interchanges and unit lower
    triangular matrices and D has blocks of one and of two rows.  D stands on the diagonal and just
    below it, L below its blocks (LAPACK's ``sytrf`` and ``hetrf``; Bunch and Kaufman, 1977).

    Shapes: A (..., n, n), of which the lower triangle is read; pivots (..., n) int32: a positive
    number says that row k was exchanged with that row, counted from 1; two equal negative ones that
    rows k and k + 1 have one block, of which the second was exchanged.  There is no gradient.

    Raises:
        RuntimeError: a block of D is zero, or matrices are not square.

    >>> import flambeau as fb
    >>> fb.linalg.ldl_factor(fb.tensor([[2.0, 1.0], [1.0, 3.0]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 2.5000]])
    """
    packed, pivots, _ = _ldl("torch.linalg.ldl_factor_ex", A, hermitian, True)
    return deliver_all(R.linalg_ldl_factor(packed, pivots), out, A, exact=True, share="anything")  # type: ignore[return-value]


def _ldl(name: str, A: object, hermitian: bool, check: bool) -> tuple[Tensor, Tensor, Tensor]:
    found = OPS["ldl_factor_ex"](squares(name, A), bool(hermitian))
    if check and not on_meta(found[2]) and (failed := first_nonzero(found[2])) is not None:
        batch = f"(Batch element {failed[0]}): " if found[2].dim() else ""
        raise RuntimeError(
            f"{name}: {batch}D[{failed[1]},{failed[1]}] is zero, so that no system can be solved "
            "with these factors; linalg.ldl_factor_ex(A) returns them all the same"
        )
    return found


def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: object = None
) -> R.linalg_lu_factor_ex:
    """As `lu_factor`; instead of raising, the place of the first zero pivot, or 0.

    >>> import flambeau as fb
    >>> fb.linalg.lu_factor_ex(fb.eye(2)).info
    tensor(0, dtype=torch.int32)
    """
    found = OPS["lu_factor_ex"](matrices("torch.linalg.lu_factor_ex", A), pivot)
    if check_errors:
        _check_pivots("torch.linalg.lu_factor_ex", found[2])
    return deliver_all(R.linalg_lu_factor_ex(*found), out, A, exact=True, share="anything")  # type: ignore[return-value]


def lu_factor(A: Tensor, *, pivot: bool = True, out: object = None) -> R.linalg_lu_factor:
    """L and U in one matrix, and the row interchanges, with row 1 as the first.

    Shapes: A (..., m, n); pivots (..., min(m, n)) int32: row i was exchanged with row pivots[i].

    Raises:
        RuntimeError: a pivot is zero.

    >>> import flambeau as fb
    >>> fb.linalg.lu_factor(fb.tensor([[0.0, 1.0], [2.0, 3.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    packed, pivots, info = OPS["lu_factor_ex"](matrices("torch.linalg.lu_factor", A), pivot)
    _check_pivots("torch.linalg.lu_factor", info)
    return deliver_all(R.linalg_lu_factor(packed, pivots), out, A, exact=True, share="anything")  # type: ignore[return-value]


def _check_pivots(name: str, info: Tensor) -> None:
    if on_meta(info) or (found := first_nonzero(info)) is None:
        return
    which, place = found
    batch = f"(Batch element {which}): " if info.dim() else ""
    raise RuntimeError(
        f"{name}: {batch}U[{place},{place}] is zero and using it on lu_solve would result in a "
        "division by zero. If you still want to perform the factorization, consider calling "
        "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )


def unpacked(packed: Tensor, pivots: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U of a packed decomposition; P is empty without pivots."""
    m, n = packed.shape[-2:]
    k = min(m, n)
    lower = packed[..., :k].tril(-1) + eye_like(packed, m)[:, :k]
    upper = packed[..., :k, :].triu()
    if pivots is None:
        return packed.new_empty((0,)), lower, upper
    return permutation(packed, pivots), lower, upper


def permutation(packed: Tensor, pivots: Tensor) -> Tensor:
    """The matrix P with P L U = A."""
    m = packed.shape[-2]
    order = OPS["lu_permutation"](pivots, m)
    place = arange(m, device=packed.device).reshape(m, 1)
    return cast(place == order.unsqueeze(-2), packed.dtype)


def lu(A: Tensor, *, pivot: bool = True, out: object = None) -> R.linalg_lu:
    """A permutation P, a unit lower triangular L and an upper triangular U with P L U = A.

    Shapes: A (..., m, n), P (..., m, m), L (..., m, k), U (..., k, n) with k = min(m, n); P is
    empty without pivoting.

    >>> import flambeau as fb
    >>> fb.linalg.lu(fb.tensor([[0.0, 1.0], [2.0, 3.0]])).U
    tensor([[2., 3.],
            [0., 1.]])
    """
    packed, pivots, _ = OPS["lu_factor_ex"](matrices("linalg.lu", A), pivot)
    return deliver_all(
        R.linalg_lu(*unpacked(packed, pivots if pivot else None)),
        out,
        A,
        exact=True,
        share="anything",
    )  # type: ignore[return-value]


def check_factors(name: str, packed: Tensor, pivots: object) -> None:
    """Refuse what is no packed LU decomposition.

    Raises:
        RuntimeError: the pivots are not int32, or shapes do not fit.
    """
    if not isinstance(pivots, Tensor) or pivots.dtype is not D.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    k = min(packed.shape[-2:])
    if tuple(pivots.shape) != (*packed.shape[:-2], k):
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix: "
            f"got pivots of shape {list(pivots.shape)} for LU of shape {list(packed.shape)}"
        )


__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "householder_product",
    "ldl_factor",
    "ldl_factor_ex",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "qr",
]
