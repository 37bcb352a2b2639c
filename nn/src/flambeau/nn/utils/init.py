"""Modules without initial values."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

import flambeau as fb
from flambeau.nn.module import Module

__all__ = ["skip_init"]

M = TypeVar("M", bound=Module)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """Make a module whose parameters and buffers hold no particular values.

    It is made on device ``meta`` and then given memory on `device` (the CPU unless given), so that
    no random number is drawn.

    Raises:
        RuntimeError: `module_cls` is no module, or takes no argument `device`.

    >>> import flambeau as fb
    >>> fb.nn.utils.skip_init(fb.nn.Linear, 5, 1)
    Linear(in_features=5, out_features=1, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device=fb.device("meta")).to_empty(device=device)
