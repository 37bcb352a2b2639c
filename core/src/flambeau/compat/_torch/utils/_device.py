"""Functions whose new tensors are made on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.compat._torch.utils._contextlib import context_decorator

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike


__all__ = ["DeviceContext", "device_decorator", "set_device"]


class DeviceContext:
    """A block whose new tensors are made on a device."""

    def __init__(self, device: DeviceLike) -> None:
        self.device = fb.device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.device.__exit__(*exc)


def device_decorator(device: DeviceLike, func: Callable[..., Any]) -> Any:
    """The function, which makes its tensors on a device."""
    return context_decorator(lambda: DeviceContext(device), func)


def set_device(device: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: the function makes its tensors on a device."""
    return lambda func: device_decorator(fb.device(device), func)
