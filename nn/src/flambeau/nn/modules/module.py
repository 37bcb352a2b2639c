"""`Module` and the registration of global hooks, under PyTorch's name for this module."""

from flambeau.nn import _global_hooks
from flambeau.nn._global_hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from flambeau.nn._state import EXTRA_STATE_KEY as _EXTRA_STATE_KEY_SUFFIX
from flambeau.nn.module import Module, _IncompatibleKeys

_global_buffer_registration_hooks = _global_hooks.BUFFER_REGISTRATION
_global_module_registration_hooks = _global_hooks.MODULE_REGISTRATION
_global_parameter_registration_hooks = _global_hooks.PARAMETER_REGISTRATION

__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX",
    "Module",
    "_IncompatibleKeys",
    "_global_buffer_registration_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
