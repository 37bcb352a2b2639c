"""Convolution of images and volumes as matrix products, with its two gradients.

Kernel columns are unfolded, kernel rows are not. For each kernel column j a shifted copy of the
padded input is written once, with rows grouped by their residue r modulo the vertical stride:

    cols[c, j, r, q, n, x] = padded[n, c, q·sh + r, x·sw + j·dw]

Then the taps (c, j) of kernel row i, for all output rows of a block of images, are adjacent
columns of that matrix, starting at row i·dh, and the output is a sum of kh products of depth C·kw
that BLAS reads in place. This copies the input kw times instead of kh·kw times. Where C·kw is
small, all taps are unfolded, for one product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.allocator import empty
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.kernels import _depthwise
from flambeau_numpy.kernels._unfold import Pair, Plan
from flambeau_numpy.kernels._volumes import Stack, Triple
from flambeau_numpy.kernels.linalg import linear, matmul
from flambeau_numpy.pointwise import Array
from flambeau_numpy.products import asking, multiply
from flambeau_numpy.silence import quiet

Sizes = tuple[int, ...]

_FEW = 64  # pixels of an image


def _grouped(x: Array, groups: int) -> Array:
    n, c, h, w = x.shape
    return np.ascontiguousarray(x).reshape(n, groups, c // groups, h, w)


def _is_product(weight: Sizes, stride: Pair, padding: Pair, groups: int) -> bool:
    """Whether a 1×1 kernel sees every pixel: the image itself is the matrix of its columns."""
    plain = weight[2] == weight[3] == groups == stride[0] == stride[1] == 1
    return plain and padding[0] == padding[1] == 0


def _lines(x: Array) -> Array:
    """Images as matrices with a row for each channel."""
    n, c, h, w = x.shape
    return np.ascontiguousarray(x).reshape(n, c, h * w)


def is_of_rows(image: Sizes, weight: Sizes, *geometry: Any) -> bool:
    """Whether a convolution is the product of a row of channels for each pixel, of tiny images."""
    pixels, (stride, padding, _, groups) = math.prod(image[2:]), geometry
    if pixels > _FEW or (pixels > 1 == image[0]) or not pixels or len(image) != 4:
        return False
    return _is_product(weight, stride, padding, groups)


def of_rows(product: Callable[..., Array], images: Array, *operands: Array | None) -> Array:
    """What `product` makes of the rows of images and of the other operands, as images."""
    n, c, h, w = images.shape
    made = product(images.transpose(0, 2, 3, 1).reshape(-1, c), *operands)
    return np.ascontiguousarray(made.reshape(n, h, w, made.shape[-1]).transpose(0, 3, 1, 2))


def _pixels(x: Array) -> Array:
    """Images as one matrix with a row for each channel."""
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


@quiet
def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Array:
    """out[n, o, y, x] = bias[o] + Σ weight[o, c, i, j]·padded[n, c, y·sh + i·dh, x·sw + j·dw]."""
    if is_half(x.dtype):
        shift = None if bias is None else wide(bias)
        wider = conv2d(wide(x), wide(weight), shift, stride, padding, dilation, groups)
        return narrow(wider, x.dtype)
    shape = weight.shape
    if x.size and is_of_rows(x.shape, shape, stride, padding, dilation, groups):
        return of_rows(linear, x, weight.reshape(shape[:2]), bias)
    if x.size and _is_product(shape, stride, padding, groups):
        out = empty((x.shape[0], shape[0], *x.shape[2:]), x.dtype)
        multiply(weight.reshape(1, *shape[:2]), _lines(x), out.reshape(*out.shape[:2], -1))
        if bias is not None:
            out += bias.reshape(-1, 1, 1)
        return out
    plan = Plan(x.shape, shape, stride, padding, dilation, groups)
    out = empty((plan.images, shape[0], *plan.out), x.dtype)
    if not out.size or not x.size:
        out[...] = 0
    elif _depthwise.fits(plan):
        _depthwise.forward(plan, x, weight[:, 0], out)
    else:
        _forward(plan, _grouped(x, groups), weight, out)
    if bias is not None:
        out += bias.reshape(-1, 1, 1)
    return out


def _forward(plan: Plan, x: Array, weight: Array, out: Array) -> None:
    table = out.reshape(plan.images, plan.groups, plan.features, *plan.out)
    products = [(line, plan.matrix(weight, kernel)) for line, kernel in plan.products()]
    if plan.plain:
        multiply(products[0][1], x.reshape(*x.shape[:3], -1), table.reshape(*table.shape[:3], -1))
        return
    for block, count in plan.blocks():
        cols, target = plan.unfold(x[block]), table[block]
        if len(products) == 1:
            multiply(products[0][1], cols, target.reshape(*target.shape[:3], -1))
            continue
        total = empty((1, *table.shape[1:3], cols[..., plan.span(0, count)].shape[-1]), x.dtype)
        more = empty(total.shape, x.dtype)
        for i, (line, matrix) in enumerate(products):
            part = cols[..., plan.span(line, count)]
            if i == 0:
                multiply(matrix, part, total)
            else:
                total += multiply(matrix, part, more)
        lines = total.reshape(plan.groups, plan.features, plan.out[0], count, plan.out[1])
        np.copyto(target, lines.transpose(3, 0, 1, 2, 4))


@quiet
def conv2d_input_grad(
    grad: Array,
    weight: Array,
    input_shape: tuple[int, ...],
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Array:
    """The gradient with respect to the input: the adjoint of `conv2d`, its steps in reverse."""
    if is_half(grad.dtype):
        wider = conv2d_input_grad(
            wide(grad), wide(weight), input_shape, stride, padding, dilation, groups
        )
        return narrow(wider, grad.dtype)
    how = stride, padding, dilation, groups
    if grad.size and weight.size and is_of_rows(grad.shape, weight.shape, *how):
        return of_rows(matmul, grad, weight.reshape(weight.shape[:2]))
    if grad.size and weight.size and _is_product(weight.shape, stride, padding, groups):
        out = empty(input_shape, grad.dtype)
        turned = weight.reshape(1, *weight.shape[:2]).swapaxes(1, 2)
        multiply(turned, _lines(grad), out.reshape(*out.shape[:2], -1))
        return out
    plan = Plan(input_shape, weight.shape, stride, padding, dilation, groups)
    if not grad.size or not weight.size:
        return np.zeros(input_shape, grad.dtype)
    if (mirrored := _depthwise.mirrored(plan)) is not None:
        out = empty(input_shape, grad.dtype)
        _depthwise.forward(mirrored, grad, weight[:, 0, ::-1, ::-1], out)
        return out
    g, result = _grouped(grad, groups), empty(input_shape, grad.dtype)
    out = result.reshape(plan.images, groups, plan.channels, *plan.size)
    products = [
        (line, plan.matrix(weight, kernel).swapaxes(-1, -2)) for line, kernel in plan.products()
    ]
    if plan.plain:
        multiply(products[0][1], g.reshape(*g.shape[:3], -1), out.reshape(*out.shape[:3], -1))
        return result
    for block, count in plan.blocks():
        part = plan.as_columns(g[block])
        cols = plan.workspace(count, grad.dtype)
        if len(products) == 1:
            multiply(products[0][1], part, cols)
        else:
            cols.fill(0)
            term = empty((1, groups, plan.depth, part.shape[-1]), grad.dtype)
            for line, matrix in products:
                target = cols[..., plan.span(line, count)]
                target += multiply(matrix, part, term)
        plan.fold(cols, out[block])
    return result


@quiet
def conv2d_weight_grad(
    grad: Array,
    x: Array,
    weight_shape: tuple[int, ...],
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Array:
    """The gradient with respect to the weight: products of the output's gradient with the taps."""
    if is_half(grad.dtype):
        wider = conv2d_weight_grad(
            wide(grad), wide(x), weight_shape, stride, padding, dilation, groups
        )
        return narrow(wider, grad.dtype)
    if grad.size and x.size and _is_product(weight_shape, stride, padding, groups):
        features, channels = weight_shape[:2]
        if math.prod(x.shape[2:]) * (features + channels) <= features * channels:
            out = empty((features, channels), grad.dtype)  # what is copied is less than the result
            return multiply(_pixels(grad), _pixels(x).T, out).reshape(weight_shape)
        # Each image has a gradient of its own until they are added: that must be little memory.
        if len(grad) * features * channels <= 1 << 18:
            each = np.matmul(_lines(grad), _lines(x).swapaxes(1, 2))
            return np.add.reduce(each).reshape(weight_shape)
    plan = Plan(x.shape, weight_shape, stride, padding, dilation, groups)
    result = np.zeros(weight_shape, grad.dtype)
    if not grad.size or not x.size:
        return result
    total = result.reshape(groups, plan.features, plan.channels, *plan.kernel)
    if _depthwise.fits(plan):
        return _depthwise.weight_grad(plan, grad, x).reshape(weight_shape)
    images, g = _grouped(x, groups), _grouped(grad, groups)
    for block, count in plan.blocks():
        cols = plan.unfold(images[block])
        part = plan.as_columns(g[block])
        for line, kernel in plan.products():
            taps = cols[..., plan.span(line, count)].swapaxes(-1, -2)
            place = total[:, :, :, kernel]
            place += np.add.reduce(np.matmul(part, taps)).reshape(place.shape)
    return result


@quiet
def conv3d(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Triple,
    padding: Triple,
    dilation: Triple,
    groups: int,
) -> Array:
    """`conv2d` of frames stacked as channels; see `_volumes`."""
    stack = Stack(x.shape, weight.shape, stride, padding, dilation)
    how = stride[1:], padding[1:], dilation[1:], groups
    return stack.joined(conv2d(stack.images(x), stack.filters(weight), bias, *how))


@quiet
def conv3d_input_grad(
    grad: Array,
    weight: Array,
    input_shape: tuple[int, ...],
    stride: Triple,
    padding: Triple,
    dilation: Triple,
    groups: int,
) -> Array:
    """The gradient with respect to the input: that of the stacked frames, summed."""
    if is_half(grad.dtype):  # so that the sum of the frames is rounded once
        wider = conv3d_input_grad(
            wide(grad), wide(weight), input_shape, stride, padding, dilation, groups
        )
        return narrow(wider, grad.dtype)
    stack = Stack(input_shape, weight.shape, stride, padding, dilation)
    how = stride[1:], padding[1:], dilation[1:], groups
    images = conv2d_input_grad(stack.parted(grad), stack.filters(weight), stack.images_shape, *how)
    return stack.volume(images)


@quiet
def conv3d_weight_grad(
    grad: Array,
    x: Array,
    weight_shape: tuple[int, ...],
    stride: Triple,
    padding: Triple,
    dilation: Triple,
    groups: int,
) -> Array:
    """The gradient with respect to the weight: that of the stacked filters."""
    stack = Stack(x.shape, weight_shape, stride, padding, dilation)
    o, c, kd, kh, kw = weight_shape
    how = stride[1:], padding[1:], dilation[1:], groups
    images = conv2d_weight_grad(stack.parted(grad), stack.images(x), (o, c * kd, kh, kw), *how)
    return images.reshape(weight_shape)


KERNELS = {
    "conv2d": asking("conv2d", conv2d),
    "conv2d_input_grad": asking("conv2d_input_grad", conv2d_input_grad),
    "conv2d_weight_grad": asking("conv2d_weight_grad", conv2d_weight_grad),
    "conv3d": conv3d,
    "conv3d_input_grad": conv3d_input_grad,
    "conv3d_weight_grad": conv3d_weight_grad,
}
