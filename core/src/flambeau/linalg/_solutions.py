"""Linear systems, inverses and least squares."""

from __future__ import annotations

import math
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_input
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.finfo import finfo
from flambeau._writes.out import deliver, deliver_all
from flambeau.linalg import _results as R
from flambeau.linalg._factors import check_factors, hermitian
from flambeau.ops.declaration.table import OPS
from flambeau.ops.matrices.matrix_algebra import (
    adjoint_of,
    batched,
    check_info,
    matrices,
    on_meta,
    one_dtype,
    squares,
)

_SINGULAR = (
    "The diagonal element {} is zero, the inversion could not be completed because the input "
    "matrix is singular."
)


def _right_side(name: str, A: object, B: object, left: bool) -> tuple[Tensor, Tensor, bool]:
    """A and B with equal leading dimensions, and whether B holds vectors, made columns."""
    a, b = squares(name, A), need_input(B, name, "B")
    one_dtype(name, a, b)
    vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    columns = b.unsqueeze(-1) if vector else b
    _check_fit(name, a, columns, left)
    return (*batched(a, columns), vector)


def _check_fit(name: str, a: Tensor, b: Tensor, left: bool) -> None:
    if b.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if a.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )


def _solved(name: str, A: object, B: object, left: bool) -> tuple[Tensor, Tensor]:
    a, b, vector = _right_side(name, A, B, left)
    if not left:
        result, info = OPS["solve_ex"](a.mT, b.mT)
        return result.mT, info
    result, info = OPS["solve_ex"](a, b)
    return (result.squeeze(-1) if vector else result), info


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """X with A X = B, or with X A = B if not `left`.

    Shapes: A (..., n, n); B (..., n, k), or vectors (..., n) for a batch of the same shape; leading
    dimensions broadcast.

    Raises:
        LinAlgError: a matrix is singular.
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.linalg.solve(fb.tensor([[2.0, 0.0], [0.0, 4.0]]), fb.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    result, info = _solved("linalg.solve", A, B, left)
    check_info(
        "torch.linalg.solve", info, "The solver failed because the input matrix is singular."
    )
    return deliver(result, out, A, B, exact=True, share="anything")


def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: object = None
) -> R.linalg_solve_ex:
    """As `solve`; instead of raising, the place of the first zero pivot, or 0.

    >>> import flambeau as fb
    >>> fb.linalg.solve_ex(fb.zeros(1, 1), fb.ones(1)).info
    tensor(1, dtype=torch.int32)
    """
    result, info = _solved("linalg.solve_ex", A, B, left)
    if check_errors:
        check_info(
            "torch.linalg.solve_ex", info, "The solver failed because the input matrix is singular."
        )
    return deliver_all(R.linalg_solve_ex(result, info), out, A, B, exact=True, share="anything")  # type: ignore[return-value]


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices.

    Raises:
        LinAlgError: a matrix is singular.

    >>> import flambeau as fb
    >>> fb.linalg.inv(fb.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    result, info = OPS["inv_ex"](squares("linalg.inv", A))
    check_info("linalg.inv", info, _SINGULAR)
    return deliver(result, out, A, exact=True, share="anything")


def inv_ex(A: Tensor, *, check_errors: bool = False, out: object = None) -> R.linalg_inv_ex:
    """As `inv`; instead of raising, the place of the first zero pivot, or 0.

    >>> import flambeau as fb
    >>> fb.linalg.inv_ex(fb.zeros(1, 1)).info
    tensor(1, dtype=torch.int32)
    """
    found = OPS["inv_ex"](squares("linalg.inv_ex", A))
    if check_errors:
        check_info("linalg.inv_ex", found[1], _SINGULAR)
    return deliver_all(R.linalg_inv_ex(*found), out, A, exact=True, share="anything")  # type: ignore[return-value]


def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """X with A X = B (X A = B if not `left`) for triangular A, of which one triangle is read.

    Shapes: A (..., n, n), B (..., n, k), or (..., k, n) if not `left`; leading dimensions
    broadcast.  With `unitriangular` the diagonal is taken as ones.

    >>> import flambeau as fb
    >>> a = fb.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> fb.linalg.solve_triangular(a, fb.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    name = "linalg.solve_triangular"
    a, b = squares(name, A), matrices(name, B, "B")
    one_dtype(name, a, b)
    _check_fit(name, a, b, left)
    a, b = batched(a, b)
    if left:
        return deliver(
            OPS["triangular_solve"](a, b, upper, unitriangular),
            out,
            A,
            B,
            exact=True,
            share="anything",
        )
    result = OPS["triangular_solve"](a.mT, b.mT, not upper, unitriangular)
    return deliver(result.contiguous().mT, out, A, B, exact=True, share="anything")


def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """X with A X = B for a decomposition from `lu_factor`; X A = B if not `left`, Aᴴ if `adjoint`.

    >>> import flambeau as fb
    >>> factors = fb.linalg.lu_factor(fb.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> fb.linalg.lu_solve(*factors, fb.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    name = "linalg.lu_solve"
    packed, b = squares(name, LU, "LU"), matrices(name, B, "B")
    check_factors(name, packed, pivots)
    one_dtype(name, packed, b)
    _check_fit(name, packed, b, left)
    if not left:
        turned = lu_solve(packed, pivots, adjoint_of(b), adjoint=not adjoint)
        return deliver(adjoint_of(turned), out, LU, pivots, B, exact=True, share="anything")
    order = OPS["lu_permutation"](pivots, packed.shape[-1])
    packed, b = batched(packed, b)
    order = order.unsqueeze(-1).expand(*b.shape)
    if not adjoint:
        half = OPS["triangular_solve"](packed, b.gather(-2, order), False, True)
        return deliver(
            OPS["triangular_solve"](packed, half, True, False),
            out,
            LU,
            pivots,
            B,
            exact=True,
            share="anything",
        )
    back = adjoint_of(packed)
    half = OPS["triangular_solve"](back, b, False, False)
    result = OPS["triangular_solve"](back, half, True, True)
    return deliver(
        result.mT.gather(-1, order.argsort(-2).mT).mT,
        out,
        LU,
        pivots,
        B,
        exact=True,
        share="anything",
    )


def ldl_solve(
    LD: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """X with A X = B for a decomposition from `ldl_factor` with the same `hermitian`.

    Shapes: LD (..., n, n), pivots (..., n), B (..., n, k); the leading dimensions of LD and B
    broadcast.  There is no gradient.

    Raises:
        RuntimeError: shapes or dtypes do not fit, or the pivots are no integers.

    >>> import flambeau as fb
    >>> factors = fb.linalg.ldl_factor(fb.tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> fb.linalg.ldl_solve(*factors, fb.tensor([[2.0], [4.0]]))
    tensor([[2.],
            [1.]])
    """
    name = "torch.linalg.ldl_solve"
    packed, b = squares(name, LD, "LD"), need_input(B, name, "B")
    if b.dim() < 2 or b.shape[-2] != packed.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {packed.shape[-1]} by "
            f"{packed.shape[-1]} but B has the shape {list(b.shape)}"
        )
    order = need_input(pivots, name, "pivots")
    if order.dtype.category != 1:
        raise RuntimeError(
            f"{name}: Expected pivots to be integers. Got {D.type_name(order.dtype)}"
        )
    if order.shape != packed.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(order.shape)} instead"
        )
    one_dtype(name, packed, b)
    packed, b = batched(packed, b)
    order = cast(order.expand(*packed.shape[:-1]), D.int32)
    result = OPS["ldl_solve"](packed, order, b, bool(hermitian))
    return deliver(result, out, LD, pivots, B, exact=True, share="anything")


def tolerances(
    x: Tensor, atol: Any, rtol: object, rows: int, columns: int
) -> tuple[Tensor, Tensor]:
    """Absolute and relative tolerance as real tensors; the relative one is max(m, n) eps alone."""
    real = x.dtype.to_real()

    def made(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return cast(value.detach(), real)
        return x.new_full((), value, dtype=real)

    if rtol is None:
        rtol = finfo(real).eps * max(rows, columns)
        if isinstance(atol, Tensor):
            small = made(rtol)
            return made(atol), small * (made(atol) <= 0).to(real)
        if atol is not None and atol > 0:
            rtol = 0.0
    return made(0.0 if atol is None else atol), made(rtol)


@takes_as_annotated
def pinv(
    A: Tensor,
    rcond: object = None,
    hermitian: bool = False,
    *,
    atol: object = None,
    rtol: object = None,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose pseudo-inverse.

    Singular values up to max(atol, rtol * the largest) count as zero; by default rtol is
    max(m, n) * eps, and zero if there is a positive `atol`.  `rcond` is an older name of `rtol`.

    Shapes: A (..., m, n), result (..., n, m).  Where the rank changes it has no derivative.

    >>> import flambeau as fb
    >>> fb.linalg.pinv(fb.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return deliver(
        pseudo_inverse(A, atol, rcond if rtol is None else rtol, hermitian),
        out,
        A,
        share="anything",
    )


def pseudo_inverse(A: object, atol: object, rtol: object, is_hermitian: bool) -> Tensor:
    """`pinv` with complete arguments."""
    x = need_input(A, "linalg.pinv", "A")
    if x.dim() < 2:
        raise RuntimeError(
            f"linalg.pinv: expected a tensor with 2 or more dimensions of float, double, cfloat or "
            f"cdouble types, got {x.dim()}-D {x.dtype}"
        )
    a = (squares if is_hermitian else matrices)("linalg.pinv", x)
    low, high = tolerances(a, atol, rtol, *a.shape[-2:])
    return OPS["pinv"](hermitian(a) if is_hermitian else a, low, high, is_hermitian)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@takes_as_annotated
def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> R.linalg_lstsq:
    """The X of least norm that minimises the 2-norm of A X - B, column by column.

    Singular values of A up to `rcond` (default max(m, n) * eps) times the largest count as zero.

    Shapes: A (..., m, n), B (..., m, k) or vectors (..., m); solution (..., n, k) or (..., n);
    residuals (..., k), the squares of the norms, empty unless m > n, all ranks are n and the driver
    is not "gelsy", the default; rank (...), empty for the driver "gels"; singular values
    (..., min(m, n)) for "gelsd" and "gelss".

    Raises:
        RuntimeError: an unknown driver, or shapes do not fit.

    >>> import flambeau as fb
    >>> fb.linalg.lstsq(fb.tensor([[1.0], [0.0]]), fb.tensor([[2.0], [3.0]])).solution
    tensor([[2.]])
    """
    name = "torch.linalg.lstsq"
    a, b = matrices(name, A, "input"), need_input(B, name, "other")
    one_dtype(name, a, b)
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver}"
        )
    vector = a.dim() - 1 == b.dim() and a.shape[:-1] == b.shape
    b = b.unsqueeze(-1) if vector else b
    m, n = a.shape[-2:]
    if b.dim() < 2 or b.shape[-2] != m:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size({-1 if vector else -2}), got shapes "
            f"{list(A.shape)} and {list(B.shape)}"
        )
    low, high = tolerances(a, None, rcond, m, n)
    result = OPS["pinv"](a, low, high, False) @ b
    none = a.new_empty((0,), dtype=a.dtype.to_real())
    values = OPS["svdvals"](a.detach())
    rank = (values > high * values[..., :1]).sum(-1)
    residuals = none
    if m > n and driver != "gelsy":
        full = on_meta(a) or bool((rank == n).all().item())
        residuals = (a @ result - b).abs().square().sum(-2) if full else none
    return R.linalg_lstsq(
        result.squeeze(-1) if vector else result,
        residuals,
        rank if driver != "gels" else a.new_empty((0,), dtype=D.int64),
        values if driver in ("gelsd", "gelss") else none,
    )


@takes_as_annotated
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the map that `tensordot` with A is over its last dimensions from `ind` on.

    Shapes: A with the product of its first `ind` lengths equal to that of the others.

    >>> import flambeau as fb
    >>> fb.linalg.tensorinv(fb.eye(4).reshape(2, 2, 4)).shape
    torch.Size([4, 2, 2])
    """
    x = need_input(A, "linalg.tensorinv", "A")
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = tuple(x.shape[:ind]), tuple(x.shape[ind:])
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(last)} != {math.prod(first)}"
        )
    return deliver(
        inv(x.reshape(math.prod(first), -1)).reshape(*last, *first), out, A, share="anything"
    )


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Tensor | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B, after the dimensions `dims` of A have gone to its end.

    >>> import flambeau as fb
    >>> fb.linalg.tensorsolve(fb.eye(4).reshape(2, 2, 4), fb.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    x, b = need_input(A, "linalg.tensorsolve", "A"), need_input(B, "linalg.tensorsolve", "B")
    if dims is not None:
        moved = [dim_of(d, x.dim(), scalar_as_vector=False) for d in dims]
        x = x.permute(*[i for i in range(x.dim()) if i not in moved], *moved)
    first, last = tuple(x.shape[: b.dim()]), tuple(x.shape[b.dim() :])
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(last)} != {math.prod(first)}"
        )
    flat = x.reshape(-1, math.prod(last))
    return deliver(solve(flat, b.reshape(-1)).reshape(last), out, A, B, share="anything")


__all__ = [
    "inv",
    "inv_ex",
    "ldl_solve",
    "lstsq",
    "lu_solve",
    "pinv",
    "solve",
    "solve_ex",
    "solve_triangular",
    "tensorinv",
    "tensorsolve",
]
