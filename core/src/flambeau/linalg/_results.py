"""The named tuples that the functions of linear algebra return."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._tensor import Tensor


def _shown(self: Any) -> str:
    fields = ",\n".join(f"{n}={v!r}" for n, v in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{fields})"


class linalg_cholesky_ex(NamedTuple):  # noqa: N801
    """A Cholesky factor, and the order of the first minor that is not positive."""

    L: Tensor
    info: Tensor
    __repr__ = _shown


class linalg_eig(NamedTuple):  # noqa: N801
    """Eigenvalues and eigenvectors of a general matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor
    __repr__ = _shown


class linalg_eigh(NamedTuple):  # noqa: N801
    """Eigenvalues and eigenvectors of a Hermitian matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor
    __repr__ = _shown


class linalg_inv_ex(NamedTuple):  # noqa: N801
    """An inverse, and the place of the first zero pivot."""

    inverse: Tensor
    info: Tensor
    __repr__ = _shown


class linalg_lstsq(NamedTuple):  # noqa: N801
    """A least-squares solution and what is known of it."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
    __repr__ = _shown


class linalg_lu(NamedTuple):  # noqa: N801
    """The permutation and the factors of an LU decomposition."""

    P: Tensor
    L: Tensor
    U: Tensor
    __repr__ = _shown


class linalg_ldl_factor(NamedTuple):  # noqa: N801
    """A packed LDL decomposition and its interchanges."""

    LD: Tensor
    pivots: Tensor
    __repr__ = _shown


class linalg_ldl_factor_ex(NamedTuple):  # noqa: N801
    """As `linalg_ldl_factor`, and the place of the first zero block."""

    LD: Tensor
    pivots: Tensor
    info: Tensor
    __repr__ = _shown


class linalg_lu_factor(NamedTuple):  # noqa: N801
    """A packed LU decomposition and its row interchanges."""

    LU: Tensor
    pivots: Tensor
    __repr__ = _shown


class linalg_lu_factor_ex(NamedTuple):  # noqa: N801
    """As `linalg_lu_factor`, and the place of the first zero pivot."""

    LU: Tensor
    pivots: Tensor
    info: Tensor
    __repr__ = _shown


class linalg_qr(NamedTuple):  # noqa: N801
    """The factors of a QR decomposition."""

    Q: Tensor
    R: Tensor
    __repr__ = _shown


class linalg_slogdet(NamedTuple):  # noqa: N801
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor
    __repr__ = _shown


class linalg_solve_ex(NamedTuple):  # noqa: N801
    """A solution, and the place of the first zero pivot."""

    result: Tensor
    info: Tensor
    __repr__ = _shown


class linalg_svd(NamedTuple):  # noqa: N801
    """The factors of a singular value decomposition."""

    U: Tensor
    S: Tensor
    Vh: Tensor
    __repr__ = _shown


class btrifact_with_info(NamedTuple):  # noqa: N801
    """A packed LU decomposition, its row interchanges, and places of zero pivots."""

    LU_data: Tensor
    pivots: Tensor
    info: Tensor
    __repr__ = _shown


class eig(NamedTuple):  # noqa: N801
    """Eigenvalues as pairs of real numbers, and eigenvectors."""

    eigenvalues: Tensor
    eigenvectors: Tensor
    __repr__ = _shown


class geqrf(NamedTuple):  # noqa: N801
    """R with reflectors below it, and the factors of the reflectors."""

    a: Tensor
    tau: Tensor
    __repr__ = _shown


class lstsq(NamedTuple):  # noqa: N801
    """A least-squares solution over its residuals, and a QR decomposition."""

    solution: Tensor
    QR: Tensor
    __repr__ = _shown


class lu_unpack(NamedTuple):  # noqa: N801
    """The permutation and the factors of an LU decomposition."""

    P: Tensor
    L: Tensor
    U: Tensor
    __repr__ = _shown


class pstrf(NamedTuple):  # noqa: N801
    """A Cholesky factor and its pivots."""

    u: Tensor
    pivot: Tensor
    __repr__ = _shown


class qr(NamedTuple):  # noqa: N801
    """The factors of a QR decomposition."""

    Q: Tensor
    R: Tensor
    __repr__ = _shown


class slogdet(NamedTuple):  # noqa: N801
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor
    __repr__ = _shown


class solve(NamedTuple):  # noqa: N801
    """A solution and the packed LU decomposition that gave it."""

    solution: Tensor
    LU: Tensor
    __repr__ = _shown


class svd(NamedTuple):  # noqa: N801
    """The factors of a singular value decomposition, V not transposed."""

    U: Tensor
    S: Tensor
    V: Tensor
    __repr__ = _shown


class symeig(NamedTuple):  # noqa: N801
    """Eigenvalues and eigenvectors of a symmetric matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor
    __repr__ = _shown


class triangular_solve(NamedTuple):  # noqa: N801
    """A solution and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor
    __repr__ = _shown
