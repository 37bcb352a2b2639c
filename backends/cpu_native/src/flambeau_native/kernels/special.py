"""Special functions."""

from __future__ import annotations

from flambeau_native.kernels._common import Kernel, unary

KERNELS: dict[str, Kernel] = {"lgamma": unary("lgamma")}
