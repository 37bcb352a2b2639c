"""Matrix products: half precisions are accumulated in float32 and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_cupy.array_module import Array, Kernel
from flambeau_cupy.layer import Layer


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    xp = layer.xp

    def matmul(a: Array, b: Array) -> Array:
        found = layer.product(a, b)
        if found is not None:
            return found
        if a.dtype.kind == "b":
            return layer.held(xp.matmul(a.astype(np.int32), b.astype(np.int32))) > 0
        return layer.held(xp.matmul(a, b))

    rounded = layer.rounded(matmul)

    def product(a: Array, b: Array) -> Array:
        found = layer.product(a, b)
        return rounded(a, b) if found is None else found

    def addmm(bias: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
        out = matmul(a, b)
        if alpha != 1:
            out *= xp.full((), alpha, out.dtype)
        if beta != 0:  # NaN in `bias` does not count where beta is 0
            out += bias if beta == 1 else bias * xp.full((), beta, bias.dtype)
        return out

    def add_product(bias: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
        if alpha == beta == 1 and bias.shape == b.shape[-1:]:
            found = layer.product(a, b, bias)
            if found is not None:
                return found
        kind, wide = a.dtype, layer.wide
        return addmm(wide(bias), wide(a), wide(b), beta, alpha).astype(kind, copy=False)

    def linear(x: Array, weight: Array, bias: Array | None) -> Array:
        found = layer.product(x, weight.T, bias)
        if found is not None:
            return found
        kind = x.dtype
        out = matmul(layer.wide(x), layer.wide(weight).T)
        if bias is not None:
            out = out + layer.wide(bias)
        return out.astype(kind, copy=False)

    return {
        "matmul": layer.quiet(product),
        "addmm": layer.quiet(add_product),
        "linear": layer.quiet(linear),
    }
