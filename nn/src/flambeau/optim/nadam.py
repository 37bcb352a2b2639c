"""NAdam."""

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

__all__ = ["NAdam"]


class NAdam(ElementwiseOptimizer):
    """Adam with Nesterov momentum (Dozat, 2016).

    m ← β₁m + (1 - β₁)g;  v ← β₂v + (1 - β₂)g²;  μₜ = β₁(1 - 0.96^(tψ)/2);  Mₜ = μ₁μ₂⋯μₜ;
    p ← p - lr · [(1 - μₜ)/(1 - Mₜ) · g + μₜ₊₁/(1 - Mₜ₊₁) · m] / (√(v/(1 - β₂ᵗ)) + ε).

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        betas: decay rates β₁, β₂ of the moment estimates.
        eps: ε, added to the root of the second moment.
        weight_decay: multiple of p that is added to its gradient.
        momentum_decay: ψ, how fast μ rises to β₁.
        decoupled_weight_decay: shrink p by lr · weight_decay instead, as in AdamW.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.
        capturable: keep the step count on the device of the parameter.
        differentiable: record the step itself for autograd.

    Raises:
        ValueError: a negative option, or a beta outside [0, 1).

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.NAdam([weight], lr=0.5)
    >>> weight.grad = fb.tensor([0.0])
    >>> optimizer.step()
    >>> weight.item()
    1.0
    """

    _later_options: ClassVar[dict[str, Any]] = {
        "decoupled_weight_decay": False,
        **ElementwiseOptimizer._later_options,
    }
    _scalar_state: ClassVar[tuple[str, ...]] = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_at_least_zero("momentum_decay value", momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        state["step"] = scalar_state(0.0, group, param)
        state["mu_product"] = scalar_state(1.0, group, param)
        state["exp_avg"] = fb.zeros_like(param)
        state["exp_avg_sq"] = fb.zeros_like(param)

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "exp_avg", "exp_avg_sq", "mu_product", "step"

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.nadam_step_(
            *lists,
            plain(group["lr"], group["differentiable"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["momentum_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
        )
