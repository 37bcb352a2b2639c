"""flambeau: the PyTorch programming model as a plugin framework.

``import flambeau as torch`` runs a PyTorch program; what executes it is whichever backend packages
are
installed.  Importing this package imports no array library and looks for no plugin: both happen
when a
device is first used.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

__path__ = pkgutil.extend_path(__path__, __name__)  # flambeau.nn ships in flambeau-nn
__version__ = "0.1.0"

from flambeau import _bound, _tensor, _tensor_methods, ops
from flambeau._api import *  # noqa: F403 - the public names; listed in that module
from flambeau._api import __all__ as _names
from flambeau.autograd import engine as _engine
from flambeau.plugin.host import host as _host

if TYPE_CHECKING:
    from flambeau import autograd as autograd
    from flambeau import nn as nn
    from flambeau import optim as optim
    from flambeau import random as random
    from flambeau import return_types as return_types
    from flambeau import testing as testing
    from flambeau import utils as utils

__all__ = [*_names, "autograd", "nn", "ops", "optim", "random", "return_types", "testing", "utils"]

_tensor_methods.link()
_engine.link()
importlib.import_module("flambeau.ops._steps")
_host.op_table = lambda: ops.OPS
_host.register_builtin("meta", "flambeau._meta")
_host.register_builtin("ref", "flambeau.testing.reference.plugin")
_host.subscribe(_bound.forget)
_tensor.Tensor.layout = strided  # noqa: F405

_SUBMODULES = frozenset({"autograd", "cpu", "plugin", "random", "return_types", "testing", "utils"})
_PARTS = {"nn": "flambeau-nn", "optim": "flambeau-nn"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _PARTS:
        return _import_part(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _import_part(name: str) -> Any:
    path = f"{__name__}.{name}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        raise ModuleNotFoundError(
            f"{path} is in the {_PARTS[name]} package: pip install {_PARTS[name]}", name=path
        ) from None
