"""Reading and writing by index, and sorting.  Indices arrive checked, non-negative and int64."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau.plugin import numerics
from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.device.launch import blocks_for, rows_for
from flambeau_cupy.dtypes import BFLOAT16, FLOATS, HALVES, INT64, accumulator
from flambeau_cupy.kernels._operands import demand
from flambeau_cupy.layer import Layer
from flambeau_cupy.source import TYPES

Indices = Sequence[Array | None]
FEW_ORDERED, MOST_ORDERED = 256, 2048  # so many a block puts in order, with less memory or more
# Estimates: for so long and so few rows, one block each would leave most of a device idle.
LONG_ROW, FEW_ROWS = 1 << 17, 32
PER_BLOCK, MOST_BLOCKS = 8192, 1024
_UNITS = {kind.itemsize: kind for kind in (FLOATS[0], *FLOATS[2:])}


def as_units(layer: Layer, a: Array) -> Array | None:
    """`a`, row-major, as elements that the kernels in CUDA C copy; None if there are none."""
    unit = _UNITS.get(a.dtype.itemsize)
    if layer.launch is None or unit is None:
        return None
    return layer.dense(a).view(unit)


def checked(layer: Layer, index: Array | None, dim: int, size: int) -> Array | None:
    """An index into a dimension with nothing out of range, which CuPy would wrap."""
    if index is None or layer.faults is None or not index.size:
        return index
    text = f"index {{index}} is out of bounds for dimension {dim} with size {size}"
    if not size:
        raise IndexError(text.replace(" {index}", ""))
    return layer.faults.index(index, size, False, None, (IndexError, text))


def alone(indices: Indices) -> Array | None:
    """The index of the first dimension, if it is the only one and has dimensions."""
    first = indices[0] if indices else None
    if first is None or not first.ndim or any(i is not None for i in indices[1:]):
        return None
    return first


def take_rows(layer: Layer, table: Array, rows: Array) -> Array | None:
    units = as_units(layer, table)
    if units is None:
        return None
    out = layer.xp.empty((*rows.shape, *table.shape[1:]), table.dtype)
    if out.size:
        count, n = table.shape[0], out.size
        given = out.view(units.dtype), units, layer.dense(rows), np.int64(n // rows.size)
        text = f"index {{index}} is out of bounds for dimension 0 with size {count}"
        launched = units.dtype, "take_rows", n, *given, np.int64(count), np.int64(n)
        assert layer.faults is not None  # there are launches
        layer.faults.launch(*launched, complaint=(IndexError, text))
    return out


def add_rows(layer: Layer, table: Array, rows: Array, values: Array) -> bool:
    """Add rows to rows of a row-major table in a fixed order; whether that is possible."""
    kind = table.dtype
    if layer.launch is None or kind not in FLOATS or not table.flags.c_contiguous:
        return False
    shape = (*rows.shape, *table.shape[1:])
    if not prod(shape):
        return True
    values = layer.dense(layer.xp.broadcast_to(values.astype(kind, copy=False), shape))
    flat = rows.reshape(-1)
    order = layer.xp.argsort(flat, kind="stable").astype(np.int64, copy=False)
    columns = values.size // flat.size
    given = table, values, order, flat[order], np.int64(columns), np.int64(flat.size)
    layer.launched(kind, "add_rows", *blocks_for(values.size, 1), *given)
    return True


def lines(
    layer: Layer, a: Array, dim: int, index: Array
) -> tuple[np.int64, np.int64, np.int64] | None:
    """Length, count and inner size, if index and array differ along `dim` only."""
    if layer.launch is None or not a.ndim or not index.ndim:
        return None
    have, wanted = a.shape, index.shape
    if have[:dim] != wanted[:dim] or have[dim + 1 :] != wanted[dim + 1 :]:
        return None
    return np.int64(have[dim]), np.int64(wanted[dim]), np.int64(prod(have[dim + 1 :]))


def key_of(indices: Indices) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def index(layer: Layer, a: Array, indices: Indices) -> Array:
    rows = alone(indices)
    if rows is not None and (made := take_rows(layer, a, rows)) is not None:
        return made
    known = [checked(layer, i, d, a.shape[d]) for d, i in enumerate(indices)]
    found = layer.held(a[key_of(known)])
    return found if found.base is None else found.copy()


def index_put_(layer: Layer, a: Array, indices: Indices, values: Array, accumulate: bool) -> None:
    key = key_of(indices)
    if accumulate:
        rows = alone(indices)
        if rows is None or not add_rows(layer, a, rows, values):
            layer.add_at(a, key, values)
    else:
        a[key] = values


def index_put(layer: Layer, a: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
    out = a.copy("C")
    index_put_(layer, out, indices, values, accumulate)
    return out


def places(layer: Layer, shape: tuple[int, ...], dim: int, index: Array) -> tuple[Array, ...]:
    """The index of each element of `index` in an array of `shape`, per dimension."""
    rank = len(shape)
    return tuple(
        index if d == dim else layer.xp.arange(n).reshape((1,) * d + (n,) + (1,) * (rank - d - 1))
        for d, n in enumerate(index.shape)
    )


def corner(a: Array, shape: tuple[int, ...]) -> Array:
    return a if a.shape == shape else a[tuple(slice(n) for n in shape)]


def gather(layer: Layer, a: Array, dim: int, index: Array) -> Array:
    if not a.ndim:
        return layer.xp.broadcast_to(a, index.shape).copy()
    if not index.ndim:
        return a.reshape(-1)[index.reshape(1)].reshape(())
    sizes, units = lines(layer, a, dim, index), as_units(layer, a)
    if sizes is not None and units is not None:
        out = layer.xp.empty(index.shape, a.dtype)
        if out.size:
            given = out.view(units.dtype), units, layer.dense(index), *sizes
            grid = blocks_for(out.size)
            layer.launched(units.dtype, "gather_along", *grid, *given, np.int64(out.size))
        return out
    return layer.held(a[places(layer, a.shape, dim, index)])


def scatter_(layer: Layer, a: Array, dim: int, index: Array, src: Array) -> None:
    if not a.ndim or not index.ndim:
        if index.size:
            a[...] = src.reshape(-1)[-1].reshape(a.shape)
    elif index.size:
        a[places(layer, a.shape, dim, index)] = corner(src, index.shape) if src.ndim else src


def scatter(layer: Layer, a: Array, dim: int, index: Array, src: Array) -> Array:
    out = a.copy("C")
    scatter_(layer, out, dim, index, src)
    return out


def scatter_add_(layer: Layer, a: Array, dim: int, index: Array, src: Array) -> None:
    if not index.size:
        return
    part = corner(src, index.shape)
    if a.ndim and index.ndim:
        demand("scatter_add", "src", part, index.shape)
    sizes = lines(layer, a, dim, index)
    if sizes is not None and a.dtype in FLOATS and a.flags.c_contiguous:
        add_lines(
            layer, a, layer.dense(part.astype(a.dtype, copy=False)), layer.dense(index), sizes
        )
    elif not a.ndim or not index.ndim:
        flat = a.reshape(1)
        layer.add_at(flat, (layer.xp.zeros(index.size, np.int64),), part.reshape(-1))
        a[...] = flat.reshape(a.shape)
    else:
        layer.add_at(a, places(layer, a.shape, dim, index), part)


def add_lines(layer: Layer, a: Array, src: Array, index: Array, sizes: tuple[Any, ...]) -> None:
    kind, (_, count, _) = a.dtype, sizes
    if numerics.deterministic:
        n = src.size // int(count)
        given = a, src, index, *sizes, np.int64(n)
        layer.launched(kind, "scatter_add_along", *blocks_for(n, 1), *given)
        return
    total = a if kind not in HALVES else a.astype(np.float32)
    given = total, src, index, *sizes, np.int64(src.size)
    layer.launched(kind, "scatter_add_along_at_once", *blocks_for(src.size), *given)
    if total is not a:
        a[...] = total.astype(kind)


def scatter_add(layer: Layer, a: Array, dim: int, index: Array, src: Array) -> Array:
    out = a.copy("C")
    scatter_add_(layer, out, dim, index, src)
    return out


def scatter_extremum(
    layer: Layer, a: Array, dim: int, index: Array, src: Array, largest: bool
) -> Array:
    src = corner(src, index.shape)
    demand("scatter_extremum", "src", src, index.shape)
    kind = a.dtype if a.dtype in FLOATS else INT64
    inside = tuple(slice(None if d == dim else n) for d, n in enumerate(index.shape))
    part = a[inside]
    found = part.astype(accumulator(kind), order="C")
    sizes = lines(layer, found, dim, index)
    if sizes is not None and index.size:
        given = layer.dense(src.astype(kind, copy=False)), layer.dense(index)
        rest = np.int32(largest), *sizes, np.int64(index.size)
        layer.launched(
            kind, "scatter_extremum_along", *blocks_for(index.size), found, *given, *rest
        )
    found = found.astype(a.dtype, copy=False)
    if part.shape == a.shape:
        return found
    out = a.copy("C")
    out[inside] = found
    return out


def nonzero(layer: Layer, a: Array) -> Array:
    xp = layer.xp
    if not a.ndim:
        return xp.zeros((1 if bool(a) else 0, 0), np.int64)
    found = xp.nonzero(layer.wide(a))
    return xp.stack(found, -1).astype(np.int64, copy=False)


def sort(layer: Layer, a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    xp = layer.xp
    if not a.ndim:
        return a.copy(), xp.zeros((), np.int64)
    keys = a.astype(np.float32) if a.dtype == BFLOAT16 else a
    if descending:
        # Sorted backwards and read backwards: equal elements keep their order.
        turn = tuple(slice(None, None, -1 if d == dim else 1) for d in range(a.ndim))
        order = a.shape[dim] - 1 - xp.argsort(keys[turn], axis=dim, kind="stable")[turn]
    else:
        order = xp.argsort(keys, axis=dim, kind="stable")
    order = xp.ascontiguousarray(order).astype(np.int64, copy=False)
    return gather(layer, a, dim, order), order


def embedding(
    layer: Layer, weight: Array, indices: Array, padding_idx: int, by_freq: bool
) -> Array:
    made = take_rows(layer, weight, indices) if indices.ndim else None
    return layer.held(weight.take(indices, 0)) if made is None else made


def topk(layer: Layer, a: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    xp = layer.xp
    columns = a.shape[dim] if a.ndim else 1
    if not 0 <= k <= columns:
        raise RuntimeError(f"topk: k has to be in [0, {columns}], got {k}")
    known = a.ndim and a.dtype.name in TYPES and not columns >> 32
    if layer.launch is None or not known or (k > MOST_ORDERED and 2 * k > columns):
        values, order = sort(layer, a, dim, largest, True)
        first = (*(slice(None),) * dim, slice(k)) if a.ndim else ()
        return values[first].copy("C"), order[first].copy("C")
    rows, last = layer.dense(xp.moveaxis(a, dim, -1)), a.ndim - 1
    shape = (*rows.shape[:-1], k)
    values, places = xp.empty(shape, a.dtype), xp.empty(shape, np.int64)
    if places.size:
        select(layer, values, places, rows, largest)
        if k > MOST_ORDERED:
            places = xp.sort(places, axis=-1)
            values, order = sort(layer, gather(layer, rows, last, places), last, largest, True)
            places = gather(layer, places, last, order)
    if dim == last:
        return values, places
    return xp.moveaxis(values, -1, dim).copy("C"), xp.moveaxis(places, -1, dim).copy("C")


def select(layer: Layer, values: Array, places: Array, rows: Array, largest: bool) -> None:
    """The first of each row in order; of more than MOST_ORDERED the places in any order."""
    kind, k, columns = rows.dtype, places.shape[-1], rows.shape[-1]
    count = rows.size // columns
    room = max(FEW_ORDERED, 1 << (k - 1).bit_length())
    enough = room if room <= MOST_ORDERED else k
    wanted = np.int64(k), np.int64(enough), np.int32(largest)
    if columns >= LONG_ROW and count <= FEW_ROWS:
        select_together(layer, values, places, rows, wanted, count)
        return
    name = "select_few" if enough == FEW_ORDERED else "select_many"
    given = values, places, rows, *wanted, np.int64(count), np.int64(columns)
    layer.launched(kind, name, *rows_for(count, columns), *given)


def select_together(
    layer: Layer, values: Array, places: Array, rows: Array, wanted: tuple[Any, ...], count: int
) -> None:
    """The same with several blocks for each row."""
    xp = layer.xp
    kind, columns, enough = rows.dtype, rows.shape[-1], int(wanted[1])
    ordered = enough <= MOST_ORDERED
    passes = kind.itemsize + -(-(columns - 1).bit_length() // 8)
    counts = xp.zeros((passes + 1, count, 256), np.uint32)
    bounds = xp.empty((passes + 1, count, 4), np.uint64)  # 32 bytes are enough for all types
    chosen = xp.empty((count, enough), np.int64) if ordered else places
    grid = (max(1, min(columns // PER_BLOCK, MOST_BLOCKS // count)), count), 256
    for p in range(passes):
        given = counts, bounds, rows, *wanted, np.int32(p), np.int64(columns)
        layer.launched(kind, "count_digits", *grid, *given)
    filled = counts[passes]
    given = counts, bounds, rows, *wanted, np.int32(passes), np.int64(columns)
    layer.launched(kind, "collect_first", *grid, chosen, filled, *given)
    if ordered:
        given = chosen, filled, rows, *wanted, np.int64(count), np.int64(columns)
        layer.launched(kind, "order_first", *rows_for(count, enough), values, places, *given)


KERNELS: dict[str, Kernel] = {
    "topk": topk,
    "index": index,
    "index_put": index_put,
    "index_put_": index_put_,
    "gather": gather,
    "scatter": scatter,
    "scatter_": scatter_,
    "scatter_add": scatter_add,
    "scatter_add_": scatter_add_,
    "nonzero": nonzero,
    "sort": sort,
    "embedding": embedding,
}
"""Functions of a layer and what the op of their name is given."""

LAUNCHED: dict[str, Kernel] = {"scatter_extremum": scatter_extremum}
"""The same, which consist of kernels in CUDA C."""
