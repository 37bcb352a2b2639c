"""The kernels by family, each made for an array module; the file names are those of the core."""

from __future__ import annotations

from flambeau_cupy.array_module import Kernel
from flambeau_cupy.kernels import (
    activation,
    classification_loss,
    complexes,
    creation,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    optimizer,
    pooling,
    random,
    reduction,
    sequence_loss,
)
from flambeau_cupy.layer import Layer

FAMILIES = (creation, elementwise, complexes, reduction, movement, indexing, linalg, random)
LAUNCHED = (activation, classification_loss, sequence_loss, normalization, optimizer, pooling)
"""The families that consist of kernels in CUDA C."""


def kernels(layer: Layer) -> dict[str, Kernel]:
    """Every kernel by the name of its canonical op."""
    families = FAMILIES if layer.launch is None else (*FAMILIES, *LAUNCHED)
    return {name: kernel for family in families for name, kernel in family.make(layer).items()}
