"""Cross entropy with its log-probabilities in one pass."""

from __future__ import annotations

from flambeau_native.kernels._common import (
    INT64,
    Array,
    Kernel,
    compiled,
    form,
    otherwise,
    prepared,
)


def _make_cross_entropy() -> Kernel:
    find = compiled("cross_entropy").get

    def prepare(x: Array, target: Array, ignore_index: int) -> object:
        run = find(x.dtype)
        if run is None or not x.size or target.dtype != INT64:
            return None
        number, columns = form((), x.dtype), x.shape[-1]
        sizes = x.size // columns, columns, ignore_index
        return run, (form(x.shape, x.dtype), number, number), sizes, (1, 0, 2)

    return prepared("cross_entropy", "aas", prepare, otherwise("cross_entropy"))


def _make_cross_entropy_backward() -> Kernel:
    general, find = otherwise("cross_entropy_backward"), compiled("cross_entropy_backward").get

    def prepare(
        grad: Array, log_probs: Array, target: Array, ignore_index: int, count: Array
    ) -> object:
        dtype, size = log_probs.dtype, log_probs.size
        run = find(dtype)
        if run is None or not size or target.dtype != INT64:
            return None
        if grad.dtype != dtype or count.dtype != dtype:
            return None
        columns = log_probs.shape[-1]
        return run, (form(log_probs.shape, dtype),), (size // columns, columns, ignore_index)

    return prepared("cross_entropy_backward", "aaasa", prepare, general)


KERNELS: dict[str, Kernel] = {
    "cross_entropy": _make_cross_entropy(),
    "cross_entropy_backward": _make_cross_entropy_backward(),
}
