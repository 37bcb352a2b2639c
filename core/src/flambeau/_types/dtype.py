"""Element types: the `dtype` objects, the promotion lattice and the legacy names.

A `dtype` is one shared object per element type, compared by identity.  The lattice follows PyTorch:
categories bool < integer < floating < complex decide first, then width inside the category.
"""

from __future__ import annotations

import struct

from flambeau._types import eighths

_LARGEST = {
    "bool": 1,
    "float16": 65504.0,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": (2 - 2.0**-52) * 2.0**1023,
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2fnuz": 57344.0,
}


class dtype:  # noqa: N801 - PyTorch's name
    """The element type of a tensor, such as ``float32``.

    Attributes:
        itemsize: bytes per element.
        category: 0 bool, 1 integer, 2 floating, 3 complex.
        fp: whether tensors of this type can require a gradient (floating or complex).
        largest: the largest finite number; of complex numbers, the largest part.
        takes: types of Python scalar that combine with this dtype without promotion.
        scales: those of them that multiply its elements as a number of this dtype: none of halves'.

    >>> import flambeau
    >>> flambeau.float32.is_floating_point, flambeau.float32.itemsize
    (True, 4)
    """

    __slots__ = (
        "category",
        "code",
        "fp",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "largest",
        "name",
        "scales",
        "takes",
    )

    def __new__(cls, *args: object, **kwargs: object) -> dtype:
        if "ALL" in globals():  # those of this file
            raise TypeError("cannot create 'torch.dtype' instances")
        return super().__new__(cls)

    def __init__(self, name: str, code: str, category: int, itemsize: int) -> None:
        self.name = name
        self.code = code  # struct format of one element; "" where struct has none
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == 2
        self.is_complex = category == 3
        self.is_signed = category != 0 and not name.startswith("uint")
        self.fp = category >= 2
        part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
        self.largest = _LARGEST.get(part, (1 << (8 * itemsize - self.is_signed)) - 1)
        self.takes: frozenset[type] = frozenset(
            {0: (), 1: (int,), 2: (int, float), 3: (int, float, complex)}[category]
        )
        self.scales = frozenset[type]() if category == 2 and itemsize == 2 else self.takes

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _by_name, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: object) -> dtype:
        return self

    def to_real(self) -> dtype:
        """The dtype of the real part: ``complex64`` gives ``float32``; others are unchanged."""
        return {complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this dtype (``complex64`` below float64)."""
        return complex128 if self is float64 or self is complex128 else complex64


bool_ = dtype("bool", "?", 0, 1)
uint8 = dtype("uint8", "B", 1, 1)
int8 = dtype("int8", "b", 1, 1)
int16 = dtype("int16", "h", 1, 2)
int32 = dtype("int32", "i", 1, 4)
int64 = dtype("int64", "q", 1, 8)
float16 = dtype("float16", "e", 2, 2)
bfloat16 = dtype("bfloat16", "", 2, 2)
float32 = dtype("float32", "f", 2, 4)
float64 = dtype("float64", "d", 2, 8)
complex64 = dtype("complex64", "", 3, 8)
complex128 = dtype("complex128", "", 3, 16)

uint16 = dtype("uint16", "H", 1, 2)
uint32 = dtype("uint32", "I", 1, 4)
uint64 = dtype("uint64", "Q", 1, 8)
float8_e4m3fn = dtype("float8_e4m3fn", "", 2, 1)
float8_e5m2 = dtype("float8_e5m2", "", 2, 1)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "", 2, 1)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "", 2, 1)

ALL = (
    bool_,
    uint8,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
FLOATING = (float16, bfloat16, float32, float64)
INTEGER = (uint8, int8, int16, int32, int64)
COMPLEX = (complex64, complex128)
WIDE_UNSIGNED = (uint16, uint32, uint64)
FLOAT8 = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz)
LIMITED = (*WIDE_UNSIGNED, *FLOAT8)
"""For memory and files: PyTorch, too, has few ops for them, and a backend may have none."""
EVERY = (*ALL, *LIMITED)

# Legacy names of typed tensors: torch.FloatTensor is float32 ...
TENSOR_TYPE_NAMES = {
    bool_: "BoolTensor",
    uint8: "ByteTensor",
    int8: "CharTensor",
    int16: "ShortTensor",
    int32: "IntTensor",
    int64: "LongTensor",
    float16: "HalfTensor",
    bfloat16: "BFloat16Tensor",
    float32: "FloatTensor",
    float64: "DoubleTensor",
    complex64: "ComplexFloatTensor",
    complex128: "ComplexDoubleTensor",
    uint16: "UInt16Tensor",
    uint32: "UInt32Tensor",
    uint64: "UInt64Tensor",
    **{d: f"{d.name.capitalize()}Tensor" for d in FLOAT8},
}


def type_name(dtype: dtype) -> str:
    """A dtype as messages call it, such as ``Float``."""
    return TENSOR_TYPE_NAMES[dtype].removesuffix("Tensor")


OF_PYTHON: dict[type, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}
"""What a type of Python's numbers means where a dtype is wanted."""


def as_dtype(value: object) -> dtype:
    """A dtype, or the one that a type of Python's numbers means.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, dtype):
        return value
    if isinstance(value, type) and value in OF_PYTHON:
        return OF_PYTHON[value]
    raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(value).__name__}")


_NAMES = {d.name: d for d in EVERY}


def _by_name(name: str) -> dtype:
    return _NAMES[name]


_default = float32


def get_default_dtype() -> dtype:
    """The floating dtype of tensors made from Python floats.

    >>> import flambeau
    >>> flambeau.get_default_dtype()
    torch.float32
    """
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the floating dtype that Python floats become.

    Raises:
        TypeError: `d` is not a floating dtype.

    >>> import flambeau
    >>> flambeau.set_default_dtype(flambeau.float64); flambeau.tensor([1.5]).dtype
    torch.float64
    >>> flambeau.set_default_dtype(flambeau.float32)
    """
    global _default
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    _default = d


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.category == 3 and low is float64:
            return complex128
        return high
    if a.category == 1:
        if uint8 in (a, b):
            other = b if a is uint8 else a
            return int16 if other is int8 else other
        return a if a.itemsize > b.itemsize else b
    if a.category == 2 and a.itemsize == b.itemsize:  # float16 with bfloat16
        return float32
    return a if a.itemsize > b.itemsize else b


_LATTICE = {(a, b): _promote(a, b) for a in ALL for b in ALL}
_LATTICE.update({(d, d): d for d in LIMITED})
for _d in WIDE_UNSIGNED:
    _LATTICE.update({pair: f for f in FLOATING for pair in ((_d, f), (f, _d))})


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be cast to without changing category downwards.

    Raises:
        RuntimeError: one is a float8, or a uint16, uint32 or uint64 with another kind of integer.

    >>> import flambeau
    >>> flambeau.promote_types(flambeau.int32, flambeau.float32)
    torch.float32
    >>> flambeau.promote_types(flambeau.uint8, flambeau.int8)
    torch.int16
    """
    found = _LATTICE.get((as_dtype(type1), as_dtype(type2)))
    if found is None:
        kinds = (
            "Float8 Types" if type1 in FLOAT8 or type2 in FLOAT8 else "uint16, uint32, uint64 types"
        )
        raise RuntimeError(
            f"Promotion for {kinds} is not supported, attempted to promote "
            f"{type_name(as_dtype(type1))} and {type_name(as_dtype(type2))}"
        )
    return found


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether `from_` may be cast to `to` under the promotion rules (category does not fall).

    >>> import flambeau
    >>> flambeau.can_cast(flambeau.float64, flambeau.int32)
    False
    """
    return as_dtype(from_).category <= as_dtype(to).category


class NumberError(RuntimeError, OverflowError, ValueError):
    """A whole number is beyond int64: PyTorch raises one of the three, by who reads it."""


def beyond(value: object, d: dtype) -> RuntimeError:
    """The error of a number that elements of a dtype cannot hold."""
    text = f"value cannot be converted to type {d} without overflow: "
    if not isinstance(value, int) or -(1 << 63) <= value < 1 << 63:
        return RuntimeError(f"{text}{value}")
    long = value.bit_length() > 128  # Python refuses to write thousands of digits
    return NumberError(text + (f"a number of {value.bit_length()} bits" if long else str(value)))


def absent(what: str, error: Exception, device: str) -> NotImplementedError | None:
    """What to raise where a backend's table of dtypes had not the one it was asked for."""
    missing = error.args[0] if isinstance(error, KeyError) and error.args else None
    if isinstance(missing, dtype):
        return NotImplementedError(f"{what}: {device} has no {missing}")
    return None


def pack(values: list, d: dtype) -> bytes:
    """Python numbers as the little-endian bytes of a contiguous array of dtype `d`.

    Raises:
        NumberError: one is an integer that no float can come near, or not finite and no integer.
    """
    try:
        return _packed(values, d)
    except OverflowError as error:
        raise NumberError(f"value cannot be converted to type {d} without overflow") from error


def _packed(values: list, d: dtype) -> bytes:
    if d.category == 3:
        code = "f" if d is complex64 else "d"
        flat = [part for v in values for part in (complex(v).real, complex(v).imag)]
        return _pack_floats(flat, code)
    if d is bfloat16:
        return struct.pack(f"<{len(values)}H", *[_to_bfloat16(float(v)) for v in values])
    if d is bool_:
        return bytes(1 if v else 0 for v in values)
    if d.category == 1:
        bits = 8 * d.itemsize
        low = -(1 << (bits - 1)) if d.is_signed else 0
        mask = (1 << bits) - 1
        wrapped = [((int(v) - low) & mask) + low for v in values]
        return struct.pack(f"<{len(values)}{d.code}", *wrapped)
    if d in FLOAT8:
        singles = unpack(_pack_floats([float(v) for v in values], "f"), float32)
        return eighths.encoded(singles, d.name)
    try:
        return struct.pack(f"<{len(values)}{d.code}", *values)
    except (OverflowError, struct.error):  # infinite as `d`, or numbers that only `float` reads
        return _pack_floats([float(v) for v in values], d.code)


def _pack_floats(values: list[float], code: str) -> bytes:
    try:
        return struct.pack(f"<{len(values)}{code}", *values)
    except OverflowError:  # struct refuses what rounds to infinity
        limit = {"e": 65520.0, "f": 3.4028235677973366e38}[code]
        inf = float("inf")
        clipped = [(inf if v > 0 else -inf) if abs(v) >= limit else v for v in values]
        return struct.pack(f"<{len(values)}{code}", *clipped)


def unpack(data: bytes | memoryview, d: dtype) -> list:
    """The Python numbers in the little-endian bytes of a contiguous array of dtype `d`."""
    count = len(data) // d.itemsize
    if d.category == 3:
        parts = struct.unpack(f"<{2 * count}{'f' if d is complex64 else 'd'}", data)
        return [complex(parts[i], parts[i + 1]) for i in range(0, 2 * count, 2)]
    if d is bfloat16:
        words = struct.unpack(f"<{count}H", data)
        return list(
            struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *[w << 16 for w in words]))
        )
    if d in FLOAT8:
        return eighths.decoded(data, d.name)
    return list(struct.unpack(f"<{count}{d.code}", data))


def _to_bfloat16(value: float) -> int:
    (word,) = struct.unpack("<I", _pack_floats([value], "f"))
    if value != value:
        return (word >> 16) | 0x40
    return (word + 0x7FFF + ((word >> 16) & 1)) >> 16  # round half to even
