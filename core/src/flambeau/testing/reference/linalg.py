"""Linear algebra kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import and_, mul
from typing import Any

from flambeau.testing.reference.array import (
    RefArray,
    broadcast_shapes,
    broadcast_strides,
    build,
    need_room,
    offsets,
    same_dtype,
)
from flambeau.testing.reference.complexes import multiply
from flambeau.testing.reference.reduction import total

_PRODUCT: tuple[Callable[[Any, Any], Any], ...] = (and_, mul, mul, multiply)


def matmul(a: RefArray, b: RefArray) -> RefArray:
    """The matrix product of the last two dimensions; leading dimensions broadcast.

    A vector on the left is a row, on the right a column, and its dimension leaves the result.
    Sums of products are formed in double precision (exactly, for integers) and rounded once.

    Raises:
        ValueError: an operand is 0-d, or the inner or leading dimensions disagree.
    """
    dtype = same_dtype("matmul", a, b)
    if not a.shape or not b.shape:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape}; both need a dimension")
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise ValueError(
            f"matmul: shapes {a.shape} and {b.shape}; "
            f"inner lengths {left[-1]} and {right[-2]} differ"
        )
    batch = broadcast_shapes(left[:-2], right[:-2])
    rows, inner, columns = left[-2], left[-1], right[-1]
    times = _PRODUCT[dtype.category]
    need_room(math.prod(batch) * rows * columns)
    values: list[Any] = []
    for first, second in zip(_matrices(left, batch), _matrices(right, batch), strict=True):
        stop = second + inner * columns
        lines = [a.data[first + r * inner : first + (r + 1) * inner] for r in range(rows)]
        stacks = [b.data[p:stop:columns] for p in range(second, second + columns)]
        values += [total(map(times, line, stack), dtype) for line in lines for stack in stacks]
    outer = (*([rows] if len(a.shape) > 1 else []), *([columns] if len(b.shape) > 1 else []))
    return build((*batch, *outer), dtype, values)


def _matrices(shape: tuple[int, ...], batch: tuple[int, ...]) -> list[int]:
    """Position of the first element of each matrix, leading dimensions broadcast to `batch`."""
    size = shape[-2] * shape[-1]
    lead = shape[:-2]
    strides = [s * size for s in broadcast_strides(lead, batch)]
    return offsets(batch, strides)


KERNELS: dict[str, Callable[..., RefArray]] = {"matmul": matmul}
