"""The kernels by family, each made for an array module; the file names are those of the core."""

from __future__ import annotations

from flambeau_cupy.kernels import (
    complexes,
    creation,
    elementwise,
    indexing,
    linalg,
    movement,
    random,
    reduction,
)
from flambeau_cupy.layer import Kernel, Layer

FAMILIES = (creation, elementwise, complexes, reduction, movement, indexing, linalg, random)


def kernels(layer: Layer) -> dict[str, Kernel]:
    """Every kernel by the name of its canonical op."""
    return {name: kernel for family in FAMILIES for name, kernel in family.make(layer).items()}
