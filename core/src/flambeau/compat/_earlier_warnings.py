"""What PyTorch 1.2 warned of: bytes in place of bools, which it had just got."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau as fb
from flambeau.compat._earlier import _instead_of


@_instead_of("flambeau:Tensor.masked_fill_", "flambeau:Tensor.masked_scatter_")
def _(method: Callable[..., Any]) -> Callable[..., object]:
    @wraps(method)
    def of_bytes(self: object, mask: Any, *args: object, **kwargs: object) -> object:
        if mask.dtype is fb.uint8:
            warnings.warn(
                f"{method.__name__} received a mask with dtype torch.uint8, this behavior is now "
                "deprecated, please use a mask with dtype torch.bool instead.",
                stacklevel=2,
            )
        return method(self, mask, *args, **kwargs)

    return of_bytes


@_instead_of(*(f"flambeau:{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge")))
def _(function: Callable[..., Any]) -> Callable[..., object]:
    @wraps(function)
    def to_bytes(*args: object, out: Any = None, **kwargs: object) -> object:
        if out is not None and out.dtype is fb.uint8:
            warnings.warn(
                f"torch.{function.__name__} received 'out' parameter with dtype torch.uint8, this "
                "behavior is now deprecated, please use 'out' parameter with dtype torch.bool "
                "instead.",
                stacklevel=2,
            )
        return function(*args, out=out, **kwargs)

    return to_bytes
