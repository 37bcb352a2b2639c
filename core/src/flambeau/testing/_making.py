"""`make_tensor`: random tensors of any dtype and layout, for tests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._dispatch.arguments import checked_sizes, sizes
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType

if TYPE_CHECKING:
    from flambeau._types.memory_format import memory_format as MemoryFormat


def make_tensor(
    *shape: object,
    dtype: DType,
    device: object,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: MemoryFormat | None = None,
) -> fb.Tensor:
    """A tensor of numbers drawn evenly from [`low`, `high`) by the device's default generator.

    Args:
        shape: sizes, one by one or as one tuple.
        dtype: element type.
        device: where the tensor lives.
        low, high: range of the values, of both parts for complex dtypes; by default [-9, 10) for
            signed integers, [-9, 9) for floating and complex dtypes, [0, 10) for uint8, [0, 2) for
            bool.  Infinite bounds are those of the dtype.
        requires_grad: whether gradients are computed for it.
        noncontiguous: lay the elements out with gaps, if there are two or more.
        exclude_zero: replace zeros by the smallest positive number.
        memory_format: arrange the elements in memory so; not with `noncontiguous`.

    Raises:
        ValueError: the range is empty, NaN or outside of the dtype; a gradient of integers is
            asked for; `noncontiguous` and `memory_format` are both given.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0)
    >>> fb.testing.make_tensor(3, dtype=fb.float32, device="cpu")
    tensor([-0.0674,  4.8280, -7.4074])
    """
    if not isinstance(dtype, DType):
        raise TypeError(
            f"make_tensor(): argument 'dtype' must be dtype, not {type(dtype).__name__}"
        )
    if requires_grad and not dtype.fp:
        raise ValueError(
            "make_tensor: `requires_grad=True` is not supported for boolean and integral dtypes, "
            f"got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor: noncontiguous and memory_format are mutually exclusive, got "
            f"noncontiguous=True and memory_format={memory_format}"
        )
    lowest, highest = _range(dtype, low, high)
    size = checked_sizes(sizes(shape, "shape"))
    spaced = noncontiguous and math.prod(size) > 1
    t = _drawn((*size[:-1], 2 * size[-1]) if spaced else size, dtype, device, lowest, highest)
    if spaced:
        t = t[..., 1::2]
    if exclude_zero:
        t[t == 0] = 1 if dtype.category < 2 else fb.finfo(dtype.to_real()).tiny
    if memory_format is not None:
        t = t.contiguous(memory_format=memory_format)
    return t.requires_grad_(requires_grad)


def _drawn(size: tuple[int, ...], dtype: DType, device: Any, low: float, high: float) -> fb.Tensor:
    if dtype.category < 2:
        return fb.randint(math.ceil(low), math.ceil(high), size, dtype=dtype, device=device)
    if dtype.is_complex:
        parts = _drawn((*size, 2), dtype.to_real(), device, low, high)
        real, imaginary = (part.to(dtype) for part in parts.unbind(-1))
        return real + imaginary * 1j
    t = fb.empty(size, dtype=dtype, device=device)
    if low == high:
        return t.fill_(low)
    if high - low <= fb.finfo(dtype).max:
        return t.uniform_(low, high)
    return t.uniform_(low / 2, high / 2).mul_(2)  # the length of the interval is not representable


def _range(dtype: DType, low: float | None, high: float | None) -> tuple[float, float]:
    """Bounds of the values: the given ones or the dtype's usual ones, within what it can hold."""
    usual: tuple[float, float] = {0: (0, 2), 1: (0 if dtype is D.uint8 else -9, 10)}.get(
        dtype.category, (-9, 9)
    )
    bottom = usual[0] if low is None else low
    top = usual[1] if high is None else high
    if math.isnan(bottom) or math.isnan(top):
        raise ValueError(f"make_tensor: `low` and `high` cannot be NaN, got {low=} and {high=}")
    if bottom > top or (bottom == top and dtype.category < 2):
        raise ValueError(f"make_tensor: `low` must be less than `high`, got {bottom} >= {top}")
    least, most = _limits(dtype)
    if bottom >= most or top < least:
        raise ValueError(
            f"make_tensor: the interval [{bottom}, {top}) holds no number of {dtype}, whose range "
            f"is [{least}, {most})"
        )
    return max(bottom, least), min(top, most)


def _limits(dtype: DType) -> tuple[float, float]:
    if dtype.category == 0:
        return 0, 2
    if dtype.category == 1:
        info = fb.iinfo(dtype)
        return info.min, min(info.max + 1, (1 << 63) - 1)
    largest = fb.finfo(dtype.to_real()).max
    return -largest, largest
