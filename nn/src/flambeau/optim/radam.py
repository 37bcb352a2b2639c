"""RAdam."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import ElementwiseOptimizer, State, scalar_state
from flambeau.optim._options import (
    check_at_least_zero,
    check_betas,
    check_learning_rate,
    number,
)
from flambeau.optim.optimizer import ParamsT

__all__ = ["RAdam"]


class RAdam(ElementwiseOptimizer):
    """Adam whose adaptive part fades in as its estimate becomes reliable (Liu et al., 2020).

    m and v as in `Adam`.  With ρ∞ = 2/(1 - β₂) - 1 and ρ = ρ∞ - 2tβ₂ᵗ/(1 - β₂ᵗ), the length of the
    average behind v: while ρ ≤ 5, p ← p - lr · m̂; later p ← p - lr · r · m̂ / √v̂, where
    r² = (ρ - 4)(ρ - 2)ρ∞ / ((ρ∞ - 4)(ρ∞ - 2)ρ) and √v̂ = (√v + ε) / √(1 - β₂ᵗ).

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        betas: decay rates β₁, β₂ of the moment estimates.
        eps: ε, added to the root of the second moment.
        weight_decay: multiple of p that is added to its gradient.
        decoupled_weight_decay: shrink p by lr · weight_decay instead, as in AdamW.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.
        capturable: keep the step count on the device of the parameter.
        differentiable: record the step itself for autograd.

    Raises:
        ValueError: a negative option, or a beta outside [0, 1).

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.RAdam([weight], lr=0.25)
    >>> weight.grad = fb.tensor([2.0])
    >>> optimizer.step()
    >>> weight
    tensor([0.5000], requires_grad=True)
    """

    _later_options: ClassVar[dict[str, Any]] = {
        "decoupled_weight_decay": False,
        **ElementwiseOptimizer._later_options,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        state["step"] = scalar_state(0.0, group, param)
        state["exp_avg"] = fb.zeros_like(param)
        state["exp_avg_sq"] = fb.zeros_like(param)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: dict[str, Any]) -> None:
        step = state["step"].item()
        beta1, beta2 = group["betas"]
        exp_avg = state["exp_avg"].lerp_(grad, 1 - beta1)
        exp_avg_sq = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)

        step_size = number(group["lr"]) / (1 - beta1**step)
        correction = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction
        if length <= 5.0:
            param.add_(exp_avg, alpha=-step_size)
            return
        rectification = ((length - 4) * (length - 2) * longest) / (
            (longest - 4) * (longest - 2) * length
        )
        denominator = exp_avg_sq.sqrt().add(group["eps"])
        param.addcdiv_(
            exp_avg, denominator, value=-step_size * math.sqrt(rectification * correction)
        )
