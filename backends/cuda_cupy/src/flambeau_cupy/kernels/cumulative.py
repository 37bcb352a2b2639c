"""Cumulative sums and products; half precisions are accumulated in float32."""

from __future__ import annotations

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.layer import Layer


def scan(layer: Layer, name: str) -> Kernel:
    function = getattr(layer.xp, name)

    def kernel(a: Array, dim: int) -> Array:
        if not a.ndim:
            return a.copy()
        return layer.held(function(a, axis=dim, dtype=a.dtype))

    return layer.rounded(kernel)


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    return {name: layer.quiet(scan(layer, name)) for name in ("cumsum", "cumprod")}
