"""What products ask for first: layers of some rows or of a small weight, and small matrices."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import FLOAT32, Array, compiled, made, maker
from flambeau_numpy.extending import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Callable


# Up to so many elements of a weight any row is worth it, and below so many eight rows and more.
_ANY, _EIGHT = 1 << 14, 1 << 16
# Of a larger one, the rows that fill a vector; of many, products of the size of `_MOST`.
# `pair` leaves the same products to others: a layer and its product agree.
_FEWEST, _FEW_ROWS = 16, 192


def linear(
    x: Array,
    weight: Array,
    bias: Array | None,
    _empty: Callable[..., Any] = np.empty,
    _kind: Any = FLOAT32,
) -> Array | None:
    """x @ weightᵀ + bias over the last dimension of float32 arrays, or None if others do better."""
    if x.dtype is not _kind or weight.dtype is not _kind or weight.ndim != 2 or not x.ndim:
        return None
    shape, (lines, depth) = x.shape, weight.shape
    elements, size = x.size, lines * depth
    if not elements or not size or shape[-1] != depth:
        return None
    rows = elements // depth
    if not _suits(rows, size):
        return None
    if not x.flags.c_contiguous or not weight.flags.c_contiguous:
        return None
    if bias is not None and (
        bias.dtype is not _kind or bias.shape != (lines,) or not bias.flags.c_contiguous
    ):
        return None
    if len(shape) == 2 and rows * lines <= 4096:
        out = _empty((rows, lines), _kind)
    else:
        out = made((*shape[:-1], lines), _kind)
    native.linear(out, x, weight, bias, rows, lines, depth)
    return out


def _suits(rows: int, size: int) -> bool:
    """Whether a layer of so many rows and so large a weight is one for the compiled kernel."""
    if size <= _ANY or (rows >= 8 and size < _EIGHT):
        return True
    return rows >= _FEWEST and (rows <= _FEW_ROWS or rows * size <= _MOST)


def linear_of(
    shape: tuple[int, ...],
    lines: int,
    *,
    relu: bool = False,
    _kind: Any = FLOAT32,
) -> Callable[[Array, Array, Array | None], Array] | None:
    """`linear` of row-major float32 arrays, of which it asks nothing; None if others do better.

    Args:
        shape: that of the input, whose last dimension is the weight's.
        lines: how many lines the weight has.
        relu: make what `relu` makes of the result.
    """
    depth = shape[-1] if shape else 0
    if not (elements := prod(shape)) or not lines or not _suits(elements // depth, lines * depth):
        return None
    rows, out_shape = elements // depth, (*shape[:-1], lines)
    run = native.linear_relu if relu else native.linear
    _empty = maker(rows * lines, _kind)

    def linear(x: Array, weight: Array, bias: Array | None) -> Array:
        out = _empty(out_shape, _kind)
        run(out, x, weight, bias, rows, lines, depth)
        return out

    return linear


# OpenBLAS copies nothing of products of fewer multiplications; where the second operand is stored
# column by column, of those whose result has fewer elements.
_COPIED, _COPIED_TURNED = 1_000_000, 1600
_EMPTY_LANES = 1 << 16  # multiplications, with those of empty lanes, of which many may be empty
# Beyond so many multiplications both operands had better be copied, of a few rows from fewer on.
_MOST, _MOST_OF_FEW = 1 << 27, 1 << 24
_FEWEST_ROWS, _MANY_ROWS = 4, 64
# Of the first operand stored column by column a block of 512 lines is read a few numbers of each at
# a time: lines that are a multiple of a large power of two apart meet in few places of a cache.
_BLOCK, _APART = 512, 1 << 17


def matrices(
    a: Array,
    b: Array,
    out: Array,
    line: Array | None = None,
    relu: bool = False,
    _kind: Any = FLOAT32,
) -> bool:
    """Write a @ b + line of float32 matrices to `out`; False where others do better."""
    if a.dtype is not _kind or b.dtype is not _kind or out.dtype is not _kind:
        return False
    (rows, depth), (same, columns) = a.shape, b.shape
    a_turned, b_turned = not a.flags.c_contiguous, not b.flags.c_contiguous
    if depth != same or not _multiplied(rows, columns, depth, a_turned, b_turned):
        return False
    if out.shape != (rows, columns) or not out.flags.c_contiguous:
        return False
    if not (a.flags.forc and b.flags.forc):
        return False
    if line is not None and (
        line.dtype is not _kind or line.shape != (columns,) or not line.flags.c_contiguous
    ):
        return False
    _write(out, a, b, line, (rows, columns, depth), a_turned, b_turned, relu)
    return True


def _write(
    out: Array,
    a: Array,
    b: Array,
    line: Array | None,
    sizes: tuple[int, int, int],
    a_turned: bool,
    b_turned: bool,
    relu: bool,
) -> None:
    """Of matrices that suit; a layer's product turns whichever operand costs less."""
    if not b_turned or a_turned:
        left, right = a.T if a_turned else a, b.T if b_turned else b
        native.matrices(out, left, right, line, *sizes, a_turned, b_turned, relu)
    elif relu:
        native.linear_relu(out, a, b.T, line, *sizes)
    else:
        native.linear(out, a, b.T, line, *sizes)


def _multiplied(rows: int, columns: int, depth: int, a_turned: bool, b_turned: bool) -> bool:
    """Whether the product of such matrices is one for the compiled kernel."""
    if rows < _FEWEST_ROWS or not _fills(columns):
        return False
    work = rows * columns * depth
    if work < _COPIED and (a_turned or not b_turned or rows * columns < _COPIED_TURNED):
        return False
    if a_turned and min(depth, _BLOCK) * (rows & -rows) > _APART:
        return False
    return (
        work <= _MOST if rows >= _MANY_ROWS or (b_turned and not a_turned) else work <= _MOST_OF_FEW
    )


def _fills(columns: int) -> bool:
    """Whether vectors of sixteen columns are three quarters full."""
    return 4 * columns >= 3 * (columns + 15 & -16)


def is_pair(rows: int, columns: int, depth: int) -> bool:
    """Whether `pair` multiplies matrices of these sizes, of which not only the second is turned."""
    if min(rows, columns, depth) < 2 or rows * columns * depth >= _COPIED:
        return False
    return rows * depth * (columns + 15 & -16) <= _EMPTY_LANES or _fills(columns)


def matrices_of(
    shape: tuple[int, ...],
    columns: int,
    a_turned: bool,
    b_turned: bool,
    _kind: Any = FLOAT32,
) -> Callable[..., Array] | None:
    """a @ b of such float32 arrays, of which it asks nothing; None if others do better.

    Args:
        shape: that of the first, row-major if it has more than two dimensions.
        columns: how many columns the second has, a matrix.
        a_turned: whether the first is stored column by column.
        b_turned: whether the second is.

    Returns:
        A function of both, of what every line has added, and of whether relu follows.
    """
    rows, depth = prod(shape[:-1]), shape[-1]
    if not _multiplied(rows, columns, depth, a_turned, b_turned):
        return None
    out_shape, sizes = (*shape[:-1], columns), (rows, columns, depth)
    _empty = maker(rows * columns, _kind)

    def product(a: Array, b: Array, line: Array | None = None, relu: bool = False) -> Array:
        out = _empty(out_shape, _kind)
        _write(out, a, b, line, sizes, a_turned, b_turned, relu)
        return out

    return product


# Multiplications of a product below which PyTorch has a loop and no library, so its bits are known.
_FEW = 400
_IN_ORDER = compiled("few")


def few(
    a: Array, b: Array, _find: Any = _IN_ORDER.get, _empty: Callable[..., Any] = np.empty
) -> Array | None:
    """a @ b of batches of matrices of few numbers each; None where others do better.

    Of two matrices alone the library makes the product: layers ask it too, and agree to the bit.
    """
    kind = a.dtype
    run = _find(kind)
    if run is None or b.dtype is not kind or a.ndim == 2 == b.ndim or a.ndim < 2 or b.ndim < 2:
        return None
    *left, rows, depth = a.shape
    *right, same, columns = b.shape
    ours, theirs = prod(left), prod(right)
    more, fewer = (left, right) if (len(left), ours) >= (len(right), theirs) else (right, left)
    # One batch is the end of the other's shape, or one matrix.
    if more[len(more) - len(fewer) :] != fewer and prod(fewer) != 1:
        return None
    count = prod(more)
    shape = (*more, rows, columns)
    if depth != same or not 0 < rows * depth * columns < _FEW or not count:
        return None
    if not a.flags.c_contiguous:
        a = np.ascontiguousarray(a)
    if not b.flags.c_contiguous:
        b = np.ascontiguousarray(b)
    out = _empty(shape, kind)
    run(out, a, b, count, rows, depth, columns, ours, theirs)
    return out


pair: Callable[[Array, Array], Array | None] | None = None
"""a @ b of two float32 matrices of few numbers, or of two batches of as many; None where others do
better: see `is_pair`."""
if native is not None and native.has_linear():
    pair = native.pairing(FLOAT32, _FEW, _COPIED, native.matrices, THRESHOLD, made)
