"""Convolution of every channel with a kernel of its own (groups == channels, stride 1).

Matrix products of depth kh·kw and height 1 waste BLAS. In the padded image, flattened, each tap is
a shift by i·dh·width + j·dw; the output is a weighted sum of shifted vectors, whose entries beyond
the output's width are dropped at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flambeau_numpy.allocator import empty, zeros
from flambeau_numpy.kernels._unfold import Plan
from flambeau_numpy.pointwise import Array

BLOCK = 1 << 15  # elements of a block of channels: image, sum and term stay in the cache


def fits(plan: Plan) -> bool:
    """Whether this module applies."""
    return plan.channels == plan.features == 1 and tuple(plan.stride) == (1, 1) and plan.groups > 1


def mirrored(plan: Plan) -> Plan | None:
    """The convolution that maps the output's gradient to the input's, if it is of this kind."""
    if not fits(plan):
        return None
    padding = tuple(
        d * (k - 1) - p for d, k, p in zip(plan.dilation, plan.kernel, plan.padding, strict=True)
    )
    if min(padding) < 0:
        return None
    shape = (plan.images, plan.groups, *plan.out)
    weight = (plan.groups, 1, *plan.kernel)
    return Plan(shape, weight, (1, 1), padding, plan.dilation, plan.groups)  # type: ignore[arg-type]


def _blocks(plan: Plan, x: Array) -> Iterator[tuple[slice, slice, Array]]:
    """Blocks of planes: their images, their channels, and the padded planes flattened."""
    (ph, pw), (h, w), (dw, kw) = plan.padding, plan.size, (plan.dilation[1], plan.kernel[1])
    height, width = h + 2 * ph, w + 2 * pw
    overhang = dw * (kw - 1)  # how far the last row's taps reach beyond it
    step = max(1, BLOCK // (height * width))
    for n in range(plan.images):
        for start in range(0, plan.groups, step):
            some = slice(start, start + step)
            count = min(step, plan.groups - start)
            flat = zeros((count, height * width + overhang), x.dtype)
            planes = flat[:, : height * width].reshape(count, height, width)
            planes[:, ph : ph + h, pw : pw + w] = x[n, some]
            yield slice(n, n + 1), some, flat


def _shifts(plan: Plan) -> Iterator[tuple[int, int, int]]:
    width = plan.size[1] + 2 * plan.padding[1]
    for i in range(plan.kernel[0]):
        for j in range(plan.kernel[1]):
            yield i, j, i * plan.dilation[0] * width + j * plan.dilation[1]


def forward(plan: Plan, x: Array, taps: Array, out: Array) -> None:
    """Write the convolution of `x` with `taps` (channels, kh, kw) to `out`."""
    (oh, ow), width = plan.out, plan.size[1] + 2 * plan.padding[1]
    length = oh * width
    for images, some, flat in _blocks(plan, x):
        total = empty((flat.shape[0], length), x.dtype)
        term = empty(total.shape, x.dtype)
        for i, j, shift in _shifts(plan):
            tap = taps[some, i, j, None]
            part = flat[:, shift : shift + length]
            if shift:
                total += np.multiply(part, tap, term)
            else:
                np.multiply(part, tap, total)
        out[images, some] = total.reshape(-1, oh, width)[:, :, :ow]


def weight_grad(plan: Plan, grad: Array, x: Array) -> Array:
    """The gradient (channels, kh, kw) with respect to the taps."""
    (oh, ow), width = plan.out, plan.size[1] + 2 * plan.padding[1]
    found = np.zeros((plan.groups, *plan.kernel), grad.dtype)
    for images, some, flat in _blocks(plan, x):
        g = zeros((flat.shape[0], oh, width), grad.dtype)
        g[:, :, :ow] = grad[images, some][0]
        g = g.reshape(flat.shape[0], -1)
        for i, j, shift in _shifts(plan):
            part = flat[:, shift : shift + g.shape[1]]
            found[some, i, j] += np.einsum("cp,cp->c", g, part)
    return found
