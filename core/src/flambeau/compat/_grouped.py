"""Products of matrices in groups, as layers of experts make them."""

from __future__ import annotations

from itertools import pairwise

import flambeau as fb
from flambeau import Tensor

__all__ = ["grouped_mm"]

_TAKEN = (fb.float32, fb.bfloat16, fb.float16)


def _bounds(offs: Tensor) -> list[tuple[int, int]]:
    return list(pairwise([0, *offs.tolist()]))


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: fb.dtype | None = None,
) -> Tensor:
    """Products of matrices, group by group.

    Args:
        mat_a: matrices for the groups, or one whose rows (columns, if both are one) are theirs.
        mat_b: matrices for the groups, or one whose columns (rows) are theirs.
        offs: where each group ends, in int32, if an operand is one matrix; what comes after the
            last is zero.
        bias: not taken.
        out_dtype: the dtype of `mat_a`.

    Raises:
        RuntimeError: operands, offsets or dtypes do not go together.

    >>> import flambeau as fb
    >>> rows, experts = fb.ones(3, 2), fb.stack([fb.ones(2, 2), 2 * fb.ones(2, 2)])
    >>> grouped_mm(rows, experts, offs=fb.tensor([1, 3], dtype=fb.int32)).tolist()
    [[2.0, 2.0], [4.0, 4.0], [4.0, 4.0]]
    """
    for name, each in (("mat_a", mat_a), ("mat_b", mat_b)):
        if each.dtype not in _TAKEN:
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {each.dtype}"
            )
        if each.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    single = mat_a.dim() == 2 or mat_b.dim() == 2
    if (offs is not None) != single:
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, and only then")
    if mat_a.dtype is not mat_b.dtype:
        raise RuntimeError(f"expected one dtype, got {mat_a.dtype} and {mat_b.dtype}")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if offs is None:
        return fb.bmm(mat_a, mat_b)
    if offs.dtype is not fb.int32 or offs.dim() != 1:
        raise RuntimeError("Offsets have to be 1d and of int32")
    groups = _bounds(offs)
    for each in (mat_a, mat_b):
        if each.dim() == 3 and len(each) != len(groups):
            raise RuntimeError("matrix batch sizes have to match")
    if mat_a.dim() == mat_b.dim() == 2:
        return fb.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in groups])
    if mat_b.dim() == 3:
        parts = [mat_a[i:j] @ mat_b[n] for n, (i, j) in enumerate(groups)]
        rest = mat_a.new_zeros(len(mat_a) - groups[-1][1], mat_b.shape[2])
        return fb.cat([*parts, rest])
    parts = [mat_a[n] @ mat_b[:, i:j] for n, (i, j) in enumerate(groups)]
    rest = mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - groups[-1][1])
    return fb.cat([*parts, rest], dim=1)
