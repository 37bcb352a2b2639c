"""A library of convolutions for phones, which flambeau does not use."""

from __future__ import annotations

from flambeau.compat._torch.backends._absent import is_available, switches

__all__ = ["flags", "is_available", "set_flags"]

set_flags, flags = switches("_enabled")
