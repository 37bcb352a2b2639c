"""Shifts of the bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau._tensor.tensor import Tensor
from flambeau._types.dtype import INTEGER
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import BinaryFunction, _binary, where

if TYPE_CHECKING:
    from types import ModuleType

    from flambeau.testing.sample_arrays import Sample


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


def _samples(S: ModuleType) -> list[Sample]:
    words = S.Arr((2, 3), low=-100, high=100)
    distances = S.Arr((2, 3), kind="literal", literal=(0, 1, 2, 7, 31, 64))
    return [
        S.Sample((words, distances), "matrix"),
        S.Sample((S.Arr((2, 1), low=-9, high=9), S.Arr((3,), low=0, high=4)), "broadcast"),
        S.Sample((S.Arr((), low=1, high=9), S.Arr((), low=0, high=4)), "scalar"),
        S.Sample((S.Arr((0, 3)), S.Arr((3,))), "empty"),
    ]


@composite(promotes="any", differentiable=False)
def _bitwise_left_shift(self: Tensor, other: Tensor) -> Tensor:
    inside, first, second = _parts("bitwise_left_shift", self, other)
    return where(inside, self * first * second, 0)


@composite(promotes="any", differentiable=False)
def _bitwise_right_shift(self: Tensor, other: Tensor) -> Tensor:
    inside, first, second = _parts("bitwise_right_shift", self, other)
    return where(inside, self // first // second, where(self < 0, self * 0 - 1, 0))


_bitwise_left_shift.samples(*INTEGER)(_samples)
_bitwise_right_shift.samples(*INTEGER)(_samples)


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
