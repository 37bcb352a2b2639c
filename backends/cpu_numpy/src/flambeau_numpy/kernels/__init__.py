"""The kernels of the CPU, by family; the file names are those of `flambeau.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau_numpy.kernels import (
    activation,
    complexes,
    convolution,
    creation,
    ctc,
    eigenvalues,
    elementwise,
    embedding,
    factorization,
    fold,
    grid,
    hyperbolic,
    indexing,
    linalg,
    loss,
    movement,
    normalization,
    optimizer,
    optimizer_adaptive,
    padding,
    pooling,
    random,
    recurrent,
    reduction,
    resampling,
    scattering,
    solving,
    special,
    spectral,
    statistics,
)

FAMILIES = (
    creation,
    elementwise,
    complexes,
    hyperbolic,
    special,
    reduction,
    statistics,
    movement,
    indexing,
    scattering,
    embedding,
    padding,
    linalg,
    factorization,
    eigenvalues,
    solving,
    spectral,
    activation,
    convolution,
    pooling,
    fold,
    resampling,
    grid,
    normalization,
    recurrent,
    loss,
    ctc,
    random,
    optimizer,
    optimizer_adaptive,
)

KERNELS: dict[str, Callable[..., Any]] = {
    name: kernel for family in FAMILIES for name, kernel in family.KERNELS.items()
}
"""Every kernel by the name of its canonical op."""
