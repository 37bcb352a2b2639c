"""Softmax over blocks of rows that stay in the processor's cache from maximum to quotient."""

from math import prod

import numpy as np

_BLOCK = 1 << 16  # elements


@np.errstate(all="ignore")
def softmax(a, dim):
    """exp(a - max) / sum of the same, along `dim`; half precision is computed in float32."""
    rows = np.moveaxis(np.atleast_1d(a), dim, -1)
    kind = np.result_type(a.dtype, np.float32)
    out = np.empty(rows.shape, a.dtype)
    length = rows.shape[-1]
    flat = prod(rows.shape[:-1]), length
    source, target = rows.reshape(flat), out.reshape(flat)
    step = max(_BLOCK // max(length, 1), 1)
    for start in range(0, len(source) if length else 0, step):
        block = source[start : start + step].astype(kind)
        block -= block.max(-1, keepdims=True)
        np.exp(block, out=block)
        block /= block.sum(-1, keepdims=True)
        target[start : start + step] = block
    return np.ascontiguousarray(np.moveaxis(out, -1, dim)).reshape(a.shape)
