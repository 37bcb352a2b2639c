"""Layers that devices compute in one call where they stand side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn._call import watched
from flambeau.nn.module import Module
from flambeau.nn.modules.activation import GELU, ReLU
from flambeau.nn.modules.linear import Linear
from flambeau.overrides import has_torch_function

_FUNCTIONS: dict[Any, str] = {F.relu: "relu", fb.relu: "relu"}
_MODULES = {ReLU: lambda m: "relu", GELU: lambda m: "gelu_tanh" if m.approximate == "tanh" else ""}
_FORWARD = {kind: kind.forward for kind in (Linear, *_MODULES)}
_CALL = Module.__call__
_TOGETHER = fb.ops.linear_activation
ACTIVATIONS = frozenset(_MODULES)
"""The layers that may be one with a `Linear` before them."""


def together(input: object) -> bool:
    """Whether the device of a tensor has one call for a layer and its activation."""
    return isinstance(input, Tensor) and _TOGETHER.chooser(input) is not None


def activated(linear: Module, activation: Callable[[Tensor], Tensor], input: Tensor) -> Tensor:
    """``activation(linear(input))``, in one call where the device has one for both.

    The two are called as ever if anybody could tell the difference: hooks, other classes, another
    ``forward``, tensors whose class sees calls.
    """
    if not together(input) or type(linear) is not Linear or not (name := _name(activation)):
        return activation(linear(input))
    weight, bias = linear._parameters.get("weight"), linear._parameters.get("bias")
    if weight is None:
        return activation(linear(input))
    saves = fb.is_grad_enabled() and (
        weight.requires_grad or input.requires_grad or (bias is not None and bias.requires_grad)
    )
    kind: Any = type(activation)
    # What says no most often, to small layers, is asked first: the rest takes longer than these.
    # The gradient keeps the input, which is for nobody where the weight is frozen.
    if (
        _TOGETHER.taken(input, weight, bias, name, saves)
        and (weight.requires_grad or not saves)
        and _unchanged(linear, Linear)
        and (kind not in _MODULES or _unchanged(activation, kind))
        and not has_torch_function((input, weight, bias))
    ):
        return _TOGETHER(input, weight, bias, name, saves)[0]
    return activation(linear(input))


def _name(activation: object) -> str:
    """What the op calls an activation; "" for others."""
    if (name := _MODULES.get(type(activation))) is not None:
        return name(activation)
    try:
        return _FUNCTIONS.get(activation, "")
    except TypeError:  # not hashable
        return ""


def _unchanged(module: object, kind: type[Module]) -> bool:
    """Whether a call of `module` is the forward of `kind` and nothing else."""
    return (
        type(module) is kind
        and kind.forward is _FORWARD[kind]
        and kind.__call__ is _CALL
        and "forward" not in module.__dict__
        and not watched(module)
    )
