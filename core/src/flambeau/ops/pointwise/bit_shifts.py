"""Shifts of the bits of integers."""

from __future__ import annotations

from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import BinaryFunction, _binary, where


def _parts(name: str, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Whether the distance lies inside the word, and two powers of two whose product shifts.

    One power could be 2⁶³, which no int64 holds.
    """
    dtype = self.dtype
    if dtype.category != 1:
        raise NotImplementedError(
            f'"{name}" not implemented for {dtype}: it shifts bits of integers'
        )
    inside = (other >= 0) & (other < 8 * dtype.itemsize)
    distance = where(inside, other, 0)
    half = distance // 2
    return inside, 2**half, 2 ** (distance - half)


@composite(promotes="any", differentiable=False)
def _bitwise_left_shift(self: Tensor, other: Tensor) -> Tensor:
    inside, first, second = _parts("bitwise_left_shift", self, other)
    return where(inside, self * first * second, 0)


@composite(promotes="any", differentiable=False)
def _bitwise_right_shift(self: Tensor, other: Tensor) -> Tensor:
    inside, first, second = _parts("bitwise_right_shift", self, other)
    return where(inside, self // first // second, where(self < 0, self * 0 - 1, 0))


bitwise_left_shift: BinaryFunction = _binary(
    _bitwise_left_shift,
    """Integers with their bits moved up by `other` places; 0 if it is negative or too large.

    Raises:
        NotImplementedError: the dtype is no integer.

    >>> import flambeau as fb
    >>> fb.bitwise_left_shift(fb.tensor([1, -3]), 2)
    tensor([  4, -12])
    """,
    inplace="method",
)
bitwise_right_shift: BinaryFunction = _binary(
    _bitwise_right_shift,
    """Integers with their bits moved down by `other` places, copies of the sign moving in.

    What a distance that is negative or too large leaves is the sign alone: 0 or -1.

    Raises:
        NotImplementedError: the dtype is no integer.

    >>> import flambeau as fb
    >>> fb.bitwise_right_shift(fb.tensor([5, -3]), 1)
    tensor([ 2, -2])
    """,
    inplace="method",
)
