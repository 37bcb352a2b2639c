"""Linear algebra: decompositions, solutions, norms and products of matrices.

All functions take one matrix or batches of them: (..., m, n).  float32, float64, complex64 and
complex128 are known to the decompositions.

>>> import flambeau as fb
>>> a = fb.tensor([[2.0, 1.0], [1.0, 2.0]])
>>> fb.linalg.eigvalsh(a)
tensor([1., 3.])
"""

from __future__ import annotations

from flambeau._tensor.overrides import offer_calls
from flambeau.linalg._eigenvalues import det, eig, eigh, eigvals, eigvalsh, slogdet, svd, svdvals
from flambeau.linalg._factors import (
    LinAlgError,
    cholesky,
    cholesky_ex,
    householder_product,
    ldl_factor,
    ldl_factor_ex,
    lu,
    lu_factor,
    lu_factor_ex,
    qr,
)
from flambeau.linalg._norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from flambeau.linalg._solutions import (
    inv,
    inv_ex,
    ldl_solve,
    lstsq,
    lu_solve,
    pinv,
    solve,
    solve_ex,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from flambeau.linalg._vectors import cross, diagonal, vander, vecdot
from flambeau.ops.matrices import eigenvalues, factorization, solving
from flambeau.ops.matrices.linalg import matmul
from flambeau.ops.matrices.products import matrix_exp, matrix_power, multi_dot

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

offer_calls(globals())
