"""The numerical properties of dtypes: `finfo` of floating ones, `iinfo` of integers."""

from __future__ import annotations

from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType


def _need_dtype(name: str, value: object) -> DType:
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in D.OF_PYTHON:
        return D.OF_PYTHON[value]
    raise TypeError(f"torch.{name}() wants a torch.dtype, not {type(value).__name__}")


class finfo:  # noqa: N801 - PyTorch's name
    """The numerical properties of a floating dtype.

    Attributes:
        bits: bits of a number.
        eps: the distance from 1 to the next number.
        max, min: the largest and most negative finite numbers.
        tiny, smallest_normal: the smallest positive normal number.
        resolution: the decimal resolution.

    >>> import flambeau as fb
    >>> fb.finfo(fb.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = (
        *("bits", "dtype", "eps", "max", "min", "resolution"),
        *("smallest_normal", "tiny"),
    )

    def __init__(self, type: DType | None = None) -> None:
        d = D.get_default_dtype() if type is None else _need_dtype("finfo", type).to_real()
        if not d.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"{d.name!r}"
            )
        digits, exponent, decimals = {
            D.float16: (10, 15, 3),
            D.bfloat16: (7, 127, 2),
            D.float32: (23, 127, 6),
            D.float64: (52, 1023, 15),
            D.float8_e4m3fn: (3, 7, 0),
            D.float8_e5m2: (2, 15, 0),
            D.float8_e4m3fnuz: (3, 8, 0),
            # Of this one PyTorch gives the distance that three bits of mantissa would have.
            D.float8_e5m2fnuz: (3, 16, 0),
        }[d]
        self.bits = 8 * d.itemsize
        self.eps = 2.0**-digits
        self.max = d.largest
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = float(f"1e-{decimals}")
        self.dtype = d.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801 - PyTorch's name
    """The range of an integer dtype.

    >>> import flambeau as fb
    >>> fb.iinfo(fb.int8).max
    127
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: DType) -> None:
        type = _need_dtype("iinfo", type)
        if type.category != 1:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                f"{type.name!r}"
            )
        self.bits = 8 * type.itemsize
        self.min = -(1 << (self.bits - 1)) if type.is_signed else 0
        self.max = (1 << (self.bits - 1)) - 1 if type.is_signed else (1 << self.bits) - 1
        self.dtype = type.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
