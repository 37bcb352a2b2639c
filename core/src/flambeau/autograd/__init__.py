"""Automatic differentiation: passes, custom functions, tools to check and observe."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from flambeau._autograd.anomaly import detect_anomaly, set_detect_anomaly
from flambeau._autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from flambeau.absence import tell as _tell
from flambeau.autograd._passes import backward, grad

if TYPE_CHECKING:
    from flambeau.autograd import forward_ad as forward_ad
    from flambeau.autograd import function as function
    from flambeau.autograd import functional as functional
    from flambeau.autograd import graph as graph
    from flambeau.autograd import profiler as profiler
    from flambeau.autograd import variable as variable
    from flambeau.autograd._gradcheck import GradcheckError as GradcheckError
    from flambeau.autograd._gradcheck import gradcheck as gradcheck
    from flambeau.autograd._gradcheck import gradgradcheck as gradgradcheck
    from flambeau.autograd.function import Function as Function
    from flambeau.autograd.variable import Variable as Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_LAZY = {
    "Function": "function",
    "gradcheck": "_gradcheck",
    "gradgradcheck": "_gradcheck",
    "GradcheckError": "_gradcheck",
    "Variable": "variable",
    "forward_ad": "forward_ad",
    "functional": "functional",
    "graph": "graph",
    "profiler": "profiler",
    "function": "function",
    "variable": "variable",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
        # A function and its module may share a name: the package's attribute is the function.
        value = getattr(module, name, module)
        globals()[name] = value
        return value


_tell(__name__)
