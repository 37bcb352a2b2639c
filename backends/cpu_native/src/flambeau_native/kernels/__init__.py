"""The compiled kernels by family; the file names are those of `flambeau.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau_native.kernels import (
    activation,
    binary,
    binary_loss,
    boundary_padding,
    classification_loss,
    complexes,
    counting,
    cumulative,
    distance,
    elementwise,
    fold,
    gating,
    grid,
    indexing,
    margin_loss,
    movement,
    normalization,
    norms,
    optimizer,
    padding,
    pooling,
    random,
    ranges,
    recurrent,
    reduction,
    regression_loss,
    rejection,
    resampling,
    sequence_loss,
    special,
)

FAMILIES = (
    elementwise,
    binary,
    special,
    complexes,
    reduction,
    cumulative,
    counting,
    norms,
    distance,
    indexing,
    movement,
    activation,
    gating,
    padding,
    boundary_padding,
    pooling,
    fold,
    grid,
    resampling,
    normalization,
    binary_loss,
    classification_loss,
    margin_loss,
    regression_loss,
    sequence_loss,
    recurrent,
    rejection,
    random,
    ranges,
    optimizer,
)

KERNELS: dict[str, Callable[..., Any]] = {
    name: kernel for family in FAMILIES for name, kernel in family.KERNELS.items()
}
"""Every compiled kernel by the name of its canonical op."""
