"""Neural networks: modules, parameters, losses, initial weights and functions."""

from flambeau.nn import functional, grad, init, modules, parallel, utils
from flambeau.nn.modules import *  # noqa: F403 - the list stands there
from flambeau.nn.parallel import DataParallel
from flambeau.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "utils",
]
__all__ += modules.__all__
