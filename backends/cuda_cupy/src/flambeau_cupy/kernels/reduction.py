"""Reductions over dimensions; half precisions are accumulated in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.layer import Layer

Dims = tuple[int, ...]


def accumulated(layer: Layer, name: str) -> Kernel:
    function = getattr(layer.xp, name)

    def kernel(a: Array, dims: Dims, keepdim: bool) -> Any:
        if a.dtype.kind == "b":  # a sum of truth values is `any`, a product `all`
            return getattr(layer.xp, "any" if name == "sum" else "all")(a, dims, keepdims=keepdim)
        return function(a, axis=dims, dtype=a.dtype, keepdims=keepdim)

    return row_major(layer, layer.rounded(kernel))


def extremum(layer: Layer, name: str) -> Kernel:
    function = getattr(layer.xp, name)
    return row_major(
        layer, layer.rounded(lambda a, dims, keep: function(a, axis=dims, keepdims=keep))
    )


def truth(layer: Layer, name: str) -> Kernel:
    function = getattr(layer.xp, name)
    return row_major(layer, lambda a, dims, keep: function(a, axis=dims, keepdims=keep))


def row_major(layer: Layer, kernel: Kernel) -> Kernel:
    def run(a: Array, dims: Dims, keepdim: bool) -> Array:
        if not a.ndim:
            dims = ()
        found = layer.held(kernel(a, dims, keepdim))
        if found is a or found.base is not None or not found.flags.c_contiguous:
            return found.copy("C")
        return found

    return run


def position(layer: Layer, name: str) -> Kernel:
    xp = layer.xp
    function = getattr(xp, name)

    def kernel(a: Array, dim: int, keepdim: bool) -> Array:
        if not a.ndim:
            return xp.zeros((), np.int64)
        found = layer.held(function(layer.wide(a), axis=dim)).astype(np.int64, copy=False)
        return xp.expand_dims(found, dim) if keepdim else found

    return kernel


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    made = {
        "sum": accumulated(layer, "sum"),
        "prod": accumulated(layer, "prod"),
        "amax": extremum(layer, "amax"),
        "amin": extremum(layer, "amin"),
        "all": truth(layer, "all"),
        "any": truth(layer, "any"),
        "argmax": position(layer, "argmax"),
        "argmin": position(layer, "argmin"),
    }
    return {name: layer.quiet(kernel) for name, kernel in made.items()}
