"""Places in ascending sequences, and places repeated."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    INT32,
    INT64,
    Array,
    Kernel,
    alike,
    compiled,
    form,
    made,
    otherwise,
    prepared,
)

_bisected = otherwise("searchsorted")
_RUNS = compiled("bisect", INT32, INT64)


def searchsorted(edges: Array, x: Array, right: bool) -> Any:
    run = _RUNS.get(x.dtype)
    if run is None or not x.size or not alike(edges, x):
        return _bisected(edges, x, right)
    out = np.empty(x.shape, INT64)
    count = x.size if edges.ndim == 1 else x.shape[-1]
    run(out, edges, x, x.size // count, edges.shape[-1], count, right)
    return out


def repeat_places(counts: Array, total: int) -> Array:
    out = made((total,), INT64)
    native.repeat_places(out, np.ascontiguousarray(counts), total, counts.size)
    return out


def _make_histogram() -> Kernel:
    find = compiled("histogram").get

    def prepare(a: Array, bins: int, low: float, high: float) -> object:
        run = find(a.dtype)
        forms = form((bins,), a.dtype), form((bins,), INT64)
        return run and (run, forms, (a.size, bins, low, high), (0,))

    return prepared("histogram", "asss", prepare, otherwise("histogram"))


KERNELS: dict[str, Kernel] = {"searchsorted": searchsorted, "histogram": _make_histogram()}
if native is not None:
    KERNELS["repeat_places"] = repeat_places
