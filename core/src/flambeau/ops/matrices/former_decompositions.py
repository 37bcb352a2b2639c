"""Linear algebra under names that PyTorch 1.0 documents and has since removed.

Each warns once and names its replacement.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.keywords import documented
from flambeau._dispatch.lazy import LazyModule
from flambeau._dispatch.warning import warn
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.creation.creation import tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS
from flambeau.ops.matrices import decompositions
from flambeau.ops.matrices.matrix_algebra import adjoint_of, batched, matrices, one_dtype, squares
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import cat, stack

if TYPE_CHECKING:
    from flambeau import linalg
    from flambeau.linalg import _eigenvalues
    from flambeau.linalg import _results as R
else:
    linalg = LazyModule("flambeau.linalg")
    _eigenvalues = LazyModule("flambeau.linalg._eigenvalues")
    R = LazyModule("flambeau.linalg._results")


@functools.cache
def _removed(name: str, replacement: str) -> None:
    """Warn, at the first call, that `name` is a former name."""
    warn(f"torch.{name} is deprecated and has been removed from today's PyTorch; use {replacement}")


@public
@documented({"a": "input"})
def potrf(input: Tensor, upper: bool = True, *, out: Tensor | None = None) -> Tensor:
    """The Cholesky factor, upper by default; `torch.cholesky` has another default.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.potrf(fb.tensor([[4.0]]))
    tensor([[2.]])
    """
    _removed("potrf", "torch.linalg.cholesky, whose factor is lower by default")
    return decompositions.cholesky(input, upper, out=out)


@public
@documented({"b": "input"})
def potrs(input: Tensor, u: Tensor, upper: bool = True, *, out: Tensor | None = None) -> Tensor:
    """X with A X = B for a Cholesky factor of A, upper by default.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.potrs(fb.tensor([[4.0]]), fb.tensor([[2.0]]))
    tensor([[1.]])
    """
    _removed("potrs", "torch.cholesky_solve, whose factor is lower by default")
    return decompositions.cholesky_solve(input, u, upper, out=out)


@public
@documented({"u": "input"})
def potri(input: Tensor, upper: bool = True, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the matrix with this Cholesky factor, upper by default.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.potri(fb.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    _removed("potri", "torch.cholesky_inverse, whose factor is lower by default")
    return decompositions.cholesky_inverse(input, upper, out=out)


@public
@documented({"a": "input"})
def pstrf(input: Tensor, upper: bool = True, *, out: Sequence[Tensor] | None = None) -> R.pstrf:
    """The Cholesky factor of A[p][:, p] with the permutation p that keeps its diagonal falling.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.pstrf(fb.tensor([[1.0, 0.0], [0.0, 4.0]])).pivot
    tensor([1, 0], dtype=torch.int32)
    """
    _removed("pstrf", "torch.linalg.cholesky")
    a = squares("pstrf", input, "a")
    if a.dim() != 2:
        raise RuntimeError(f"pstrf: a should be a matrix, got {a.dim()}D")
    order = tensor(_pivots(a.detach()), dtype=D.int64, device=a.device)
    factor = decompositions.cholesky(a[order][:, order], upper)
    return deliver_all(R.pstrf(factor, cast(order, D.int32)), out, input, share="anything")  # type: ignore[return-value]


def _pivots(a: Tensor) -> list[int]:
    """The order in which the largest remaining diagonal element comes next."""
    rest, order = list(range(a.shape[0])), []
    while rest:
        at = rest.index(max(rest, key=a.diagonal().tolist().__getitem__))
        order.append(rest.pop(at))
        row = a[order[-1]]
        pivot = row[order[-1]]
        if rest and pivot.item():
            a = a - row.unsqueeze(1) * row / pivot
    return order


@public
@documented({"B": "input"})
def solve(input: Tensor, A: Tensor, *, out: Sequence[Tensor] | None = None) -> R.solve:
    """X with A X = B, and the LU decomposition of A.

    Raises:
        LinAlgError: a matrix is singular.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.solve(fb.tensor([[4.0]]), fb.tensor([[2.0]])).solution
    tensor([[2.]])
    """
    _removed("solve", "torch.linalg.solve(A, B), whose arguments are reversed")
    return deliver_all(_solved(input, A), out, input, A, share="anything")  # type: ignore[return-value]


@public
@documented({"b": "input"})
def gesv(input: Tensor, A: Tensor, *, out: Sequence[Tensor] | None = None) -> R.solve:
    """X with A X = B, and the LU decomposition of A; an older name of `solve`.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.gesv(fb.tensor([[4.0]]), fb.tensor([[2.0]])).LU
    tensor([[2.]])
    """
    _removed("gesv", "torch.linalg.solve(A, B), whose arguments are reversed")
    return deliver_all(_solved(input, A), out, input, A, share="anything")  # type: ignore[return-value]


def _solved(b: Tensor, a: Tensor) -> R.solve:
    a, b = batched(squares("solve", a), matrices("solve", b, "B"))
    return R.solve(linalg.solve(a, b), OPS["lu_factor_ex"](a, True)[0])


@public
@documented({"b": "input"})
def trtrs(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> R.triangular_solve:
    """X with A X = B for triangular A, and a copy of A; an older name of `triangular_solve`.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.trtrs(fb.tensor([[4.0]]), fb.tensor([[2.0]])).solution
    tensor([[2.]])
    """
    _removed("trtrs", "torch.linalg.solve_triangular(A, B, upper=...)")
    return decompositions.triangular_solve(input, A, upper, transpose, unitriangular, out=out)


@public
def lstsq(input: Tensor, A: Tensor, *, out: Sequence[Tensor] | None = None) -> R.lstsq:
    """The X that minimises the norm of A X - B, or of X if there are several; and A's QR.

    Shapes: B (m, k), A (m, n), result (max(m, n), k): the first n rows are the solution, the
    squares of the others sum to those of the residuals.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.lstsq(fb.tensor([[2.0], [3.0]]), fb.tensor([[1.0], [0.0]])).solution[:1]
    tensor([[2.]])
    """
    _removed("lstsq", "torch.linalg.lstsq(A, B), whose arguments are reversed")
    return deliver_all(_least_squares(input, A), out, input, A, share="anything")  # type: ignore[return-value]


@public
@documented({"B": "input"})
def gels(input: Tensor, A: Tensor, *, out: Sequence[Tensor] | None = None) -> R.lstsq:
    """The X that minimises the norm of A X - B; an older name of `lstsq`.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.gels(fb.tensor([[1.0], [3.0]]), fb.tensor([[1.0], [1.0]])).QR
    tensor([[-1.4142],
            [ 0.4142]])
    """
    _removed("gels", "torch.linalg.lstsq(A, B), whose arguments are reversed")
    return deliver_all(_least_squares(input, A), out, input, A, share="anything")  # type: ignore[return-value]


def _least_squares(b: Tensor, a: Tensor) -> R.lstsq:
    a, b = matrices("lstsq", a), matrices("lstsq", b, "B")
    one_dtype("lstsq", a, b)
    if a.dim() != 2 or b.dim() != 2 or a.shape[0] != b.shape[0]:
        raise RuntimeError(
            "lstsq: Expected A and b to be matrices with equally many rows, got shapes "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    m, n = a.shape
    solution = linalg.pinv(a) @ b
    if m < n:  # LAPACK decomposes the other way round
        return R.lstsq(solution, decompositions.geqrf(adjoint_of(a)).a.mT)
    packed, tau = decompositions.geqrf(a.detach())
    turned = decompositions.ormqr(packed, tau, b, transpose=True)
    return R.lstsq(cat([solution, turned[n:]], 0), packed)


@public
def btrifact(
    A: Tensor, pivot: bool = True, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """L and U in one matrix each, and the row interchanges, counted from 1.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.btrifact(fb.tensor([[[0.0, 1.0], [2.0, 3.0]]]))[1]
    tensor([[2, 2]], dtype=torch.int32)
    """
    _removed("btrifact", "torch.linalg.lu_factor")
    return decompositions.lu(A, pivot, out=out)


@public
def btrifact_with_info(
    A: Tensor, pivot: bool = True, *, out: Sequence[Tensor] | None = None
) -> R.btrifact_with_info:
    """As `btrifact`, and the places of zero pivots, or 0.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.btrifact_with_info(fb.zeros(1, 2, 2)).info
    tensor([1], dtype=torch.int32)
    """
    _removed("btrifact_with_info", "torch.linalg.lu_factor_ex")
    found = R.btrifact_with_info(*decompositions.lu(A, pivot, get_infos=True))
    return deliver_all(found, out, A)  # type: ignore[return-value]


@public
@documented({"b": "input"})
def btrisolve(
    input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """The solutions of A x = b for decompositions from `btrifact`; b holds vectors or matrices.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.btrisolve(fb.tensor([[4.0]]), *fb.btrifact(fb.tensor([[[2.0]]])))
    tensor([[2.]])
    """
    _removed("btrisolve", "torch.linalg.lu_solve")
    need_tensor(LU_data, "btrisolve", "LU_data")
    vector = need_tensor(input, "btrisolve", "input").dim() == LU_data.dim() - 1
    b = input.unsqueeze(-1) if vector else input
    result = linalg.lu_solve(LU_data, LU_pivots, b)
    return deliver(result.squeeze(-1) if vector else result, out, input, LU_data, LU_pivots)


@public(method=False)
def btriunpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> R.lu_unpack:
    """P, L and U with P L U = A for decompositions from `btrifact`.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.btriunpack(*fb.btrifact(fb.tensor([[[2.0]]]))).U
    tensor([[[2.]]])
    """
    _removed("btriunpack", "torch.lu_unpack")
    return decompositions.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


@public
@takes_as_annotated
def symeig(
    input: Tensor,
    eigenvectors: bool = False,
    upper: bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> R.symeig:
    """Rising eigenvalues of symmetric matrices, of which one triangle is read; and eigenvectors.

    Without `eigenvectors` their place is empty.  The gradient has zeros in the other triangle.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.symeig(fb.tensor([[0.0, 1.0], [1.0, 0.0]])).eigenvalues
    tensor([-1.,  1.])
    """
    _removed("symeig", "torch.linalg.eigh, which reads the lower triangle by default")
    # Of the triangle that is read, so that the other one has no gradient.
    half = input.triu() if upper else input.tril()
    whole = half + (half - half.diagonal(dim1=-2, dim2=-1).diag_embed()).mH
    if eigenvectors:
        return deliver_all(R.symeig(*linalg.eigh(whole)), out, input, share="anything")  # type: ignore[return-value]
    found = R.symeig(linalg.eigvalsh(whole), input.new_empty((0,)))
    return deliver_all(found, out, input, share="anything")  # type: ignore[return-value]


@public(direct=False)
@documented({"a": "input"})
def eig(input: Tensor, eigenvectors: bool = False, *, out: Sequence[Tensor] | None = None) -> R.eig:
    """Eigenvalues (n, 2) of a real matrix, real and imaginary parts; and eigenvectors (n, n).

    The vector of a real eigenvalue is a column; those of a pair of conjugates are u + i v and
    u - i v with two columns u and v.  Without `eigenvectors` their place is empty.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.eig(fb.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([[ 0.,  1.],
            [ 0., -1.]])
    """
    _removed("eig", "torch.linalg.eig, whose results are complex")
    a = _eigenvalues.finite_squares("eig", input)
    if a.dim() != 2 or a.dtype.is_complex:
        raise RuntimeError(f"eig: a should be a real matrix, got {a.dim()}D of {a.dtype}")
    values, vectors = OPS["eig"](a)
    real, imaginary = values.real, values.imag
    pairs = stack([real, imaginary], -1)
    if not eigenvectors:
        return deliver_all(R.eig(pairs, a.new_empty((0,))), out, input, share="anything")  # type: ignore[return-value]
    columns = where(imaginary.detach() < 0, -vectors.imag, vectors.real)
    return deliver_all(R.eig(pairs, columns), out, input, share="anything")  # type: ignore[return-value]


@public
def matrix_rank(
    input: Tensor, tol: float | None = None, symmetric: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """How many singular values are larger than `tol`, by default max(m, n) * eps * the largest.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.matrix_rank(fb.eye(3))
    tensor(3)
    """
    _removed("matrix_rank", "torch.linalg.matrix_rank, where `symmetric` is `hermitian`")
    if isinstance(tol, bool):  # the form without a tolerance
        tol, symmetric = None, tol
    return linalg.matrix_rank(input, tol, symmetric, out=out)
