"""Normalisation: of rows, of groups of planes, and of the channels of a batch."""

from __future__ import annotations

from math import prod

from flambeau_native.kernels._common import (
    FLOAT64,
    Array,
    Form,
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
LEAST_MATRIX = 100  # elements, up to which columns are taken one by one
LEAST_BLOCK = 64  # pixels


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


def _make_group_norm() -> Kernel:
    general = halves_by(lambda: group_norm, otherwise("group_norm"))
    find = compiled("group_norm").get

    def prepare(
        x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float
    ) -> object:
        run = find(x.dtype)
        if run is None or not _fit(x, weight, bias):
            return None
        images, channels = x.shape[:2]
        kept, size = form((images, groups), x.dtype), prod(x.shape[2:])
        sizes = images, groups, channels // groups, size, eps
        return run, (form(x.shape, x.dtype), kept, kept), sizes

    group_norm = prepared("group_norm", "aaass", prepare, general, packs=True)
    return group_norm


def _make_group_norm_backward() -> Kernel:
    general = halves_by(lambda: group_norm_backward, otherwise("group_norm_backward"))
    find = compiled("group_norm_backward").get

    def prepare(
        grad: Array, x: Array, weight: Array | None, mean: Array, invstd: Array, groups: int
    ) -> object:
        run = find(x.dtype)
        if run is None or not _fit(x, grad, weight, mean, invstd):
            return None
        images, channels = x.shape[:2]
        over, parts = form((channels,), x.dtype), form((images, channels, 2), FLOAT64)
        sizes = images, groups, channels // groups, prod(x.shape[2:])
        return run, (form(x.shape, x.dtype), over, over, parts), sizes, (0, 1, 2)

    group_norm_backward = prepared("group_norm_backward", "aaaaas", prepare, general, packs=True)
    return group_norm_backward


def _planes(x: Array) -> tuple[int, int, int] | None:
    """Images, channels and elements of a plane; None if there are no planes worth it."""
    shape = x.shape
    size = prod(shape[2:])
    worth = size >= SMALLEST_PLANE or x.size <= FEW
    return (shape[0], shape[1], size) if worth and x.size else None


def _is_matrix(x: Array) -> bool:
    """Whether it is a batch without sizes, whose channels lie side by side."""
    return x.ndim == 2 and x.size > LEAST_MATRIX


def _of_pixels(x: Array, *others: Array | None) -> tuple[int, int, int] | None:
    """Pixels (..., C), channels and the pixels of a block; None of arrays of other dtypes."""
    if not _fit(x, *others):
        return None
    channels = x.shape[-1]
    pixels = x.size // channels
    return pixels, channels, max(LEAST_BLOCK, -(-pixels // BLOCKS))


def _forms(x: Array, sizes: tuple[int, int, int]) -> tuple[Form, ...]:
    """A result, two of channels, and the sums of blocks."""
    pixels, channels, block = sizes
    parts = form((-(-pixels // block), 2, channels), FLOAT64)
    return form(x.shape, x.dtype), *(2 * (form((channels,), x.dtype),)), parts


def _make_batch_norm() -> Kernel:
    find, find_of_pixels = compiled("batch_norm").get, compiled("batch_norm_pixels").get

    def prepare(
        x: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array
    ) -> object:
        if _is_matrix(x):
            return prepare_pixels(x, weight, bias, mean, invstd)
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not _fit(x, weight, bias, mean, invstd):
            return None
        return run, (form(x.shape, x.dtype),), sizes

    def prepare_pixels(x: Array, *channels: Array | None) -> object:
        run, sizes = find_of_pixels(x.dtype), _of_pixels(x, *channels)
        return run and sizes and (run, (form(x.shape, x.dtype),), sizes[:2])

    general = otherwise("batch_norm")
    return prepared("batch_norm", "aaaaa", prepare, general, pixels=prepare_pixels)


def _make_batch_norm_train() -> Kernel:
    find, find_of_pixels = compiled("batch_norm_train").get, compiled("batch_norm_pixels_train").get

    def prepare(x: Array, weight: Array | None, bias: Array | None, eps: float) -> object:
        if _is_matrix(x):
            return prepare_pixels(x, weight, bias, eps)
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not _fit(x, weight, bias):
            return None
        of_channels = form((sizes[1],), x.dtype)
        return run, (form(x.shape, x.dtype), of_channels, of_channels), (*sizes, eps)

    def prepare_pixels(x: Array, weight: Array | None, bias: Array | None, eps: float) -> object:
        run, sizes = find_of_pixels(x.dtype), _of_pixels(x, weight, bias)
        return run and sizes and (run, _forms(x, sizes), (*sizes, eps), (0, 1, 2))

    general = otherwise("batch_norm_train")
    return prepared("batch_norm_train", "aaas", prepare, general, pixels=prepare_pixels)


def _make_batch_norm_backward() -> Kernel:
    find = compiled("batch_norm_backward").get
    find_of_pixels = compiled("batch_norm_pixels_backward").get

    def prepare(grad: Array, x: Array, weight: Array | None, mean: Array, invstd: Array) -> object:
        if _is_matrix(x):
            return prepare_pixels(grad, x, weight, mean, invstd)
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not _fit(x, grad, weight, mean, invstd):
            return None
        of_channels = form((sizes[1],), x.dtype)
        return run, (form(x.shape, x.dtype), of_channels, of_channels), sizes

    def prepare_pixels(grad: Array, x: Array, *channels: Array | None) -> object:
        run, sizes = find_of_pixels(x.dtype), _of_pixels(x, grad, *channels)
        return run and sizes and (run, _forms(x, sizes), sizes, (0, 1, 2))

    general = otherwise("batch_norm_backward")
    return prepared(
        "batch_norm_backward", "aaaaa", prepare, general, pixels=prepare_pixels, images=2
    )


KERNELS: dict[str, Kernel] = {
    "layer_norm": _make_layer_norm(),
    "layer_norm_backward": _make_layer_norm_backward(),
    "group_norm": _make_group_norm(),
    "group_norm_backward": _make_group_norm_backward(),
    "batch_norm": _make_batch_norm(),
    "batch_norm_train": _make_batch_norm_train(),
    "batch_norm_backward": _make_batch_norm_backward(),
}
