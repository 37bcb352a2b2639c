"""Cross entropy with its log-probabilities in one pass."""

from __future__ import annotations

import numpy as np

from flambeau_native.kernels._common import (
    INT64,
    Array,
    Kernel,
    alike,
    compiled,
    made_like,
    otherwise,
)


def _make_cross_entropy() -> Kernel:
    general, find = otherwise("cross_entropy"), compiled("cross_entropy").get

    def cross_entropy(x: Array, target: Array, ignore_index: int) -> object:
        run = find(x.dtype)
        if run is None or not x.size or not _fit(x, target):
            return general(x, target, ignore_index)
        log_probs, loss, count = made_like(x), np.empty((), x.dtype), np.empty((), x.dtype)
        columns = x.shape[-1]
        run(log_probs, loss, count, x, target, x.size // columns, columns, ignore_index)
        return loss, log_probs, count

    return cross_entropy


def _make_cross_entropy_backward() -> Kernel:
    general = otherwise("cross_entropy_backward")
    find = compiled("cross_entropy_backward").get

    def cross_entropy_backward(
        grad: Array, log_probs: Array, target: Array, ignore_index: int, count: Array
    ) -> np.ndarray:
        run = find(log_probs.dtype)
        fits = log_probs.size and _fit(log_probs, target)
        if run is None or not fits or not alike(log_probs, grad, count):
            return general(grad, log_probs, target, ignore_index, count)
        out, columns = made_like(log_probs), log_probs.shape[-1]
        run(out, grad, count, log_probs, target, out.size // columns, columns, ignore_index)
        return out

    return cross_entropy_backward


def _fit(x: Array, target: Array) -> bool:
    return x.flags.c_contiguous and target.dtype == INT64 and target.flags.c_contiguous


KERNELS: dict[str, Kernel] = {
    "cross_entropy": _make_cross_entropy(),
    "cross_entropy_backward": _make_cross_entropy_backward(),
}
