"""Limiting the gradients of parameters, in place.

The argument `foreach` chooses between two implementations in PyTorch; here there is one.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable

import flambeau as fb
from flambeau import Tensor
from flambeau.overrides import takes_as_annotated

Tensors = Tensor | Iterable[Tensor]


def _as_list(tensors: Tensors) -> list[Tensor]:
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for tensor in found:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"parameters must be Tensors, not {type(tensor).__name__}")
    return found


@takes_as_annotated
@fb.no_grad()
def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of `tensors` together, as if they stood in one vector.

    Raises:
        RuntimeError: `error_if_nonfinite` and the norm is infinite or nan.

    >>> import flambeau as fb
    >>> fb.nn.utils.get_total_norm([fb.tensor([3.0]), fb.tensor([[4.0]])])
    tensor(5.)
    """
    parts = _as_list(tensors)
    norm_type = float(norm_type)
    if not parts:
        return fb.tensor(0.0)
    device = parts[0].device
    norms = [part.norm(norm_type).to(device) for part in parts]
    total = fb.stack(norms).norm(norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the "
            "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@takes_as_annotated
@fb.no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiply the gradients by min(1, `max_norm` / (`total_norm` + 1e-6)).

    >>> import flambeau as fb
    >>> p = fb.ones(1); p.grad = fb.tensor([5.0])
    >>> fb.nn.utils.clip_grads_with_norm_(p, 1.0, fb.tensor(5.0)); p.grad
    tensor([1.0000])
    """
    # Multiplied even by 1: to decide about it would mean to wait for the device.
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for parameter in _as_list(parameters):
        if parameter.grad is not None:
            parameter.grad.mul_(factor.to(parameter.grad.device))


@takes_as_annotated
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their total norm is at most `max_norm`; returns the norm before.

    `norm_type` may be ``float("inf")``, and ``"inf"``.

    Raises:
        RuntimeError: `error_if_nonfinite` and the norm is infinite or nan.

    >>> import flambeau as fb
    >>> p = fb.ones(2); p.grad = fb.tensor([3.0, 4.0])
    >>> fb.nn.utils.clip_grad_norm_(p, 1.0)
    tensor(5.)
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    listed = _as_list(parameters)
    if not listed and isinstance(parameters, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    grads = [parameter.grad for parameter in listed if parameter.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The older name of `clip_grad_norm_`.

    >>> import warnings
    >>> import flambeau as fb
    >>> p = fb.ones(2); p.grad = fb.tensor([3.0, 4.0])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     fb.nn.utils.clip_grad_norm(p, 10.0)
    tensor(5.)
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


@fb.no_grad()
@takes_as_annotated
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients to [-`clip_value`, `clip_value`].

    >>> import flambeau as fb
    >>> p = fb.ones(2); p.grad = fb.tensor([3.0, -0.5])
    >>> fb.nn.utils.clip_grad_value_(p, 1.0); p.grad
    tensor([ 1.0000, -0.5000])
    """
    limit = float(clip_value)
    for parameter in _as_list(parameters):
        if parameter.grad is not None:
            parameter.grad.clamp_(min=-limit, max=limit)
