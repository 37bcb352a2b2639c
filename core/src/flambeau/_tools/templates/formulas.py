"""The namespace ``F`` that gradient formulas receive, for type checkers.

In an ordinary backward pass it is the `BoundBackend` of a device, and arrays are native; where the
backward pass is recorded it is `flambeau.ops.declaration.namespace`, and they are tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flambeau._types.dtype import dtype as DType
from flambeau._types.native import Array


class Formulas(Protocol):
    """Canonical ops by position, and the helpers of formulas."""

    native: bool
    array: type

    def scalar(self, value: float, like: Array) -> Array: ...
    def zeros(self, shape: tuple[int, ...], like: Array) -> Array: ...
    def mT(self, a: Array) -> Array: ...
    def cast_like(self, a: Array, like: Array) -> Array: ...
    def is_complex(self, a: Array) -> bool: ...
    def sum_to(self, a: Array, shape: tuple[int, ...]) -> Array: ...
    def reshape(self, a: Array, shape: tuple[int, ...]) -> Array: ...
    def flat(self, a: Array) -> Array: ...
