"""`RefArray`, the immutable native array of device ``ref``, and the arithmetic of shapes under it.

Kernels build results from lists of exact Python numbers and `rounded`, which is the only place
where the precision of a dtype enters.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flambeau._types import eighths
from flambeau._types.dtype import FLOAT8, bfloat16, float16, float32, float64
from flambeau._types.dtype import dtype as DType

_HALF_OVERFLOW = 65520.0  # halfway between the largest float16 and the power of two after it
_MANY = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class RefArray:
    """An immutable array: shape, dtype and its elements as Python numbers in row-major order.

    Every element is exactly representable in `dtype`.

    Raises:
        ValueError: the number of elements is not that of the shape.

    >>> import flambeau as fb
    >>> from flambeau.testing.reference import RefArray
    >>> RefArray((2, 2), fb.int64, (1, 2, 3, 4)).nested()
    [[1, 2], [3, 4]]
    """

    shape: tuple[int, ...]
    dtype: DType
    data: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(self.data) != math.prod(self.shape):
            raise ValueError(
                f"an array of shape {self.shape} has {math.prod(self.shape)} elements, "
                f"got {len(self.data)}"
            )

    def nested(self) -> Any:
        """The elements as nested lists, one level per dimension; a number if there is none."""
        values: list[Any] = list(self.data)
        for axis in range(len(self.shape) - 1, 0, -1):
            length = self.shape[axis]
            rows = math.prod(self.shape[:axis])
            values = [values[i * length : (i + 1) * length] for i in range(rows)]
        return values if self.shape else values[0]


def build(shape: Sequence[int], dtype: DType, values: Iterable[Any]) -> RefArray:
    """The array of these numbers, each rounded to `dtype`."""
    return RefArray(tuple(shape), dtype, rounded(values, dtype))


def rounded(values: Iterable[Any], dtype: DType) -> tuple[Any, ...]:
    """Numbers of the category of `dtype`, each replaced by what `dtype` stores for it.

    Integers wrap modulo 2**bits; floats round half to even, and to infinity beyond the range;
    complex parts round separately; anything but zero is a true bool.  The 16-bit types round
    through float32, as PyTorch does, whose arithmetic on them is float32.

    >>> import flambeau as fb
    >>> rounded([300, -129], fb.int8), rounded([0.1], fb.float16)
    ((44, 127), (0.0999755859375,))
    """
    return _ROUND[dtype.category](values, dtype)


def _round_bool(values: Iterable[Any], dtype: DType) -> tuple[bool, ...]:
    return tuple([v != 0 for v in values])


def _round_int(values: Iterable[Any], dtype: DType) -> tuple[int, ...]:
    low, high = int_range(dtype)
    numbers = tuple(values)
    if not numbers or (low <= min(numbers) and max(numbers) <= high):
        return numbers
    mask = high - low
    return tuple([((v - low) & mask) + low for v in numbers])


def _round_float(values: Iterable[Any], dtype: DType) -> tuple[float, ...]:
    if dtype is float64:
        return tuple(map(float, values))
    # array("f") converts as C does: too large becomes infinity, where struct would raise.
    singles = array("f", values)
    if dtype is float32:
        return tuple(singles)
    if dtype is float16:
        clipped = [
            v if not abs(v) >= _HALF_OVERFLOW else math.copysign(math.inf, v) for v in singles
        ]
        return struct.unpack(f"{len(clipped)}e", struct.pack(f"{len(clipped)}e", *clipped))
    if dtype in FLOAT8:
        return tuple(eighths.decoded(eighths.encoded(singles, dtype.name), dtype.name))
    assert dtype is bfloat16
    words = array("I", singles.tobytes())
    return tuple(array("f", array("I", map(_top_half, words)).tobytes()))


def _top_half(word: int) -> int:
    """The bits of a float32 rounded half to even to its upper sixteen."""
    if (word & 0x7FFFFFFF) > 0x7F800000:  # NaN must not round up to infinity
        return (word | 0x400000) & 0xFFFF0000
    return (word + 0x7FFF + ((word >> 16) & 1)) & 0xFFFF0000


def _round_complex(values: Iterable[Any], dtype: DType) -> tuple[complex, ...]:
    numbers = list(values)
    part = dtype.to_real()
    real = _round_float([v.real for v in numbers], part)
    imag = _round_float([v.imag for v in numbers], part)
    return tuple(map(complex, real, imag))


_ROUND: tuple[Callable[[Iterable[Any], DType], tuple[Any, ...]], ...] = (
    _round_bool,
    _round_int,
    _round_float,
    _round_complex,
)


def int_range(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype."""
    if not dtype.is_signed:
        return 0, (1 << 8 * dtype.itemsize) - 1
    half = 1 << (8 * dtype.itemsize - 1)
    return -half, half - 1


def zero(dtype: DType) -> Any:
    """The number 0 of the category of `dtype`: ``False``, ``0``, ``0.0`` or ``0j``."""
    return (False, 0, 0.0, 0j)[dtype.category]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of an array of this shape whose last index varies fastest.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def need_room(count: int) -> None:
    """Refuse a list of so many elements at once, not after the memory has filled up with them.

    Raises:
        MemoryError: there is no room.
    """
    if count > _MANY:
        [None] * count


def offsets(shape: Sequence[int], strides: Sequence[int], start: int = 0) -> list[int]:
    """Position of every element, in row-major order, of a strided region of a flat sequence.

    >>> offsets((2, 3), (1, 2))
    [0, 2, 4, 1, 3, 5]
    """
    need_room(math.prod(shape))
    positions = [start]
    for length, stride in zip(shape, strides, strict=True):
        steps = range(0, length * stride, stride) if stride else [0] * length
        positions = [p + s for p in positions for s in steps]
    return positions


def region(a: RefArray, shape: Sequence[int], strides: Sequence[int], start: int = 0) -> RefArray:
    """A fresh array of a strided region of `a`."""
    data = a.data
    return RefArray(tuple(shape), a.dtype, tuple([data[p] for p in offsets(shape, strides, start)]))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all shapes expand, aligned at the last dimension.

    Raises:
        ValueError: two lengths differ and neither is 1.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    result: list[int] = []
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        lengths = {s[-axis] for s in shapes if axis <= len(s)} - {1}
        if len(lengths) > 1:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(lengths.pop() if lengths else 1)
    return tuple(reversed(result))


def broadcast_strides(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """Strides that read a contiguous array of `shape` as `target`: zero where it repeats.

    Raises:
        ValueError: `shape` does not expand to `target`.
    """
    lead = len(target) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, target[lead:], strict=True)):
        raise ValueError(f"shape {shape} does not expand to {target}")
    strides = [0 if n == 1 else s for n, s in zip(shape, row_major(shape), strict=True)]
    return (0,) * lead + tuple(strides)


def expanded(a: RefArray, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The elements of `a` broadcast to `shape`, in row-major order."""
    if a.shape == shape:
        return a.data
    data = a.data
    return tuple([data[p] for p in offsets(shape, broadcast_strides(a.shape, shape))])


def check_dim(dim: int, rank: int) -> None:
    """Refuse a dimension that an array of this rank does not have; a scalar has dimension 0.

    Raises:
        IndexError: `dim` is not in ``range(rank)``.
    """
    if not 0 <= dim < max(rank, 1):
        raise IndexError(f"dimension {dim} is out of range for an array of {rank} dimension(s)")


def same_dtype(name: str, *arrays: RefArray) -> DType:
    """The common dtype of the operands of op `name`.

    Raises:
        TypeError: they differ; promotion is done before a kernel is called.
    """
    first = arrays[0].dtype
    if any(a.dtype is not first for a in arrays):
        raise TypeError(f"{name}: operands of one dtype expected, got {[a.dtype for a in arrays]}")
    return first
