"""Running sums and products, sums of exponentials too, and places of cumulative extrema."""

from __future__ import annotations

from math import prod

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


def _along(name: str) -> Kernel:
    find = compiled(name).get

    def prepare(a: Array, dim: int) -> object:
        run, shape = find(a.dtype), a.shape
        if run is None or not a.size or not shape:
            return None
        sizes = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
        return run, (form(shape, a.dtype),), sizes

    return prepared(name, "as", prepare, otherwise(name))


def _make_running_place() -> Kernel:
    general = otherwise("running_place")
    find = {
        **compiled("running_place"),
        INT32: native.running_place_i32,
        INT64: native.running_place_i64,
    }.get

    def running_place(a: Array, dim: int, largest: bool) -> object:
        run, shape = find(a.dtype), a.shape
        if run is None or not a.size or not a.flags.c_contiguous:
            return general(a, dim, largest)
        out = made(shape, INT64)
        run(out, a, prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :]), largest)
        return out

    return running_place


KERNELS: dict[str, Kernel] = {
    "cumsum": _along("cumsum"),
    "cumprod": _along("cumprod"),
    "logcumsumexp": _along("logcumsumexp"),
    "running_place": _make_running_place(),
}
