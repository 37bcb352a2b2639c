"""Neural networks: modules, parameters, losses, initial weights and functions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from flambeau.absence import tell as _tell
from flambeau.nn import functional, grad, init, modules, parallel, utils
from flambeau.nn.modules import *  # noqa: F403 - the list stands there
from flambeau.nn.parallel import DataParallel
from flambeau.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

if TYPE_CHECKING:
    from types import ModuleType

    from flambeau.nn import attention as attention

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "utils",
]
__all__ += modules.__all__

if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        if name == "attention":  # few programs choose kernels
            return importlib.import_module("flambeau.nn.attention")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_tell(__name__)
