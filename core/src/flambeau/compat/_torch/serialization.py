"""Names of ``torch.serialization`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb

__all__ = [
    "DEFAULT_PROTOCOL",
    "FILE_LIKE",
    "MAGIC_NUMBER",
    "MAP_LOCATION",
    "PROTOCOL_VERSION",
]

DEFAULT_PROTOCOL = 2
"""The protocol of pickles in checkpoints."""
MAGIC_NUMBER, PROTOCOL_VERSION = 0x1950A86A20F9469CFC6C, 1001
"""How files of PyTorch before 1.6 begin."""

MAP_LOCATION = Callable[[Any, str], Any] | fb.device | str | dict[str, str] | None
FILE_LIKE = Any
