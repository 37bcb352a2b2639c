"""Distances of every row of one matrix from every row of another, and their gradient."""

from __future__ import annotations

from math import inf, prod

from flambeau_native.kernels._common import Array, Kernel, compiled, form, otherwise, prepared

_ORDERS = {1: 1, 2: 2, inf: 0}  # as compiled code names them


def _sizes(x1: Array, x2: Array, p: float) -> tuple[int, ...] | None:
    """Batches, rows of both, columns and the order; None of what does not fit together."""
    if x1.ndim < 2 or x2.dtype != x1.dtype or x2.shape[:-2] != x1.shape[:-2]:
        return None
    if not x1.size or not x2.size or x2.shape[-1] != x1.shape[-1] or p not in _ORDERS:
        return None
    return prod(x1.shape[:-2]), x1.shape[-2], x2.shape[-2], x1.shape[-1], _ORDERS[p]


def _make_cdist() -> Kernel:
    find = compiled("cdist").get

    def prepare(x1: Array, x2: Array, p: float) -> object:
        run, sizes = find(x1.dtype), _sizes(x1, x2, p)
        if run is None or sizes is None:
            return None
        return run, (form((*x1.shape[:-1], x2.shape[-2]), x1.dtype),), sizes

    return prepared("cdist", "aas", prepare, otherwise("cdist"), packs=True)


def _make_cdist_backward() -> Kernel:
    find = compiled("cdist_backward").get

    def prepare(grad: Array, x1: Array, x2: Array, result: Array, p: float) -> object:
        run, sizes = find(x1.dtype), _sizes(x1, x2, p)
        if run is None or sizes is None:
            return None
        shape = *x1.shape[:-1], x2.shape[-2]
        if any(a.shape != shape or a.dtype != x1.dtype for a in (grad, result)):
            return None
        return run, (form(x1.shape, x1.dtype),), sizes

    return prepared("cdist_backward", "aaaas", prepare, otherwise("cdist_backward"), packs=True)


KERNELS: dict[str, Kernel] = {"cdist": _make_cdist(), "cdist_backward": _make_cdist_backward()}
