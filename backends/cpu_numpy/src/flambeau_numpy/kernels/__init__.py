"""The kernels of the CPU, by family; the file names are those of `flambeau.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau_numpy.kernels import (
    activation,
    classification_loss,
    complexes,
    convolution,
    counting,
    creation,
    cumulative,
    eigenvalues,
    elementwise,
    embedding,
    factorization,
    fold,
    grid,
    hyperbolic,
    indexing,
    linalg,
    movement,
    normalization,
    norms,
    optimizer,
    optimizer_adaptive,
    padding,
    pooling,
    random,
    ranges,
    recurrent,
    reduction,
    regression_loss,
    resampling,
    scattering,
    sequence_loss,
    solving,
    special,
    spectral,
    statistics,
)

FAMILIES = (
    creation,
    ranges,
    cumulative,
    elementwise,
    complexes,
    hyperbolic,
    special,
    reduction,
    norms,
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
    counting,
    pooling,
    fold,
    resampling,
    grid,
    normalization,
    recurrent,
    classification_loss,
    regression_loss,
    sequence_loss,
    random,
    optimizer,
    optimizer_adaptive,
)

KERNELS: dict[str, Callable[..., Any]] = {
    name: kernel for family in FAMILIES for name, kernel in family.KERNELS.items()
}
"""Every kernel by the name of its canonical op."""
