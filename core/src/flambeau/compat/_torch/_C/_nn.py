"""What PyTorch's compiled module does for `torch.nn`."""

from __future__ import annotations

from flambeau.nn._convert import _parse_to

__all__ = ["_parse_to"]
