"""Names of ``torch.utils.checkpoint`` that only programs for PyTorch want."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import flambeau as fb
from flambeau.utils.checkpoint import _Reentrant

__all__ = [
    "CheckpointFunction",
    "DefaultDeviceType",
    "_get_autocast_kwargs",
    "_get_device_module",
    "_infer_device_type",
    "check_backward_validity",
    "detach_variable",
]

CheckpointFunction = _Reentrant


def detach_variable(inputs: object) -> tuple[Any, ...]:
    """Inputs that begin a graph of their own, and want a gradient where the given ones do.

    Raises:
        RuntimeError: `inputs` is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, fb.Tensor) else x
        for x in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no tensor among the inputs wants a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, fb.Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class DefaultDeviceType:
    """The type of devices whose random numbers a checkpoint keeps where its inputs name none."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What was chosen; else the accelerator's, or the CPU's."""
        if DefaultDeviceType._default_device_type:
            return DefaultDeviceType._default_device_type
        accelerator = fb.accelerator.current_accelerator(True)
        return "cpu" if accelerator is None else accelerator.type


def _infer_device_type(*args: object) -> str:
    """The type of the devices, other than CPUs, that tensors in nested containers live on."""
    found: list[str] = []

    def note(x: Any) -> Any:
        if isinstance(x, fb.Tensor) and x.device.type != "cpu":
            found.append(x.device.type)
        return x

    fb.utils._pytree.tree_map(note, args)
    if len(set(found)) > 1:
        warnings.warn(
            f"Tensors are on devices of several types, {sorted(set(found))}; random numbers are "
            "kept for one of them",
            stacklevel=2,
        )
    if not found:
        return DefaultDeviceType.get_device_type()
    return "cuda" if "cuda" in found else found[0]


def _get_device_module(device: str = "cuda") -> Any:
    """The module of a type of devices."""
    return fb.device("meta") if device == "meta" else getattr(fb, device)


def _get_autocast_kwargs(device_type: str = "cuda") -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The settings of `autocast` for a type of devices, if it has them, and for CPUs."""

    def settings(kind: str) -> dict[str, Any]:
        return {
            "enabled": fb.is_autocast_enabled(kind),
            "dtype": fb.get_autocast_dtype(kind),
            "cache_enabled": fb.is_autocast_cache_enabled(),
        }

    there = fb.amp.is_autocast_available(device_type)
    return settings(device_type) if there else None, settings("cpu")
