"""The standard's functions of matrices.

>>> import flambeau as fb
>>> xp = fb.array_api
>>> xp.linalg.trace(xp.eye(3))
tensor(3.)
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, NamedTuple

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.array_api._dtypes import COMPLEX
from flambeau.array_api._elementwise import pair
from flambeau.array_api._reductions import sum as _sum

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """What `eig` and `eigh` find."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What `qr` finds."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` finds."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What `svd` finds."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: builtins.bool = False) -> Tensor:
    """A triangular factor of a positive definite matrix."""
    return fb.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements."""
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("cross(): vectors have three elements")
    a, b = fb.broadcast_tensors(*pair(x1, x2))
    return fb.linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return fb.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the last two dimensions."""
    return fb.diagonal(x, offset, -2, -1)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors."""
    return EigResult(*fb.linalg.eig(x))


def eigh(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    return EigResult(*fb.linalg.eigh(x))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues."""
    return fb.linalg.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of a symmetric matrix."""
    return fb.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return fb.linalg.inv(x)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product."""
    return fb.matmul(*pair(x1, x2))


def matrix_norm(x: Tensor, /, *, keepdims: builtins.bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices."""
    return fb.linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """A matrix times itself, or its inverse."""
    return fb.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: object = None) -> Tensor:
    """How many singular values are above a part of the greatest."""
    return fb.linalg.matrix_rank(x, rtol=rtol)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """With the last two dimensions swapped."""
    return x.mT


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of each element of one with each of the other."""
    a, b = pair(x1, x2)
    return a.unsqueeze(1) * b.unsqueeze(0)


def pinv(x: Tensor, /, *, rtol: object = None) -> Tensor:
    """The pseudo-inverse."""
    return fb.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """An orthogonal and a triangular factor."""
    return QRResult(*fb.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign and logarithm of the determinant."""
    return SlogdetResult(*fb.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What a matrix has to be multiplied with; `x2` is a vector only if it has one dimension."""
    a, b = pair(x1, x2)
    if b.ndim == 1:
        return fb.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = fb.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return fb.linalg.solve(a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """The singular value decomposition."""
    return SVDResult(*fb.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values."""
    return fb.linalg.svdvals(x)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sums of products over dimensions of both."""
    return fb.tensordot(*pair(x1, x2), dims=axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sum of a diagonal."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The products of vectors, of which the first is conjugated.

    Raises:
        ValueError: the vectors differ in length.
    """
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot(): {x1.shape[axis]} elements and {x2.shape[axis]}")
    a, b = fb.broadcast_tensors(*pair(x1, x2))
    if a.dtype in COMPLEX:
        a = fb.conj_physical(a)
    return fb.sum(a * b, axis, dtype=a.dtype)


def vector_norm(
    x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False, ord: Any = 2
) -> Tensor:
    """A norm of all elements, or of those along dimensions."""
    if axis == ():
        return fb.abs(x) if ord else (x != 0).to(fb.abs(x).dtype)
    return fb.linalg.vector_norm(x, ord, axis, keepdims)


all_take_as_annotated(globals())
