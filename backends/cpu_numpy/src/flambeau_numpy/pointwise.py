"""Ufuncs as kernels: silent, with pooled memory for large results, and blockwise formulas.

A kernel made here costs one Python frame (0.08 µs) over the bare ufunc on small arrays. For that
it drops floating-point warnings and lets large results reuse memory, which is worth a factor of
ten in a chain of operations (see `flambeau_numpy.allocator`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.allocator import THRESHOLD, empty
from flambeau_numpy.casts import FLOAT32, HALVES, copy_order, is_half, recast, wide
from flambeau_numpy.silence import quiet, silent

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Any]

_ORDERED = (np.subtract, np.true_divide)
_FEW = 2048  # bytes of 16-bit numbers, from which on they are converted as a whole
BLOCK = 32768  # elements per step of a blockwise formula: its float32 blocks fit the level-2 cache


def row_major(a: Any) -> Any:
    """`a`, or a row-major copy: reductions and scans of NumPy follow the order of their operand."""
    return a if a.ndim < 2 or a.flags.c_contiguous else a.copy()


def _memory_order(a: Array) -> list[int] | None:
    """The dimensions from the outermost in memory inwards, if `a` is not row-major."""
    if a.flags.c_contiguous or copy_order(a) == "C":
        return None
    order = sorted(range(a.ndim), key=lambda d: -abs(a.strides[d]))
    return order if order != sorted(order) else None


def _out_for(ufunc: np.ufunc, *operands: Array) -> Array | None:
    # A pooled output where NumPy itself would make a C-contiguous one.
    first = operands[0]
    if not first.flags.c_contiguous:
        return None
    shape = first.shape
    for other in operands[1:]:
        if other.shape != shape and other.ndim:
            shape = np.broadcast(*operands).shape
            break
    return empty(shape, ufunc.resolve_dtypes((*(o.dtype for o in operands), None))[-1])


def _large(ufunc: np.ufunc) -> Kernel:
    @quiet
    def large(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if dtype.itemsize == 2 and is_half(dtype):
            # NumPy's loops over 16-bit floats convert number by number; whole arrays go faster.
            result = ufunc(*(wide(o) for o in operands))
            return recast(result, dtype) if result.dtype == FLOAT32 else result
        return ufunc(*operands, out=_out_for(ufunc, *operands))

    return large


def _large_extremum(ufunc: np.ufunc) -> Kernel:
    # Against a number, np.maximum and np.minimum take three times as long as against a vector.
    large = _large(ufunc)

    @quiet
    def extremum(a: Array, b: Array) -> Array:
        if b.ndim or not a.flags.c_contiguous:
            return large(a, b)
        out = empty(a.shape, a.dtype)
        source, target = a.reshape(-1), out.reshape(-1)
        number = np.full(BLOCK, b, a.dtype)
        for start in range(0, source.size, BLOCK):
            piece = source[start : start + BLOCK]
            ufunc(piece, number[: piece.size], out=target[start : start + BLOCK])
        return out

    return extremum


def unary(ufunc: np.ufunc, large: Kernel | None = None) -> Kernel:
    """A kernel ``(a)`` from a ufunc of one argument; `large` computes large arrays."""
    large, quietly, least, limit = large or _large(ufunc), quiet(ufunc), _FEW, THRESHOLD

    def kernel(a: Array) -> Any:
        try:
            few = a.nbytes < least or (a.nbytes < limit and a.itemsize != 2)
            return ufunc(a) if few else large(a)
        except FloatingPointError:  # the user's np.seterr(all="raise") is not for tensors
            return quietly(a)

    return _named(kernel, ufunc)


def binary(ufunc: np.ufunc, large: Kernel | None = None, repeated: int = THRESHOLD) -> Kernel:
    """A kernel ``(a, b)`` from a ufunc of two arguments; `large` computes large arrays.

    And those of `repeated` bytes and more, of which one operand is an array of another shape.
    """
    if large is None:
        large = _large_extremum(ufunc) if ufunc in (np.maximum, np.minimum) else _large(ufunc)
    quietly, least, limit = quiet(ufunc), _FEW, THRESHOLD

    def kernel(a: Array, b: Array) -> Any:
        try:
            few = (most := a.nbytes) < least or (
                most < limit
                and a.itemsize != 2
                and (most < repeated or a.shape == b.shape or not b.ndim)
            )
            return ufunc(a, b) if few else large(a, b)
        except FloatingPointError:
            return quietly(a, b)

    def number_first(a: Array, b: Array) -> object:
        try:
            few = (most := max(a.nbytes, b.nbytes)) < least or (
                most < limit
                and a.itemsize != 2
                and (most < repeated or a.shape == b.shape or not (a.ndim and b.ndim))
            )
            return ufunc(a, b) if few else large(a, b)
        except FloatingPointError:
            return quietly(a, b)

    # Where operands commute, the number of a pair with an array comes second.
    return _named(number_first if ufunc in _ORDERED else kernel, ufunc)


def unary_in_place(ufunc: np.ufunc) -> Kernel:
    """A kernel ``name_(a)`` that writes into `a`."""
    large, halves, least = _large(ufunc), HALVES, _FEW

    def kernel(a: Array) -> None:
        if a.itemsize == 2 and a.nbytes >= least and a.dtype in halves:
            a[...] = large(a)
            return
        try:
            ufunc(a, out=a)
        except FloatingPointError:  # raised after the last element was written
            pass

    return _named(kernel, ufunc)


def binary_in_place(ufunc: np.ufunc, large: Kernel | None = None) -> Kernel:
    """A kernel ``name_(a, b)`` that writes into `a`; `large` computes many 16-bit floats."""
    compute, halves, least, quietly = large or _large(ufunc), HALVES, _FEW, quiet(ufunc)
    keeps_dtype = ufunc is not np.true_divide

    def kernel(a: Array, b: Array) -> None:
        if a.itemsize == 2 and a.nbytes >= least and a.dtype in halves:
            a[...] = compute(a, b)
            return
        if a.size == 1 and keeps_dtype and a.dtype is b.dtype:
            try:  # with `out`, NumPy thinks longer about shared memory than both steps take
                a[...] = ufunc(a, b)
            except FloatingPointError:
                a[...] = quietly(a, b)
            return
        try:
            ufunc(a, b, out=a)
        except FloatingPointError:  # raised after the last element was written
            pass

    return _named(kernel, ufunc)


def _named(kernel: Kernel, ufunc: np.ufunc) -> Kernel:
    kernel.__name__ = kernel.__qualname__ = ufunc.__name__
    return silent(kernel)


def blockwise(formula: Callable[..., None], scratch: int = 0) -> Callable[..., Array]:
    """A function of arrays of one shape from a formula on blocks that stay in the cache.

    `formula(out, *operands, *buffers)` writes `out`; with `scratch` buffers of the size of a block.
    Operands that are 16-bit floats arrive as float32 and the result is rounded to their dtype.
    A formula sees whole arrays if they are small, else one-dimensional contiguous pieces.  The
    result keeps the order of the dimensions of the first operand in memory.
    """

    @quiet
    def run(first: Array, *others: Array) -> Array:
        if (order := _memory_order(first)) is not None:
            moved = run(*(o.transpose(order) for o in (first, *others)))
            return moved.transpose(sorted(range(first.ndim), key=order.__getitem__))
        dtype = first.dtype
        half = dtype.itemsize == 2 and is_half(dtype)
        work = FLOAT32 if half else dtype
        if first.size <= BLOCK and not half:
            out = np.empty(first.shape, dtype)
            formula(out, first, *others, *(np.empty(first.shape, dtype) for _ in range(scratch)))
            return out
        operands = [np.ascontiguousarray(o).reshape(-1) for o in (first, *others)]
        out = empty(first.shape, dtype)
        flat = out.reshape(-1)
        count = flat.size
        step = min(BLOCK, count)
        buffers = [np.empty(step, work) for _ in range(scratch + half)]
        for start in range(0, count, BLOCK):
            piece = slice(start, start + BLOCK)
            target = flat[piece]
            parts = [o[piece] for o in operands]
            spare = buffers if target.size == step else [b[: target.size] for b in buffers]
            if half:
                formula(spare[-1], *(wide(p) for p in parts), *spare[:-1])
                target[...] = recast(spare[-1], dtype)
            else:
                formula(target, *parts, *spare)
        return out

    return run
