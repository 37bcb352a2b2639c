"""Helpers of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape.

    Raises:
        ValueError: something is neither.
    """
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), fb.empty(0))
    made = [v if isinstance(v, Tensor) else like.new_tensor(v, dtype=like.dtype) for v in values]
    return tuple(fb.broadcast_tensors(*made))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the precision of their dtype."""
    eps = fb.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from their logarithms; of binary ones, from the logarithms of their odds."""
    return fb.sigmoid(logits) if is_binary else fb.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`."""
    clamped = clamp_probs(probs)
    return fb.log(clamped) - fb.log1p(-clamped) if is_binary else fb.log(clamped)


class lazy_property:  # noqa: N801 - PyTorch's name
    """A property that is computed once, when it is first read."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with fb.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value
