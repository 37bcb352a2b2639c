"""Memory layouts in which the same tensor argument must give the same result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flambeau._types.dtype import dtype as DType
from flambeau.testing.sample_arrays import Arr

LAYOUTS = ("contiguous", "transposed", "sliced", "expanded", "offset", "empty", "scalar")
"""``expanded``, ``empty`` and ``scalar`` also change the values or the shape: see `arranged`."""

Make = Callable[[list[Any], tuple[int, ...], DType], Any]
"""``make(values, shape, dtype)``: a tensor of numbers in row-major order."""


def arranged(array: Arr, layout: str) -> Arr:
    """The description of `array` after what the layout does to its values or its shape.

    ``"expanded"`` makes all entries along the first dimension equal, ``"empty"`` sets the last
    length to 0, ``"scalar"`` drops all dimensions; the other layouts change nothing.  Arrays with a
    dtype of their own (indices, masks) keep their values.

    Raises:
        ValueError: unknown layout.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; known: {', '.join(LAYOUTS)}")
    if layout == "empty" and array.shape:
        return replace(array, shape=(*array.shape[:-1], 0))
    if layout == "scalar":
        return replace(array, shape=())
    if layout == "expanded" and array.shape and array.dtype is None:
        return replace(array, equal_rows=True)
    return array


def lay_out(array: Arr, layout: str, make: Make, dtype: DType) -> Any:
    """A tensor with the values of ``arranged(array, layout)`` in that layout.

    Only public tensor methods are used.  Where an array has too few dimensions for a layout, it is
    contiguous.  `dtype` is the one under test.

    Raises:
        ValueError: unknown layout.
    """
    array = arranged(array, layout)
    dtype = array.dtype or dtype
    values, shape = array.values(dtype), array.shape
    rows = shape[0] if shape else 1
    row_size = math.prod(shape[1:])
    if layout == "transposed" and len(shape) > 1:
        rank = len(shape)
        swap = (*range(rank - 2), rank - 1, rank - 2)
        return make(_swapped(values, shape), tuple([shape[d] for d in swap]), dtype).permute(*swap)
    if layout == "sliced" and shape:
        doubled = [number for value in values for number in (value, 1)]
        return make(doubled, (*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    if layout == "expanded" and array.equal_rows:
        return make(values[:row_size], (min(rows, 1), *shape[1:]), dtype).expand(shape)
    if layout == "offset" and shape:
        return make([1] * row_size + values, (rows + 1, *shape[1:]), dtype)[1:]
    return make(values, shape, dtype)


def _swapped(values: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The elements in row-major order after the last two dimensions are swapped."""
    rows, columns = shape[-2:]
    size = rows * columns
    starts = range(0, len(values), size) if size else ()
    return [
        values[s + r * columns + c] for s in starts for c in range(columns) for r in range(rows)
    ]
