"""How libraries tell a compiler to make their ops: kept, and never asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flambeau.compat._torch._decomp import register_decomposition

__all__ = ["lowerings", "register_lowering"]

Lowering = TypeVar("Lowering", bound=Callable[..., object])

lowerings: dict[object, Callable[..., object]] = {}
"""What was registered, by op."""


def register_lowering(aten_fn: object, **settings: object) -> Callable[[Lowering], Lowering]:
    """A decorator that keeps a function as the lowering of an op, or of several."""
    return register_decomposition(aten_fn, lowerings)
