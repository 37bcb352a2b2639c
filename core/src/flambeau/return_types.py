"""The classes of results that are named tuples, such as what `max` along a dimension returns.

>>> import flambeau as fb
>>> isinstance(fb.ones(2).max(0), fb.return_types.max)
True
"""

from __future__ import annotations

from flambeau.linalg._results import (
    btrifact_with_info,
    eig,
    geqrf,
    linalg_cholesky_ex,
    linalg_eig,
    linalg_eigh,
    linalg_inv_ex,
    linalg_ldl_factor,
    linalg_ldl_factor_ex,
    linalg_lstsq,
    linalg_lu,
    linalg_lu_factor,
    linalg_lu_factor_ex,
    linalg_qr,
    linalg_slogdet,
    linalg_solve_ex,
    linalg_svd,
    lstsq,
    lu_unpack,
    pstrf,
    qr,
    slogdet,
    solve,
    svd,
    symeig,
    triangular_solve,
)
from flambeau.ops.indices.indexing import sort_return as sort
from flambeau.ops.indices.indexing import topk_return as topk
from flambeau.ops.pointwise.floating_point import frexp_return as frexp
from flambeau.ops.reductions.cumulative import cummax_return as cummax
from flambeau.ops.reductions.cumulative import cummin_return as cummin
from flambeau.ops.reductions.reduction import max_return as max
from flambeau.ops.reductions.reduction import min_return as min
from flambeau.ops.reductions.statistics import aminmax_return as aminmax
from flambeau.ops.reductions.statistics import kthvalue_return as kthvalue
from flambeau.ops.reductions.statistics import median_return as median
from flambeau.ops.reductions.statistics import mode_return as mode
from flambeau.ops.reductions.statistics import nanmedian_return as nanmedian

__all__ = [
    "aminmax",
    "btrifact_with_info",
    "cummax",
    "cummin",
    "eig",
    "frexp",
    "geqrf",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_inv_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_svd",
    "lstsq",
    "lu_unpack",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "pstrf",
    "qr",
    "slogdet",
    "solve",
    "sort",
    "svd",
    "symeig",
    "topk",
    "triangular_solve",
]
