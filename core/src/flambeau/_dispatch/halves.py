"""Numbers beside half precision: read in float32, with one rounding of the result, as in PyTorch.

0.1 in bfloat16 is 0.10009765625.  A mean that decays by 0.9 would decay by 0.8984375.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import is_tensor
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType

SCALING = frozenset(("mul", "div", "floor_divide"))
"""Ops whose numbers are not rounded first.  Those of sums and comparisons are, in PyTorch too."""


def is_half(dtype: DType) -> bool:
    """Whether elements are computed in float32 and rounded afterwards."""
    return dtype is D.bfloat16 or dtype is D.float16


def loses(dtype: DType, operands: Sequence[Any]) -> bool:
    """Whether a number, or a tensor without dimensions, is not exact in `dtype`, a half."""
    return any(
        x.dtype is not dtype and not x._a.shape if is_tensor(x) else not _exact(x, dtype)
        for x in operands
    )


def rounded(number: float, dtype: DType) -> float:
    """The number of a half that is nearest, of two the even one; infinite beyond its range."""
    try:
        number = float(number)
        if dtype is D.float16:
            return struct.unpack("e", struct.pack("e", number))[0]
        (bits,) = struct.unpack("<I", struct.pack("<f", number))
    except OverflowError:
        return -math.inf if number < 0 else math.inf
    if number == number:
        bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def _exact(number: Any, dtype: DType) -> bool:
    if type(number) is bool or number != number:
        return True
    return not isinstance(number, complex) and rounded(number, dtype) == number
