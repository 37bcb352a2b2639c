"""Special functions."""

from __future__ import annotations

from flambeau_native.kernels._common import Kernel, unary

_NAMES = ("lgamma", "erfc", "erfinv", "i0", "i0e", "i1", "i1e")

KERNELS: dict[str, Kernel] = {name: unary(name) for name in _NAMES}
