"""The integers that stand for dtypes, layouts and memory formats in graphs and archives."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._types.layout import layout_named

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


_DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
_LAYOUTS = {
    0: "strided",
    1: "sparse_coo",
    2: "sparse_csr",
    3: "_mkldnn",
    4: "sparse_csc",
    5: "sparse_bsr",
    6: "sparse_bsc",
    7: "jagged",
}
_FORMATS = {0: "contiguous_format", 1: "preserve_format", 2: "channels_last", 3: "channels_last_3d"}


@cache
def _tables() -> dict[str, dict[int, Any]]:
    named = {"ScalarType": _DTYPES, "MemoryFormat": _FORMATS}
    tables: dict[str, dict[int, Any]] = {
        means: {n: getattr(fb, name) for n, name in table.items() if hasattr(fb, name)}
        for means, table in named.items()
    }
    return {**tables, "Layout": {n: layout_named(name) for n, name in _LAYOUTS.items()}}


@cache
def _back() -> dict[Any, int]:
    return {each: n for table in _tables().values() for n, each in table.items()}


def number_of(value: object) -> int:
    """The integer for a dtype, layout or memory format."""
    return _back()[value]


def object_of(means: str, number: Any) -> DType | None:
    """The dtype, layout or memory format for an integer; what is none of them stays as it is.

    Raises:
        RuntimeError: nothing has this number.
    """
    if number is None or not isinstance(number, int):
        return number
    found = _tables()[means].get(number)
    if found is None:
        raise RuntimeError(f"there is no {means} with the number {number}")
    return found
