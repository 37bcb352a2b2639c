"""Neural networks: modules, parameters, losses, initial weights and functions."""

from flambeau.nn import functional, init, modules, utils
from flambeau.nn.modules import *  # noqa: F403 - the list stands there
from flambeau.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "utils"]
__all__ += modules.__all__
