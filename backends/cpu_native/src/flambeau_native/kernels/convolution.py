"""What convolutions of images ask for first: windows one pixel apart, of float32."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import FLOAT32, Array, form, made, prepared

if TYPE_CHECKING:
    from collections.abc import Callable

Sizes = tuple[int, ...]
Pair = tuple[int, int]

_TAPS = 32  # of a window in one dimension
_FARTHEST = 1 << 20  # pixels in a dimension
_LANES = 16
_ONES = 1, 1
_FEW = 1 << 19  # multiplications, so few that a library takes longer to begin
_THIN = 4  # channels of an image whose gradient NumPy's kernel computes as soon
_SHARE = 0.82  # of the rate of libraries where their vectors of channels are full


class Windows(NamedTuple):
    """A convolution that there is a compiled one for.

    Attributes:
        out: the shape of the result.
        numbers: what the compiled function is told of it, but for the activation.
        forward, input_grad, weight_grad: whether nobody makes it or its gradients sooner.
    """

    out: Sizes
    numbers: Sizes
    forward: bool
    input_grad: bool
    weight_grad: bool


@lru_cache(maxsize=512)  # a network has the same few shapes over and over
def windows(
    image: Sizes, weight: Sizes, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Windows | None:
    """The convolution of these shapes; None where there is no compiled one, or it is none."""
    if len(image) != 4 or len(weight) != 4 or 0 in image or 0 in weight or stride != _ONES:
        return None
    images, channels, *size = image
    features, depth, *taps = weight
    if groups < 1 or depth * groups != channels or features % groups or taps == [1, 1]:
        return None
    reaches = [d * (k - 1) for k, d in zip(taps, dilation, strict=True)]
    out = [n + 2 * p - r for n, p, r in zip(size, padding, reaches, strict=True)]
    # Positions are those of the image's lines, and each window begins in one.
    if min(out) < 1 or out[1] > size[1] or max(taps) > _TAPS or min(dilation) < 1:
        return None
    if any(not 0 <= p <= r for p, r in zip(padding, reaches, strict=True)):
        return None
    if max(*size, *out) > _FARTHEST or max(dilation) > _FARTHEST // _TAPS:
        return None
    shape, per = (images, features, *out), features // groups
    # Libraries fill vectors with channels; those of an image of few they read one by one.
    others = _fullness(per, per) * (_fullness(depth, depth) if depth > _LANES else 1)
    ours = _SHARE * _fullness(prod(out), (out[0] - 1) * size[1] + out[1])
    back = _SHARE * _fullness(prod(out), prod(size))
    if groups > 1 and per < 4:  # each pixel that is read is used once or twice
        others = 1
    thin, thick = depth < 4 and groups == 1, depth > _THIN or groups > 1
    numbers = images, groups, per, depth, *size, *taps, *out, *dilation, *padding, size[1]
    ahead = ours > others
    return Windows(shape, numbers, thin or ahead, thick and back > others, ahead)


def _fullness(used: int, count: int) -> float:
    """The share of `used` in the vectors that hold `count`."""
    return used / (_LANES * -(-count // _LANES))


def _by_windows(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    _kind: Any = FLOAT32,
    _row_major: Callable[..., Array] = np.ascontiguousarray,
) -> Array | None:
    if x.dtype is not _kind or weight.dtype is not _kind:
        return None
    found = windows(x.shape, weight.shape, stride, padding, dilation, groups)
    if found is None or not found.forward:
        return None
    shape, numbers = found[:2]
    if bias is not None and (bias.dtype is not _kind or bias.shape != shape[1:2]):
        return None
    out = made(shape, _kind)
    line = None if bias is None else _row_major(bias)
    native.convolution(out, _row_major(x), _row_major(weight), line, *numbers, 0)
    return out


def _prepare_pixels(x: Array, weight: Array, bias: Array | None, *geometry: Any) -> object:
    shape, image = weight.shape, x.shape
    if any(a is not None and a.dtype != FLOAT32 for a in (x, weight, bias)):
        return None
    stride, padding, _, groups = geometry
    if stride != _ONES or padding != (0, 0) or groups != 1 or len(image) != 4:
        return None
    if shape[1:] != (image[1], 1, 1) or (bias is not None and bias.shape != shape[:1]):
        return None
    pixels = image[2] * image[3]
    if not 0 < prod(image) * shape[0] <= _FEW:
        return None
    out = form((image[0], shape[0], *image[2:]), FLOAT32)
    return native.pixels_f32, (out,), (image[0], image[1], shape[0], pixels)


conv2d = prepared("conv2d", "aaassss", _prepare_pixels, _by_windows)
"""The convolution of float32 images, or None where others are sooner done."""


def conv2d_of(image: Sizes, weight: Sizes, *geometry: Any, relu: bool = False) -> Any:
    """`conv2d` of row-major float32 arrays, of which it asks nothing; None if others do better.

    Args:
        image, weight: shapes of the input and the weight.
        geometry: stride, padding, dilation and groups.
        relu: make what `relu` makes of the result.
    """
    found = windows(image, weight, *geometry)
    if found is None or not found.forward:
        return None
    shape, numbers, run = found.out, found.numbers, native.convolution

    def conv2d(x: Array, weight: Array, bias: Array | None, *_: object) -> Array:
        out = made(shape, FLOAT32)
        run(out, x, weight, bias, *numbers, relu)
        return out

    return conv2d


def conv2d_input_grad(
    grad: Array,
    weight: Array,
    shape: Sizes,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    _kind: Any = FLOAT32,
) -> Array | None:
    """The gradient of the image: the convolution of `grad` with the turned weight."""
    if grad.dtype is not _kind or weight.dtype is not _kind or weight.ndim != 4:
        return None
    found = windows(tuple(shape), weight.shape, stride, padding, dilation, groups)
    if found is None or not found.input_grad or grad.shape != found.out:
        return None
    features, depth, *taps = weight.shape
    around = tuple([d * (k - 1) - p for k, d, p in zip(taps, dilation, padding, strict=True)])
    turned = weight.reshape(groups, features // groups, depth, *taps).swapaxes(1, 2)[
        ..., ::-1, ::-1
    ]
    images, channels, height, width = shape
    counts = images, groups, depth, features // groups
    wide = _widened(grad, width)
    out = made((images, channels, height, width), _kind)
    lines = grad.shape[2]
    numbers = *counts, lines, width, *taps, height, width, *dilation, *around, grad.shape[3]
    native.convolution(out, wide, np.ascontiguousarray(turned), None, *numbers, 0)
    return out


def conv2d_weight_grad(
    grad: Array,
    x: Array,
    shape: Sizes,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    _kind: Any = FLOAT32,
) -> Array | None:
    """The gradient of the weight."""
    if grad.dtype is not _kind or x.dtype is not _kind:
        return None
    found = windows(x.shape, tuple(shape), stride, padding, dilation, groups)
    if found is None or not found.weight_grad or grad.shape != found.out:
        return None
    above, left = padding
    if above or left:
        images, channels, height, width = x.shape
        padded = np.zeros((images, channels, height + 2 * above, width + 2 * left), _kind)
        padded[:, :, above : above + height, left : left + width] = x
        x = padded
    height, width = x.shape[2:]
    out = np.empty(shape, _kind)
    numbers = *found.numbers[:4], height, width, *shape[2:], grad.shape[2], *dilation
    native.convolution_weight(out, _widened(grad, width), np.ascontiguousarray(x), *numbers)
    return out


def _widened(grad: Array, width: int) -> Array:
    """Lines of `width` numbers, zeros behind those that there are."""
    if grad.shape[3] == width:
        return np.ascontiguousarray(grad)
    wide = np.zeros((*grad.shape[:3], width), FLOAT32)
    wide[..., : grad.shape[3]] = grad
    return wide
