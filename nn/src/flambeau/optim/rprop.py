"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import ElementwiseOptimizer, State, scalar_state
from flambeau.optim._options import check_learning_rate, number
from flambeau.optim.optimizer import ParamsT

__all__ = ["Rprop"]


class Rprop(ElementwiseOptimizer):
    """Steps whose size depends on the signs of gradients alone (Riedmiller & Braun, 1993).

    Every element has a step size s.  Where the gradient g has the sign of the last one, s ← η₊s;
    where it changed sign, s ← η₋s and g ← 0; s stays in its bounds.  Then p ← p - s · sign(g).
    It is meant for gradients of the whole data set: noise changes signs.

    Args:
        params: parameters, named parameters, or groups of them.
        lr: the step sizes at first.
        etas: the factors (η₋, η₊).
        step_sizes: the smallest and the largest step size.
        capturable: keep the step count on the device of the parameter.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.
        differentiable: record the step itself for autograd.

    Raises:
        ValueError: a negative `lr`, or `etas` other than 0 < η₋ < 1 < η₊.

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.Rprop([weight], lr=0.25, etas=(0.5, 2.0))
    >>> for gradient in (3.0, 0.1):
    ...     weight.grad = fb.tensor([gradient])
    ...     optimizer.step()
    >>> weight.item()
    0.25
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        state["step"] = scalar_state(0.0, group, param)
        state["prev"] = fb.zeros_like(param)
        size = number(group["lr"])
        state["step_size"] = fb.full_like(
            param, complex(size, size) if param.is_complex() else size
        )

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "prev", "step_size", "step"

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.rprop_step_(*lists, *group["etas"], *group["step_sizes"], group["maximize"])
