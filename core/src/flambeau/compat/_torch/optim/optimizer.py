"""What optimisers of libraries take from the file of PyTorch's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.dispatch import PLAIN
from flambeau.compat._torch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

__all__ = [
    "_capturable_doc",
    "_default_to_fused_or_foreach",
    "_device_dtype_check_for_fused",
    "_differentiable_doc",
    "_disable_dynamo_if_unsupported",
    "_foreach_doc",
    "_foreach_supported_types",
    "_fused_doc",
    "_get_capturable_supported_devices",
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_get_scalar_dtype",
    "_get_value",
    "_group_tensors_by_device_and_dtype",
    "_maximize_doc",
    "_params_doc",
    "_stack_if_compiling",
    "_to_scalar",
    "_use_grad_for_differentiable",
    "_view_as_real",
]

_foreach_supported_types = list(PLAIN)

_params_doc = "params (iterable): the parameters, groups of them, or pairs with names"
_foreach_doc = "foreach (bool, optional): steps of all parameters at once"
_fused_doc = "fused (bool, optional): one kernel for a step"
_capturable_doc = "capturable (bool, optional): whether a step can be part of a graph of a device"
_differentiable_doc = "differentiable (bool, optional): whether gradients go through a step"
_maximize_doc = "maximize (bool, optional): go up, not down"


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step that records a graph only if the optimiser's setting ``differentiable`` is true."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: object) -> Any:
        with fb.set_grad_enabled(args[0].defaults["differentiable"]):
            return func(*args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn: object = None) -> Callable[..., Any]:
    """A decorator that gives back its function: no compiler looks into it."""
    return lambda function: function


def _get_value(x: Any) -> Any:
    """The number in a tensor; anything else as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """The argument."""
    return x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions; numbers as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put views as pairs of numbers in the place of complex tensors, in all the lists."""
    for place, parameter in enumerate(params):
        if fb.is_complex(parameter):
            for each in (params, *state_and_grads):
                each[place] = fb.view_as_real(each[place])


def _get_scalar_dtype(is_fused: bool | None = None) -> fb.dtype:
    """The dtype of counts of steps."""
    double = not is_fused and fb.get_default_dtype() == fb.float64
    return fb.float64 if double else fb.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Types of devices whose steps could be part of a graph."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Refuse parameters that one kernel could not step.

    Raises:
        RuntimeError: a parameter is no floating-point tensor, or on another device.
    """
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if not (p.device.type in devices and fb.is_floating_point(p)):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported "
            f"devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _default_to_fused_or_foreach(
    params: Sequence[Tensor | None], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether one kernel can step the parameters, and else whether all can be stepped at once."""
    if differentiable:
        return False, False
    there = [each for each in params if each is not None]
    plain = all(type(each) in _foreach_supported_types for each in there)
    fused_devices = _get_fused_kernels_supported_devices()
    fused = (
        use_fused
        and plain
        and all(each.device.type in fused_devices and each.is_floating_point() for each in there)
    )
    devices = _get_foreach_kernels_supported_devices()
    return fused, not fused and plain and all(each.device.type in devices for each in there)
