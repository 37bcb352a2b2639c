"""How modules change the tensors they hold: settings of PyTorch's, which it may have for all later.

By default `Module.to` and its kind give a parameter other ``.data``, and `Module.load_state_dict`
copies into it.  Either of two settings, of the whole process, changes that.

>>> import flambeau as fb
>>> layer = fb.nn.Linear(1, 1)
>>> weight = layer.weight
>>> fb.__future__.set_overwrite_module_params_on_conversion(True)
>>> layer.double().weight is weight, weight.dtype
(False, torch.float32)
>>> fb.__future__.set_overwrite_module_params_on_conversion(False)
"""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite_module_params_on_conversion: bool = False
_swap_module_params_on_conversion: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether a module that is converted gets new parameters, instead of changing its own.

    Optimisers made before keep the old ones then.

    >>> import flambeau as fb
    >>> fb.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` was told last; False at first.

    >>> import flambeau as fb
    >>> fb.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether parameters change places with what they are to become, by `utils.swap_tensors`.

    The objects stay, as by default, but their class, memory and attributes become those of the new
    tensor.  It holds for conversions, where it goes before the other setting, and for
    `Module.load_state_dict`, which asks `Tensor.module_load` what an entry becomes.

    >>> import flambeau as fb
    >>> fb.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` was told last; False at first.

    >>> import flambeau as fb
    >>> fb.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swap_module_params_on_conversion
