"""Adamax."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import ElementwiseOptimizer, State, scalar_state
from flambeau.optim._options import (
    check_at_least_zero,
    check_betas,
    check_learning_rate,
    plain,
)
from flambeau.optim.optimizer import ParamsT

__all__ = ["Adamax"]


class Adamax(ElementwiseOptimizer):
    """Adam with the largest recent gradient in place of the root mean square (Kingma & Ba, 2015).

    m ← β₁m + (1 - β₁)g;  u ← max(β₂u, |g| + ε);  p ← p - lr/(1 - β₁ᵗ) · m / u.

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        betas: decay rates β₁ of the mean and β₂ of the maximum.
        eps: ε, added to the size of each gradient.
        weight_decay: multiple of p that is added to its gradient.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.
        differentiable: record the step itself for autograd.
        capturable: keep the step count on the device of the parameter.

    Raises:
        ValueError: a negative `lr`, `eps` or `weight_decay`, or a beta outside [0, 1).

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.Adamax([weight], lr=0.5)
    >>> weight.grad = fb.tensor([-3.0])
    >>> optimizer.step()
    >>> weight
    tensor([1.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_at_least_zero("epsilon value", eps)
        check_betas(betas)
        check_at_least_zero("weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        state["step"] = scalar_state(0.0, group, param)
        state["exp_avg"] = fb.zeros_like(param)
        state["exp_inf"] = fb.zeros_like(param)

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "exp_avg", "exp_inf", "step"

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.adamax_step_(
            *lists,
            plain(group["lr"], group["differentiable"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )
