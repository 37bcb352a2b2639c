"""Kinds of arguments that many functions take, for their signatures.

They say what a program may pass; a function may accept more, as PyTorch's does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from flambeau._types.device import device

__all__ = ["DeviceLike", "Ints", "Number"]

Number: TypeAlias = bool | int | float | complex
"""A number that is no tensor."""

Ints: TypeAlias = int | Sequence[int]
"""Sizes or dimensions: one, or one for each."""

DeviceLike: TypeAlias = device | str | int
"""What names a device."""
