"""The name that libraries enter around `torch.vmap` of functions with subscripts."""

from __future__ import annotations

from contextlib import nullcontext

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(nullcontext[None]):
    """Within, a vmapped tensor may be a subscript, which in flambeau it may be anywhere."""
