"""The angle of real numbers."""

from __future__ import annotations

from flambeau_native.kernels._common import Kernel, unary

KERNELS: dict[str, Kernel] = {"angle": unary("angle")}
