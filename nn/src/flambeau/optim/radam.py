"""RAdam."""

from __future__ import annotations

from typing import Any, ClassVar

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

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "exp_avg", "exp_avg_sq", "step"

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.radam_step_(
            *lists,
            plain(group["lr"], group["differentiable"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
        )
