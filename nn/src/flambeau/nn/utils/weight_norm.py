"""A weight as direction and length, by a hook before forward (Salimans & Kingma, 2016)."""

from __future__ import annotations

import warnings
from typing import TypeVar

from flambeau import Tensor
from flambeau.nn.functional._arguments import whole_number
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.overrides import takes_as_annotated

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def length_except(v: Tensor, dim: int) -> Tensor:
    """‖v‖₂ over all dimensions but `dim`, which keeps its size; over all of them for -1."""
    dim = whole_number(dim, "weight_norm", "dim")
    dims = [d for d in range(v.dim()) if d != dim]
    if dim < 0:
        return v.norm(2)
    return v.norm(2, dims, True) if dims else v.abs()


class WeightNorm:
    """The hook: sets ``name`` to g·v/‖v‖ from ``name_g`` and ``name_v`` before each forward."""

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """g·v/‖v‖ from the module's parameters."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / length_except(v, self.dim))

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self.name, self.compute_weight(module))


@takes_as_annotated
def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Split the parameter `name` into its length ``name_g`` and direction ``name_v``.

    The length is taken over all dimensions but `dim`, over all of them if `dim` is None.
    `parametrizations.weight_norm` is the newer form.

    Raises:
        RuntimeError: the parameter is split already.
        ValueError: the attribute of this name is no parameter.

    >>> import warnings
    >>> import flambeau as fb
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = fb.nn.utils.weight_norm(fb.nn.Linear(20, 40))
    >>> layer.weight_g.shape, layer.weight_v.shape
    (torch.Size([40, 1]), torch.Size([40, 20]))
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    if module._parameters.pop(name, None) is None:
        raise ValueError(f"weight_norm: {name!r} is no parameter of {type(module).__name__}")
    length = length_except(weight, hook.dim).detach()
    module.register_parameter(name + "_g", Parameter(length))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


@takes_as_annotated
def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo `weight_norm`: the parameter `name` is one again, with its present value.

    Raises:
        ValueError: the parameter is not split.

    >>> import warnings
    >>> import flambeau as fb
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = fb.nn.utils.weight_norm(fb.nn.Linear(20, 40))
    >>> sorted(fb.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module).detach()
            delattr(module, name)
            del module._parameters[name + "_g"]
            del module._parameters[name + "_v"]
            module.register_parameter(name, Parameter(weight))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
