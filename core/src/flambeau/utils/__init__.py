"""Utilities around tensors: `data` loading, `checkpoint`s, `hooks`, exchange by `dlpack`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flambeau.utils import checkpoint as checkpoint
    from flambeau.utils import data as data
    from flambeau.utils import dlpack as dlpack
    from flambeau.utils import hooks as hooks
    from flambeau.utils import model_zoo as model_zoo

__all__ = ["checkpoint", "data", "dlpack", "hooks", "model_zoo"]


def __getattr__(name: str) -> object:
    # Imported on first use: a program that loads no data should not pay for it.
    if name in __all__ or name == "_pytree":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
