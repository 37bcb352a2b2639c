"""The named tuples that the functions of linear algebra return."""

from __future__ import annotations

from typing import NamedTuple

from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor


@named_tuple
class linalg_cholesky_ex(NamedTuple):  # noqa: N801
    """A Cholesky factor, and the order of the first minor that is not positive."""

    L: Tensor
    info: Tensor


@named_tuple
class linalg_eig(NamedTuple):  # noqa: N801
    """Eigenvalues and eigenvectors of a general matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@named_tuple
class linalg_eigh(NamedTuple):  # noqa: N801
    """Eigenvalues and eigenvectors of a Hermitian matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@named_tuple
class linalg_inv_ex(NamedTuple):  # noqa: N801
    """An inverse, and the place of the first zero pivot."""

    inverse: Tensor
    info: Tensor


@named_tuple
class linalg_lstsq(NamedTuple):  # noqa: N801
    """A least-squares solution and what is known of it."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@named_tuple
class linalg_lu(NamedTuple):  # noqa: N801
    """The permutation and the factors of an LU decomposition."""

    P: Tensor
    L: Tensor
    U: Tensor


@named_tuple
class linalg_ldl_factor(NamedTuple):  # noqa: N801
    """A packed LDL decomposition and its interchanges."""

    LD: Tensor
    pivots: Tensor


@named_tuple
class linalg_ldl_factor_ex(NamedTuple):  # noqa: N801
    """As `linalg_ldl_factor`, and the place of the first zero block."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@named_tuple
class linalg_lu_factor(NamedTuple):  # noqa: N801
    """A packed LU decomposition and its row interchanges."""

    LU: Tensor
    pivots: Tensor


@named_tuple
class linalg_lu_factor_ex(NamedTuple):  # noqa: N801
    """As `linalg_lu_factor`, and the place of the first zero pivot."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@named_tuple
class linalg_qr(NamedTuple):  # noqa: N801
    """The factors of a QR decomposition."""

    Q: Tensor
    R: Tensor


@named_tuple
class linalg_slogdet(NamedTuple):  # noqa: N801
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


@named_tuple
class linalg_solve_ex(NamedTuple):  # noqa: N801
    """A solution, and the place of the first zero pivot."""

    result: Tensor
    info: Tensor


@named_tuple
class linalg_svd(NamedTuple):  # noqa: N801
    """The factors of a singular value decomposition."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@named_tuple
class btrifact_with_info(NamedTuple):  # noqa: N801
    """A packed LU decomposition, its row interchanges, and places of zero pivots."""

    LU_data: Tensor
    pivots: Tensor
    info: Tensor


@named_tuple
class eig(NamedTuple):  # noqa: N801
    """Eigenvalues as pairs of real numbers, and eigenvectors."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@named_tuple
class geqrf(NamedTuple):  # noqa: N801
    """R with reflectors below it, and the factors of the reflectors."""

    a: Tensor
    tau: Tensor


@named_tuple
class lstsq(NamedTuple):  # noqa: N801
    """A least-squares solution over its residuals, and a QR decomposition."""

    solution: Tensor
    QR: Tensor


@named_tuple
class lu_unpack(NamedTuple):  # noqa: N801
    """The permutation and the factors of an LU decomposition."""

    P: Tensor
    L: Tensor
    U: Tensor


@named_tuple
class pstrf(NamedTuple):  # noqa: N801
    """A Cholesky factor and its pivots."""

    u: Tensor
    pivot: Tensor


@named_tuple
class qr(NamedTuple):  # noqa: N801
    """The factors of a QR decomposition."""

    Q: Tensor
    R: Tensor


@named_tuple
class slogdet(NamedTuple):  # noqa: N801
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


@named_tuple
class solve(NamedTuple):  # noqa: N801
    """A solution and the packed LU decomposition that gave it."""

    solution: Tensor
    LU: Tensor


@named_tuple
class svd(NamedTuple):  # noqa: N801
    """The factors of a singular value decomposition, V not transposed."""

    U: Tensor
    S: Tensor
    V: Tensor


@named_tuple
class symeig(NamedTuple):  # noqa: N801
    """Eigenvalues and eigenvectors of a symmetric matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@named_tuple
class triangular_solve(NamedTuple):  # noqa: N801
    """A solution and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor
