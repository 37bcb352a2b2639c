"""The kernels by family, each made for an array module; the file names are those of the core."""

from __future__ import annotations

from flambeau_cupy.device.array_module import Kernel
from flambeau_cupy.kernels import (
    activation,
    classification_loss,
    complexes,
    creation,
    cumulative,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    optimizer,
    pooling,
    random,
    ranges,
    reduction,
    sequence_loss,
)
from flambeau_cupy.layer import Layer

FAMILIES = (creation, ranges, complexes, movement, indexing, linalg, random)
LAUNCHED = (classification_loss, sequence_loss, normalization, pooling)
"""The families that consist of kernels in CUDA C."""

MADE = (elementwise, reduction, cumulative)
MADE_LAUNCHED = (activation, optimizer)
"""The families whose kernels are made of others, of them those in CUDA C."""


def kernels(layer: Layer) -> dict[str, Kernel]:
    """Every kernel by the name of its canonical op."""
    functions = [family.KERNELS for family in FAMILIES]
    made = [*MADE]
    if layer.launch is not None:
        functions += [family.KERNELS for family in LAUNCHED] + [indexing.LAUNCHED, random.LAUNCHED]
        made += MADE_LAUNCHED
    found = [family.make(layer) for family in made] + [layer.bound(some) for some in functions]
    return {name: kernel for some in found for name, kernel in some.items()}
