"""Losses of yes-or-no answers: binary cross entropy of probabilities."""

from __future__ import annotations

from flambeau_native.kernels._common import Kernel, binary

KERNELS: dict[str, Kernel] = {"binary_cross_entropy": binary("binary_cross_entropy")}
