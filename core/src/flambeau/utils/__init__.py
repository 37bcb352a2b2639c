"""Utilities around tensors: `data` loading, `checkpoint`s, `hooks`, `dlpack`, drawn graphs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flambeau.nn.utils import summary as summary
    from flambeau.utils import _pytree as _pytree
    from flambeau.utils import checkpoint as checkpoint
    from flambeau.utils import cpp_extension as cpp_extension
    from flambeau.utils import data as data
    from flambeau.utils import dlpack as dlpack
    from flambeau.utils import hooks as hooks
    from flambeau.utils import model_zoo as model_zoo
    from flambeau.utils._graph_plot import plot_graph as plot_graph
    from flambeau.utils._swap import swap_tensors as swap_tensors

__all__ = [
    "checkpoint",
    "cpp_extension",
    "data",
    "dlpack",
    "hooks",
    "model_zoo",
    "plot_graph",
    "summary",
    "swap_tensors",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Imported on first use: a program that loads no data should not pay for it.
        if name == "plot_graph":
            return importlib.import_module(f"{__name__}._graph_plot").plot_graph
        if name == "swap_tensors":
            return importlib.import_module(f"{__name__}._swap").swap_tensors
        if name == "summary":  # by the attribute: without flambeau-nn it says how to get it
            return importlib.import_module("flambeau").nn.utils.summary
        if name in __all__ or name == "_pytree":
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
