"""All kernels of the reference backend, by canonical op name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.testing.reference import (
    creation,
    elementwise,
    indexing,
    linalg,
    movement,
    parts,
    reduction,
)

FAMILIES = {
    "creation": creation.KERNELS,
    "elementwise": elementwise.KERNELS,
    "complexes": parts.KERNELS,
    "reduction": reduction.KERNELS,
    "linalg": linalg.KERNELS,
    "movement": movement.KERNELS,
    "indexing": indexing.KERNELS,
}

KERNELS: dict[str, Callable[..., Any]] = {
    name: kernel for family in FAMILIES.values() for name, kernel in family.items()
}
