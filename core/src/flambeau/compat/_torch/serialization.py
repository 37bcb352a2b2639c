"""Names of ``torch.serialization`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb

__all__ = ["FILE_LIKE", "MAP_LOCATION"]

MAP_LOCATION = Callable[[Any, str], Any] | fb.device | str | dict[str, str] | None
FILE_LIKE = Any
