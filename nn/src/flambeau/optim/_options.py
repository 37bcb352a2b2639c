"""Options that several optimisers take: their checks, and the forms in which a step needs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flambeau as fb
from flambeau import Tensor


def check_flags(foreach: bool | None, differentiable: bool, fused: bool | None) -> None:
    """Raise RuntimeError where `fused` meets a flag that it excludes."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_one_element(name: str, value: float | Tensor) -> None:
    """Raise ValueError where the option `name` is a tensor of several elements."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor {name} must be 1-element")


def check_at_least_zero(label: str, value: float | Tensor) -> None:
    """Raise ValueError where `value`, called `label` in the error, is negative or NaN."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {label}: {value}")


def check_learning_rate(lr: float | Tensor) -> None:
    """Raise ValueError where `lr` is negative, NaN, or a tensor of several elements."""
    check_one_element("lr", lr)
    check_at_least_zero("learning rate", lr)


def check_betas(betas: tuple[float, float]) -> None:
    """Raise ValueError where a decay rate is outside [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def entry(state: object, name: str, what: str) -> Any:
    """The entry `name` of a saved state, which errors call `what`.

    Raises:
        TypeError: it is no dict.
        KeyError: it has no such entry.
    """
    if not isinstance(state, dict):
        raise TypeError(f"{what} must be a dict, not {type(state).__name__}")
    if name not in state:
        raise KeyError(f"{what} has no entry {name!r}")
    return state[name]


def check_fused(param: Tensor) -> None:
    """Raise RuntimeError where `param` cannot take a fused step."""
    if not param.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors, "
            f"but got {param.dtype} on {param.device.type}"
        )


def typename(value: object) -> str:
    """The name of a type in errors: ``torch.FloatTensor`` for a tensor, else that of the class."""
    if isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def plain(value: float | Tensor, differentiable: bool) -> float | Tensor:
    """An option as a number; in a differentiable step a tensor stays one, 0-d."""
    if not isinstance(value, Tensor):
        return value
    return value.squeeze() if differentiable else value.item()


def number(value: float | Tensor) -> float:
    """An option as a number, where a step is not differentiable with respect to it."""
    return value.item() if isinstance(value, Tensor) else value


def scalar_dtype(fused: bool | None) -> fb.dtype:
    """The dtype of step counts: float32, or float64 where that is the default without `fused`."""
    double = fb.get_default_dtype() is fb.float64 and not fused
    return fb.float64 if double else fb.float32


def per_device(params: list[Tensor], *lists: list[Tensor]) -> Iterator[tuple[list[Tensor], ...]]:
    """The lists split by the device of the parameter; a list that is empty stays empty."""
    if not params:
        return
    device = params[0].device
    if all(param.device is device or param.device == device for param in params):
        yield params, *lists
        return
    for device in dict.fromkeys(param.device for param in params):
        here = [i for i, param in enumerate(params) if param.device == device]
        yield tuple([values[i] for i in here] if values else [] for values in (params, *lists))
