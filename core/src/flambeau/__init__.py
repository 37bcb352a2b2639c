"""flambeau: the PyTorch programming model as a plugin framework.

``import flambeau as torch`` runs a PyTorch program; what executes it is whichever backend packages
are installed.  Importing this package imports no array library and looks for no plugin: both happen
when a device is first used.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

__path__ = pkgutil.extend_path(__path__, __name__)  # flambeau.nn ships in flambeau-nn
__version__ = "0.1.0"

from flambeau import ops
from flambeau._api.names import *  # noqa: F403 - the public names; listed in that module
from flambeau._api.names import __all__ as _names
from flambeau._api.names import (
    _dirichlet_grad as _dirichlet_grad,
)
from flambeau._api.names import (
    _sample_dirichlet as _sample_dirichlet,
)
from flambeau._api.names import (
    _standard_gamma as _standard_gamma,
)
from flambeau._api.names import (
    _standard_gamma_grad as _standard_gamma_grad,
)
from flambeau._autograd import engine as _engine
from flambeau._dispatch import bound as _bound
from flambeau._tensor import methods as _tensor_methods
from flambeau._tensor import tensor as _tensor
from flambeau.plugin.host import host as _host

if TYPE_CHECKING:
    from flambeau import accelerator as accelerator
    from flambeau import amp as amp
    from flambeau import autograd as autograd
    from flambeau import backends as backends
    from flambeau import compat as compat
    from flambeau import cpu as cpu
    from flambeau import cuda as cuda
    from flambeau import distributed as distributed
    from flambeau import distributions as distributions
    from flambeau import fft as fft
    from flambeau import func as func
    from flambeau import futures as futures
    from flambeau import fx as fx
    from flambeau import hub as hub
    from flambeau import jit as jit
    from flambeau import linalg as linalg
    from flambeau import nn as nn
    from flambeau import onnx as onnx
    from flambeau import optim as optim
    from flambeau import overrides as overrides
    from flambeau import plans as plans
    from flambeau import profiler as profiler
    from flambeau import quasirandom as quasirandom
    from flambeau import random as random
    from flambeau import return_types as return_types
    from flambeau import serialization as serialization
    from flambeau import signal as signal
    from flambeau import sparse as sparse
    from flambeau import special as special
    from flambeau import testing as testing
    from flambeau import utils as utils
    from flambeau.amp._setting import autocast_decrement_nesting as autocast_decrement_nesting
    from flambeau.amp._setting import autocast_increment_nesting as autocast_increment_nesting
    from flambeau.amp._setting import clear_autocast_cache as clear_autocast_cache
    from flambeau.amp._setting import get_autocast_cpu_dtype as get_autocast_cpu_dtype
    from flambeau.amp._setting import get_autocast_dtype as get_autocast_dtype
    from flambeau.amp._setting import get_autocast_gpu_dtype as get_autocast_gpu_dtype
    from flambeau.amp._setting import is_autocast_cache_enabled as is_autocast_cache_enabled
    from flambeau.amp._setting import is_autocast_cpu_enabled as is_autocast_cpu_enabled
    from flambeau.amp._setting import is_autocast_enabled as is_autocast_enabled
    from flambeau.amp._setting import set_autocast_cache_enabled as set_autocast_cache_enabled
    from flambeau.amp._setting import set_autocast_cpu_dtype as set_autocast_cpu_dtype
    from flambeau.amp._setting import set_autocast_cpu_enabled as set_autocast_cpu_enabled
    from flambeau.amp._setting import set_autocast_dtype as set_autocast_dtype
    from flambeau.amp._setting import set_autocast_enabled as set_autocast_enabled
    from flambeau.amp._setting import set_autocast_gpu_dtype as set_autocast_gpu_dtype
    from flambeau.amp.autocast_mode import autocast as autocast
    from flambeau.amp.grad_scaler import GradScaler as GradScaler
    from flambeau.func import vmap as vmap
    from flambeau.overrides import _assert as _assert
    from flambeau.overrides import _assert_async as _assert_async
    from flambeau.plans import compile as compile
    from flambeau.serialization import load as load
    from flambeau.serialization import save as save

__all__ = [*_names, "autograd", "fft", "linalg", "nn", "ops", "optim", "random", "return_types"]
__all__ += ["signal", "sparse", "special", "testing", "utils"]

_tensor_methods.link()
_engine.link()
importlib.import_module("flambeau.ops.optimisers.optimizer_steps")
importlib.import_module("flambeau.ops.special_functions.log_tails")
_host.op_table = lambda: ops.OPS
# The version comes along, for asking the installation would take 20 ms at every import.
_host.register_builtin("meta", "flambeau._dispatch.meta", __version__)
_host.register_builtin("ref", "flambeau.testing.reference.plugin", __version__)
_host.subscribe(_bound.forget)

_SUBMODULES = frozenset(
    """accelerator amp autograd backends compat cpu cuda distributed distributions fft func
    futures hub jit linalg multiprocessing overrides plans plugin profiler quasirandom random
    return_types serialization signal
    sparse special testing utils version""".split()
)
# Names of modules that are loaded when one is asked for.
_NAMES = {
    "amp": frozenset({"GradScaler", "autocast"}),
    "amp._setting": frozenset(
        """autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled
        is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled
        set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
        set_autocast_gpu_dtype""".split()
    ),
    "func": frozenset({"vmap"}),
    "overrides": frozenset({"_assert", "_assert_async"}),
    "plans": frozenset({"compile"}),
    "serialization": frozenset({"load", "save"}),
}
_PARTS: dict[str, str] = dict.fromkeys(("fx", "nn", "onnx", "optim"), "flambeau-nn")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    for module, names in _NAMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    if name in _PARTS:
        return _import_part(name)
    if not name.startswith("_") and name != "meta" and name in _host.device_types():
        return importlib.import_module(f"{__name__}.accelerator").namespace(name)
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
