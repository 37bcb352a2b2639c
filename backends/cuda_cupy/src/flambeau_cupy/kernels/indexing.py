"""Reading and writing by index, and sorting.  Indices arrive checked, non-negative and int64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau_cupy.dtypes import BFLOAT16
from flambeau_cupy.layer import Array, Kernel, Layer

Indices = Sequence[Array | None]


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    xp = layer.xp

    def key_of(indices: Indices) -> tuple[Any, ...]:
        return tuple(slice(None) if i is None else i for i in indices)

    def index(a: Array, indices: Indices) -> Array:
        found = layer.held(a[key_of(indices)])
        return found if found.base is None else found.copy()

    def index_put_(a: Array, indices: Indices, values: Array, accumulate: bool) -> None:
        key = key_of(indices)
        if accumulate:
            layer.add_at(a, key, values)
        else:
            a[key] = values

    def index_put(a: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
        out = a.copy("C")
        index_put_(out, indices, values, accumulate)
        return out

    def places(shape: tuple[int, ...], dim: int, index: Array) -> tuple[Array, ...]:
        """The index of each element of `index` in an array of `shape`, per dimension."""
        rank = len(shape)
        return tuple(
            index if d == dim else xp.arange(n).reshape((1,) * d + (n,) + (1,) * (rank - d - 1))
            for d, n in enumerate(index.shape)
        )

    def corner(a: Array, shape: tuple[int, ...]) -> Array:
        return a if a.shape == shape else a[tuple(slice(n) for n in shape)]

    def gather(a: Array, dim: int, index: Array) -> Array:
        if not a.ndim:
            return xp.broadcast_to(a, index.shape).copy()
        if not index.ndim:
            return a.reshape(-1)[index.reshape(1)].reshape(())
        return layer.held(a[places(a.shape, dim, index)])

    def scatter_(a: Array, dim: int, index: Array, src: Array) -> None:
        if not a.ndim or not index.ndim:
            if index.size:
                a[...] = src.reshape(-1)[-1].reshape(a.shape)
        elif index.size:
            a[places(a.shape, dim, index)] = corner(src, index.shape) if src.ndim else src

    def scatter(a: Array, dim: int, index: Array, src: Array) -> Array:
        out = a.copy("C")
        scatter_(out, dim, index, src)
        return out

    def scatter_add_(a: Array, dim: int, index: Array, src: Array) -> None:
        if not index.size:
            return
        part = corner(src, index.shape)
        if not a.ndim or not index.ndim:
            flat = a.reshape(1)
            layer.add_at(flat, (xp.zeros(index.size, np.int64),), part.reshape(-1))
            a[...] = flat.reshape(a.shape)
        else:
            layer.add_at(a, places(a.shape, dim, index), part)

    def scatter_add(a: Array, dim: int, index: Array, src: Array) -> Array:
        out = a.copy("C")
        scatter_add_(out, dim, index, src)
        return out

    def nonzero(a: Array) -> Array:
        if not a.ndim:
            return xp.zeros((1 if bool(a) else 0, 0), np.int64)
        found = xp.nonzero(layer.wide(a))
        return xp.stack(found, -1).astype(np.int64, copy=False)

    def sort(a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
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
        return gather(a, dim, order), order

    def embedding(weight: Array, indices: Array, padding_idx: int, by_freq: bool) -> Array:
        return layer.held(weight.take(indices, 0))

    return {
        "index": index,
        "index_put": index_put,
        "index_put_": layer.quiet(index_put_),
        "gather": gather,
        "scatter": scatter,
        "scatter_": scatter_,
        "scatter_add": layer.quiet(scatter_add),
        "scatter_add_": layer.quiet(scatter_add_),
        "nonzero": nonzero,
        "sort": layer.quiet(sort),
        "embedding": embedding,
    }
