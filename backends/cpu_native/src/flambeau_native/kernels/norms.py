"""The Euclidean norm of row-major arrays."""

from __future__ import annotations

from flambeau_native.kernels._common import Kernel
from flambeau_native.kernels.reduction import reduction

KERNELS: dict[str, Kernel] = {"norm2": reduction("norm2")}
