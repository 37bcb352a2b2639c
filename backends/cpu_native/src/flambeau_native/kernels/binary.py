"""Functions of two arrays, element by element, beyond arithmetic."""

from __future__ import annotations

from typing import Any

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    INT32,
    INT64,
    Array,
    Kernel,
    binary,
    compiled,
    made_like,
    otherwise,
)


def _of_integers(name: str) -> Kernel:
    general, runs = otherwise(name), compiled(name, INT32, INT64)

    def kernel(a: Array, b: Array) -> Any:
        run = runs.get(a.dtype)
        alike = a.shape == b.shape and a.flags.c_contiguous and b.flags.c_contiguous
        if run is None or not alike:
            return general(a, b)
        out = made_like(a)
        run(out, a, b, a.size)
        return out

    return kernel


KERNELS: dict[str, Kernel] = {name: binary(name) for name in ("logaddexp", "logaddexp2", "xlogy")}

if native is not None:
    KERNELS |= {name: _of_integers(name) for name in ("gcd", "lcm")}
