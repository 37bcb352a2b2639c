"""What the wrappers share: which arrays compiled code takes, and the kernel for all others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from flambeau_native import extension
from flambeau_native.extension import native
from flambeau_numpy.casts import FLOAT16, HALVES, narrow, wide
from flambeau_numpy.extending import BFLOAT16, THRESHOLD, Array, Kernel, empty, empty_like
from flambeau_numpy.extending import KERNELS as NUMPY

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
WORD = np.dtype(np.uint16)  # a bfloat16 as compiled code sees it: NumPy exports no buffer of them
FLOATS = {FLOAT32: "f32", FLOAT64: "f64", FLOAT16: "f16", BFLOAT16: "bf16"}
"""What ends the names of compiled functions, by the floats that these take."""
SUFFIXES = {**FLOATS, INT32: "i32", INT64: "i64", BOOL: "b8"}
_EXPORTED = (FLOAT32, FLOAT64, FLOAT16)  # dtypes of which NumPy exports buffers


def compiled(name: str, *more: np.dtype) -> dict[np.dtype, Kernel]:
    """The compiled functions of `name` by dtype, of floats and `more`; others are absent."""
    dtypes = (*FLOATS, *more)
    found = {dtype: getattr(native, f"{name}_{SUFFIXES[dtype]}", None) for dtype in dtypes}
    if (of_words := found[BFLOAT16]) is not None:
        found[BFLOAT16] = _of_words(of_words)
    return {dtype: function for dtype, function in found.items() if function is not None}


def _of_words(run: Kernel) -> Kernel:
    """What takes arrays of bfloat16 where `run` takes their bits."""

    def function(*args: Any) -> None:
        run(*(x.view(WORD) if isinstance(x, np.ndarray) else x for x in args))

    return function


def otherwise(name: str) -> Kernel:
    """The NumPy kernel of an op: for dtypes and layouts that are not compiled."""
    return NUMPY[name]


def halves_by(kernel: Callable[[], Kernel], general: Kernel) -> Kernel:
    """`general`, and for 16-bit floats the kernel that is asked for, in float32."""

    def function(*args: Any) -> Any:
        dtype = args[0].dtype
        if dtype not in HALVES:
            return general(*args)
        found = kernel()(*(wide(x) if isinstance(x, np.ndarray) else x for x in args))
        if isinstance(found, tuple):
            return tuple(narrow(r, dtype) for r in found)
        return narrow(found, dtype)

    return function


def maker(elements: int, dtype: np.dtype) -> Callable[..., Array]:
    """What makes uninitialised row-major arrays of so many elements."""
    return np.empty if elements * dtype.itemsize < THRESHOLD else empty


Form = tuple["Callable[..., Array] | None", tuple[int, ...], np.dtype]
"""What makes an array, if it is large, its shape and its dtype."""


def form(shape: tuple[int, ...], dtype: np.dtype) -> Form:
    """What a prepared kernel makes."""
    is_small = native.lends() or prod(shape) * dtype.itemsize < THRESHOLD
    return None if is_small else empty, shape, dtype


def prepared(
    name: str,
    arrays: str,
    prepare: Callable[..., object],
    general: Kernel,
    packs: bool = False,
    pixels: Callable[..., object] | None = None,
    images: int = 1,
) -> Kernel:
    """A kernel that asks ``prepare(*arguments)`` about a call that is like none before.

    Calls are alike if the shapes and dtypes of their arrays and all their settings are; only arrays
    whose rows have no gaps, or are copied, are asked about.  What `prepare` returns must follow
    from these alone: the compiled function, the forms of its results, what it takes after those and
    the arrays, and which results are returned, in what order, if it is not all.  With None the call
    is ``general(*arguments)``.

    Args:
        name: of the op, for messages.
        arrays: a letter for each argument: a for an array or None, copied if its rows have gaps; t
            for one of which few elements may be read, and which is not; s for a setting.
        packs: whether arrays of other orders are copied too, rather than left to `general`.
        pixels: like `prepare`, for images and volumes whose channels vary fastest in memory,
            without gaps: asked about the first `images` arguments as (N, *sizes, C), where the
            last of them lies so.  Those of its results that have as many dimensions are so too.
    """
    if native is None:
        return general

    def packed(*args: Any) -> Any:
        rows = [x if _is_dense(x) else dense(x) for x in args]
        return (general if all(map(operator.is_, rows, args)) else kernel)(*rows)

    rest = packed if packs else general
    if pixels is not None:
        rest = _by_pixels(name, arrays, pixels, rest, images)
    kernel = native.prepared(name, arrays, prepare, rest, np.ndarray, np.empty)
    return kernel


LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
BACK = {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}
"""How images and volumes are turned whose channels become the last dimension, and back."""


def _by_pixels(
    name: str, arrays: str, prepare: Callable[..., object], general: Kernel, images: int
) -> Kernel:
    def turned_back(*args: Any) -> Any:
        rank = args[0].ndim
        back, last = BACK[rank], LAST[rank]
        found = general(*(a.transpose(back) for a in args[:images]), *args[images:])
        return _ordered(found, rank, last)

    def function(*args: Any) -> Any:
        decides = args[images - 1]
        rank = decides.ndim
        last = None if decides.flags.c_contiguous else LAST.get(rank)
        if last is None or not decides.transpose(last).flags.c_contiguous:
            return general(*args)
        pixels = [dense(a.transpose(last)) for a in args[:images]]
        return _ordered(kernel(*pixels, *args[images:]), rank, BACK[rank])

    kernel = prepared(name, arrays, prepare, turned_back)
    return function


def _ordered(found: Any, rank: int, order: Sequence[int]) -> Any:
    """What has so many dimensions among results, in another order of these."""
    if isinstance(found, tuple):
        return tuple([r.transpose(order) if r.ndim == rank else r for r in found])
    return found.transpose(order)


def _is_dense(x: object) -> bool:
    return not isinstance(x, np.ndarray) or x.flags.c_contiguous


def memory_of(a: Array) -> Array:
    """A row-major array as code sees it that counts bytes: itself, if NumPy exports a buffer."""
    return a if a.dtype.kind != "V" else a.reshape(-1).view(np.uint8)


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    size = prod(shape) * dtype.itemsize
    if size < THRESHOLD:
        return np.zeros(shape, dtype)
    out = empty(shape, dtype)
    native.clear(memory_of(out), size)
    return out


made: Callable[[tuple[int, ...], np.dtype], Array] = empty
"""``made(shape, dtype)``: an uninitialised row-major array."""
zeros: Callable[[tuple[int, ...], np.dtype], Array] = _zeros
"""``zeros(shape, dtype)``: a row-major array of zeros."""
if native is not None:
    made = native.making(empty, empty, THRESHOLD, None)
    zeros = native.making(_zeros, empty, THRESHOLD, native.clear)
    _assign = native.assigning(np.copyto, native.copy, native.clear, native.fill, THRESHOLD)


def alike(first: Array, *others: Array | None) -> bool:
    """Whether all are row-major and of the dtype of `first`, or absent."""
    dtype = first.dtype
    if not first.flags.c_contiguous:
        return False
    for other in others:
        if other is not None and not (
            (other.dtype is dtype or other.dtype == dtype) and other.flags.c_contiguous
        ):
            return False
    return True


def made_like(a: Array) -> Array:
    """An uninitialised row-major array of the shape and dtype of `a`."""
    return made(a.shape, a.dtype)


def turned(*arrays: Array) -> tuple[list[Array], Sequence[int] | None] | None:
    """Arrays of one shape as row-major ones, and how a result of theirs is turned back.

    The dimensions go from the slowest to the fastest in memory, as NumPy has those of a result;
    what repeats elements, as the gradient of a sum does, is copied, and so is what has gaps.  None
    if the arrays have different orders, or one that is not seen at a glance.
    """
    found = _turning(arrays[0].shape, *[a.strides for a in arrays])
    if found is None:
        return None
    order, back = found
    if back is None:
        return [dense(a) for a in arrays], None
    return [dense(a.transpose(order)) for a in arrays], back


@lru_cache(4096)  # programs have few layouts
def _turning(
    shape: tuple[int, ...], *strides: tuple[int, ...]
) -> tuple[list[int], list[int] | None] | None:
    """The order of the dimensions, and that back; None where they have it already."""
    # A dimension along which elements repeat, or of size 1, may be anywhere.
    steps = [[0 if n == 1 else step for n, step in zip(shape, s, strict=True)] for s in strides]
    first = next((s for s in steps if 0 not in s), None)
    if first is None:
        first = range(len(shape), 0, -1)
    order = sorted(range(len(shape)), key=first.__getitem__, reverse=True)
    for each in steps:
        found = [each[d] for d in order if each[d]]
        if found != sorted(found, reverse=True) or (found and found[-1] < 0):
            return None
    if order == sorted(order):
        return order, None
    return order, [order.index(d) for d in range(len(order))]


_TRANSPOSES = {4: native.transpose_w4, 8: native.transpose_w8} if native else {}
_SMALLEST = 1024  # elements, below which NumPy's copy is as fast


@lru_cache(4096)  # programs have few layouts
def _matrices(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], tuple[int, int, int]] | None:
    """In which order memory has row-major matrices; their number, rows and columns."""
    n = len(shape)
    order = tuple(sorted(range(n), key=strides.__getitem__, reverse=True))
    first = next((d for d, at in enumerate(order) if d != at), 0)
    cut = order[first]
    if order[first:] != (*range(cut, n), *range(first, cut)):
        return None
    step = itemsize
    for d in reversed(order):
        if strides[d] != step and shape[d] != 1:
            return None
        step *= shape[d]
    return order, (prod(shape[:first]), prod(shape[cut:]), prod(shape[first:cut]))


def transposed(a: Array) -> Array | None:
    """A row-major copy of what consists of transposes of row-major matrices; None of all else.

    So do images with channels last, and those that are to be: after some dimensions in order the
    last of them lie in memory first, then the others.
    """
    run = _TRANSPOSES.get(a.itemsize)
    if a.size < _SMALLEST or a.ndim < 2 or run is None or a.dtype.kind == "V":
        return None
    found = _matrices(a.shape, a.strides, a.itemsize)
    if found is None:
        return None
    order, sizes = found
    out = made(a.shape, a.dtype)
    run(out, a.transpose(order), *sizes)
    return out


def dense(a: Array) -> Array:
    """A row-major array of the same elements: itself, if it is one."""
    if a.flags.c_contiguous:
        return a
    return _collected(a)


def _turned_or_filled(a: Array) -> Array:
    if any(a.strides) and (found := transposed(a)) is not None:
        return found
    out = made(a.shape, a.dtype)
    _assign(out, a if any(a.strides) else a[(*[0] * a.ndim, ...)])
    return out


def collected(general: Kernel, repeats: bool) -> Kernel:
    """`general`, and one call for what is row-major but for gaps, or elements that repeat."""
    if native is None or not extension.READS_ARRAYS:
        return general
    return native.collecting(general, empty, THRESHOLD, repeats)


_collected = collected(_turned_or_filled, True)
_MADE: Any = [["readonly"], ["writeonly", "allocate"]]


def once(kernel: Kernel, a: Array) -> Array | None:
    """What `kernel` makes of an array whose elements repeat, from each once; None of others.

    The result has the order in memory that NumPy gives it.
    """
    if 0 not in a.strides or not a.size:
        return None
    few = a[tuple([slice(None) if step else slice(1) for step in a.strides])]
    if few.size == a.size:
        return None
    out = np.nditer((a, None), [], _MADE).operands[1]
    np.copyto(out, kernel(few))
    return out


def whole(general: Kernel, name: str, dtypes: Sequence[Any] = _EXPORTED) -> Kernel:
    """`general`, and one compiled call that makes its result where its arrays are as they should.

    That is of one dtype, row-major, and of one shape or, of two that may be broadcast, one that the
    other repeats; for the compiled functions of elements `name`.
    """
    return _one_call(general, name, dtypes, empty)


def whole_comparison(general: Kernel, name: str) -> Kernel:
    """The same of a kernel whose results are bools, of integers as well."""
    return _one_call(general, name, (FLOAT32, FLOAT64, INT64), empty, BOOL)


def whole_in_place(general: Kernel, name: str, dtypes: Sequence[Any] = _EXPORTED) -> Kernel:
    """The same of a kernel that writes into its first array."""
    return _one_call(general, name, dtypes, None)


def _one_call(
    general: Kernel,
    name: str,
    dtypes: Sequence[Any],
    large: Callable[..., Array] | None,
    dtype: np.dtype | None = None,
) -> Kernel:
    if native is None or not extension.READS_ARRAYS:
        return general
    found = [(each, getattr(native, f"{name}_{SUFFIXES[each]}", None)) for each in dtypes]
    cases = tuple(case for case in found if case[1] is not None)
    return native.whole(general, cases, THRESHOLD, large, dtype)


def unary(name: str, function: str = "", general: Kernel | None = None) -> Kernel:
    """A kernel ``(a, *numbers)`` from the compiled functions `function` (default: `name`)."""
    general = general or otherwise(name)
    find = compiled(function or name).get

    def kernel(a: Array, *numbers: float) -> Any:
        if (run := find(a.dtype)) is None:
            return general(a, *numbers)
        back = None
        if not a.flags.c_contiguous:
            if (repeated := once(lambda few: kernel(few, *numbers), a)) is not None:
                return repeated
            if (found := turned(a)) is None:
                return general(a, *numbers)
            (a,), back = found
        out = made_like(a)
        run(out, a, a.size, *numbers)
        return out if back is None else out.transpose(back)

    return whole(kernel, function or name)


def in_place(name: str, kernel: Kernel, smallest: int = 0) -> Kernel:
    """What writes the results of a kernel ``(a, *numbers)`` into `a`: the same bits.

    By the compiled functions of `name`, which must read each element once and are what the kernel
    runs from `smallest` bytes on.
    """
    find, assign = compiled(name).get, otherwise("assign")

    def kernel_(a: Array, *numbers: float) -> None:
        run = find(a.dtype) if a.nbytes >= smallest and a.flags.c_contiguous else None
        if run is None:
            assign(a, kernel(a, *numbers))
        else:
            run(a, a, a.size, *numbers)

    return kernel_ if smallest else whole_in_place(kernel_, name)


def binary(name: str, function: str = "", general: Kernel | None = None) -> Kernel:
    """A kernel ``(a, b, *numbers)`` of two arrays of one shape."""
    general = general or otherwise(name)
    find = compiled(function or name).get

    # A gradient formula calls it for every node: hence no call of `alike`, and one number apart.
    def kernel(
        a: Array,
        b: Array,
        number: object = None,
        *numbers: object,
        _empty: Callable[..., Any] = np.empty,
        _limit: int = THRESHOLD,
    ) -> Any:
        shape, dtype = a.shape, a.dtype
        if b.shape == shape and b.dtype == dtype and (run := find(dtype)) is not None:
            if a.flags.c_contiguous and b.flags.c_contiguous:
                out = _empty(shape, dtype) if a.nbytes < _limit else empty_like(a)
                if number is None:
                    run(out, a, b, a.size)
                else:
                    run(out, a, b, a.size, number, *numbers)
                return out
            if (found := turned(a, b)) is not None:
                arrays, back = found
                out = kernel(*arrays, number, *numbers)
                return out if back is None else out.transpose(back)
        return general(a, b) if number is None else general(a, b, number, *numbers)

    return whole(kernel, function or name)
