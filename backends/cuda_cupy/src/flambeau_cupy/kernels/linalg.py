"""Matrix products: half precisions are accumulated in float32 and rounded once."""

from __future__ import annotations

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.layer import Layer


def matmul(layer: Layer, a: Array, b: Array) -> Array:
    found = layer.product(a, b)
    if found is not None:
        return found
    if a.dtype.kind == "b":
        return layer.held(layer.held(layer.xp.matmul(a.astype(np.int32), b.astype(np.int32))) > 0)
    return layer.held(layer.xp.matmul(a, b))


def product(layer: Layer, a: Array, b: Array) -> Array:
    found = layer.product(a, b)
    if found is None:
        found = matmul(layer, layer.wide(a), layer.wide(b)).astype(a.dtype, copy=False)
    return found


def addmm(layer: Layer, bias: Array, a: Array, b: Array, beta: object, alpha: object) -> Array:
    out = matmul(layer, a, b)
    if alpha != 1:
        out *= layer.xp.full((), alpha, out.dtype)
    if beta != 0:  # NaN in `bias` does not count where beta is 0
        out += bias if beta == 1 else bias * layer.xp.full((), beta, bias.dtype)
    return out


def add_product(
    layer: Layer, bias: Array, a: Array, b: Array, beta: object, alpha: object
) -> Array:
    if alpha == beta == 1 and bias.shape == b.shape[-1:]:
        found = layer.product(a, b, bias)
        if found is not None:
            return found
    kind, wide = a.dtype, layer.wide
    return addmm(layer, wide(bias), wide(a), wide(b), beta, alpha).astype(kind, copy=False)


def linear(layer: Layer, x: Array, weight: Array, bias: Array | None) -> Array:
    found = layer.product(x, weight.T, bias)
    if found is not None:
        return found
    kind = x.dtype
    out = matmul(layer, layer.wide(x), layer.wide(weight).T)
    if bias is not None:
        out = out + layer.wide(bias)
    return out.astype(kind, copy=False)


KERNELS: dict[str, Kernel] = {
    "matmul": product,
    "addmm": add_product,
    "linear": linear,
}
"""Functions of a layer and what the op of their name is given."""
