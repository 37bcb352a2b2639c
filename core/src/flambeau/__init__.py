"""flambeau: the PyTorch programming model as a plugin framework.

``import flambeau as torch`` runs a PyTorch program; what executes it is whichever backend packages
are installed.  Importing this package imports no array library and looks for no plugin: both happen
when a device is first used.
"""

# ruff: noqa: F405 - submodules are loaded when one is asked for; checkers read __init__.pyi

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

__path__ = pkgutil.extend_path(__path__, __name__)  # flambeau.nn ships in flambeau-nn
__version__ = "0.1.0"

from flambeau import ops
from flambeau._api.names import *  # noqa: F403 - the public names; listed in that module
from flambeau._api.names import __all__ as _names
from flambeau._api.names import (
    _dirichlet_grad as _dirichlet_grad,
)
from flambeau._api.names import (
    _pack_padded_sequence as _pack_padded_sequence,
)
from flambeau._api.names import (
    _pad_packed_sequence as _pad_packed_sequence,
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
from flambeau._storages import typed as _typed
from flambeau._tensor import methods as _tensor_methods
from flambeau._tensor import tensor as _tensor
from flambeau.absence import Imports as _Imports
from flambeau.absence import tell as _tell
from flambeau.plugin.host import host as _host
from flambeau.plugin.remedies import install_command as _install_command

__all__ = [*_names, "autograd", "fft", "linalg", "nn", "ops", "optim", "random", "return_types"]
__all__ += ["Storage", "signal", "sparse", "special", "testing", "utils"]

_tensor_methods.link()
_engine.link()
importlib.import_module("flambeau.ops.optimisers.optimizer_steps")
importlib.import_module("flambeau.ops.special_functions.log_tails")
importlib.import_module("flambeau.ops.special_functions.normal_distribution")
_host.op_table = lambda: ops.OPS
# The version comes along, for asking the installation would take 20 ms at every import.
_host.register_builtin("meta", "flambeau._dispatch.meta", __version__)
_host.register_builtin("ref", "flambeau.testing.reference.plugin", __version__)
_host.subscribe(_bound.forget)

_SUBMODULES = frozenset(
    """__future__ accelerator amp array_api autograd backends compat cpu cuda distributed
    distributions fft func futures hub jit linalg multiprocessing overrides plans plugin profiler
    quasirandom random return_types serialization signal sparse special testing utils
    version""".split()
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
    "jit": frozenset({"wait"}),
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
    if name == "Storage":
        return _typed.default_class()
    if name in _PARTS:
        return _import_part(name)
    if not name.startswith("_") and name != "meta" and name in _host.device_types():
        return importlib.import_module(f"{__name__}.accelerator").namespace(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    lazy = [name for names in _NAMES.values() for name in names]
    own = [name for name in globals() if name.startswith("_")]
    return sorted({*own, *__all__, *_SUBMODULES, *_PARTS, *lazy})


def _import_part(name: str) -> Any:
    path = f"{__name__}.{name}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        raise ModuleNotFoundError(
            f"{path} is in the {_PARTS[name]} package: {_install_command(_PARTS[name])}", name=path
        ) from None


_tell(__name__)
_Imports.install()
