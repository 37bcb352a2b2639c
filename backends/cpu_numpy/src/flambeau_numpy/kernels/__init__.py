"""The kernels of the CPU, by family; the file names are those of `flambeau.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau_numpy.kernels import (
    activation,
    convolution,
    creation,
    elementwise,
    indexing,
    linalg,
    loss,
    movement,
    normalization,
    optimizer,
    pooling,
    random,
    reduction,
    scattering,
    special,
    statistics,
)

FAMILIES = (
    creation,
    elementwise,
    special,
    reduction,
    statistics,
    movement,
    indexing,
    scattering,
    linalg,
    activation,
    convolution,
    pooling,
    normalization,
    loss,
    random,
    optimizer,
)

KERNELS: dict[str, Callable[..., Any]] = {
    name: kernel for family in FAMILIES for name, kernel in family.KERNELS.items()
}
"""Every kernel by the name of its canonical op."""
