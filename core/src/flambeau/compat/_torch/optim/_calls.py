"""What steps of optimisers as functions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor

__all__ = ["counted", "is_wanted", "number", "step"]

Tensors = list[Tensor]


def number(value: Any) -> Any:
    """An option as a number; one that wants a gradient stays a tensor."""
    if not isinstance(value, Tensor):
        return value
    return value.squeeze() if value.requires_grad else value.item()


def counted(steps: Sequence[Any]) -> Tensors:
    if not all(isinstance(step, Tensor) for step in steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    return list(steps)


def is_wanted(
    grads: Tensors, fused: bool | None, scale: Tensor | None, found_inf: Tensor | None
) -> bool:
    """Whether a step is to be taken; a fused one takes gradients of a scaled loss itself."""
    if scale is None and found_inf is None:
        return True
    if not fused:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if scale is not None:
        for grad in grads:
            grad.div_(scale)
    return found_inf is None or not found_inf.item()


def step(op: Callable[..., Any], lists: Sequence[Tensors], *options: Any) -> None:
    """Call an op, for each parameter by itself where they are on several devices."""
    if not lists[0]:
        return
    if any(x.is_complex() for x in lists[0]):
        lists = [[fb.view_as_real(x) if x.is_complex() else x for x in each] for each in lists]
    if len({x.device for x in lists[0]}) == 1:
        op(*lists, *options)
        return
    for place in range(len(lists[0])):
        op(*([each[place]] if each else [] for each in lists), *options)
