"""Places in ascending sequences, and places repeated."""

from __future__ import annotations

import numpy as np

from flambeau_native import extension
from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    INT32,
    INT64,
    Array,
    Kernel,
    compiled,
    form,
    made,
    otherwise,
    prepared,
)
from flambeau_numpy.extending import THRESHOLD, empty

_bisected = otherwise("searchsorted")
_RUNS = compiled("bisect", INT32, INT64)


def _prepare_search(edges: Array, x: Array, right: bool) -> object:
    run, shape = _RUNS.get(x.dtype), x.shape
    if run is None or not x.size or edges.dtype != x.dtype:
        return None
    count = x.size if edges.ndim == 1 else shape[-1]
    return run, (form(shape, INT64),), (x.size // count, edges.shape[-1], count, right)


searchsorted = prepared("searchsorted", "aas", _prepare_search, _bisected)


def _prepare_bincount(a: Array, size: int) -> object:
    if a.dtype != INT64:
        return None
    return native.bincount, (form((size,), INT64),), (a.size, size)


def _prepare_one_hot(a: Array, classes: int) -> object:
    if a.dtype != INT64 or not a.size:
        return None
    return native.one_hot, (form((*a.shape, classes), INT64),), (a.size, classes)


def repeat_places(counts: Array, total: int) -> Array:
    out = made((total,), INT64)
    native.repeat_places(out, np.ascontiguousarray(counts), total, counts.size)
    return out


if native is not None and extension.READS_ARRAYS:
    repeat_places.alone = native.repeating(  # type: ignore[attr-defined]
        native.repeat_places, INT64, empty, THRESHOLD
    )


def _make_histogram() -> Kernel:
    find = compiled("histogram").get

    def prepare(a: Array, bins: int, low: float, high: float) -> object:
        run = find(a.dtype)
        forms = form((bins,), a.dtype), form((bins,), INT64)
        return run and (run, forms, (a.size, bins, low, high), (0,))

    return prepared("histogram", "asss", prepare, otherwise("histogram"))


KERNELS: dict[str, Kernel] = {
    "searchsorted": searchsorted,
    "histogram": _make_histogram(),
    "bincount": prepared("bincount", "as", _prepare_bincount, otherwise("bincount")),
    "one_hot": prepared("one_hot", "as", _prepare_one_hot, otherwise("one_hot")),
}
if native is not None:
    KERNELS["repeat_places"] = repeat_places
