"""Neural networks: modules, parameters, losses, initial weights and functions."""

from flambeau.nn import functional, init, modules, utils
from flambeau.nn.modules import *  # noqa: F403 - the list stands there
from flambeau.nn.modules import __all__ as _modules
from flambeau.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "utils", *_modules]
