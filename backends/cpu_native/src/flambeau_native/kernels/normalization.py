"""Layer normalisation of rows, and batch normalisation of channels of planes."""

from __future__ import annotations

from math import prod

from flambeau_native.kernels._common import (
    Array,
    Kernel,
    compiled,
    form,
    halves_by,
    otherwise,
    prepared,
)

Sizes = tuple[int, ...]

BLOCKS = 32  # at most so many partial sums of the gradients of weight and bias
SMALLEST_PLANE = 8  # elements; many tinier ones are the NumPy kernel's business, which turns them
FEW = 4096  # elements in all


def _fit(x: Array, *others: Array | None) -> bool:
    """Whether all have elements and the dtype of `x`, or are absent."""
    return x.size > 0 and all(a is None or a.dtype == x.dtype for a in others)


def _make_layer_norm() -> Kernel:
    general = halves_by(lambda: layer_norm, otherwise("layer_norm"))
    find = compiled("layer_norm").get

    def prepare(
        x: Array, weight: Array | None, bias: Array | None, normalized_shape: Sizes, eps: float
    ) -> object:
        run = find(x.dtype)
        if run is None or not _fit(x, weight, bias):
            return None
        columns, lead = prod(normalized_shape), x.shape[: x.ndim - len(normalized_shape)]
        kept = form((*lead, *[1] * len(normalized_shape)), x.dtype)
        return run, (form(x.shape, x.dtype), kept, kept), (x.size // columns, columns, eps)

    layer_norm = prepared("layer_norm", "aaass", prepare, general)
    return layer_norm


def _make_layer_norm_backward() -> Kernel:
    general = halves_by(lambda: layer_norm_backward, otherwise("layer_norm_backward"))
    find = compiled("layer_norm_backward").get

    def prepare(
        grad: Array,
        x: Array,
        weight: Array | None,
        mean: Array,
        invstd: Array,
        normalized_shape: Sizes,
    ) -> object:
        run = find(x.dtype)
        if run is None or not _fit(x, grad, weight, mean, invstd):
            return None
        columns = prod(normalized_shape)
        rows = x.size // columns
        block = max(8, -(-rows // BLOCKS))
        over = form(normalized_shape, x.dtype)
        parts = form((-(-rows // block), 2, columns), x.dtype)
        return run, (form(x.shape, x.dtype), over, over, parts), (rows, columns, block), (0, 1, 2)

    layer_norm_backward = prepared("layer_norm_backward", "aaaaas", prepare, general, packs=True)
    return layer_norm_backward


def _planes(x: Array) -> tuple[int, int, int] | None:
    """Images, channels and elements of a plane; None if there are no planes worth it."""
    shape = x.shape
    size = prod(shape[2:])
    worth = size >= SMALLEST_PLANE or x.size <= FEW
    return (shape[0], shape[1], size) if worth and x.size else None


def _make_batch_norm() -> Kernel:
    find = compiled("batch_norm").get

    def prepare(
        x: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array
    ) -> object:
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not _fit(x, weight, bias, mean, invstd):
            return None
        return run, (form(x.shape, x.dtype),), sizes

    return prepared("batch_norm", "aaaaa", prepare, otherwise("batch_norm"))


def _make_batch_norm_train() -> Kernel:
    find = compiled("batch_norm_train").get

    def prepare(x: Array, weight: Array | None, bias: Array | None, eps: float) -> object:
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not _fit(x, weight, bias):
            return None
        of_channels = form((sizes[1],), x.dtype)
        return run, (form(x.shape, x.dtype), of_channels, of_channels), (*sizes, eps)

    return prepared("batch_norm_train", "aaas", prepare, otherwise("batch_norm_train"))


def _make_batch_norm_backward() -> Kernel:
    find = compiled("batch_norm_backward").get

    def prepare(grad: Array, x: Array, weight: Array | None, mean: Array, invstd: Array) -> object:
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not _fit(x, grad, weight, mean, invstd):
            return None
        of_channels = form((sizes[1],), x.dtype)
        return run, (form(x.shape, x.dtype), of_channels, of_channels), sizes

    return prepared("batch_norm_backward", "aaaaa", prepare, otherwise("batch_norm_backward"))


KERNELS: dict[str, Kernel] = {
    "layer_norm": _make_layer_norm(),
    "layer_norm_backward": _make_layer_norm_backward(),
    "batch_norm": _make_batch_norm(),
    "batch_norm_train": _make_batch_norm_train(),
    "batch_norm_backward": _make_batch_norm_backward(),
}
