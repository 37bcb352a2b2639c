"""Adadelta."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import ElementwiseOptimizer, State, scalar_state
from flambeau.optim._options import check_at_least_zero, check_learning_rate, plain
from flambeau.optim.optimizer import ParamsT

__all__ = ["Adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Steps in the parameter's own units, from running squares of gradient and step (Zeiler, 2012).

    v ← ρv + (1 - ρ)g²;  Δ = g · √(u + ε) / √(v + ε);  u ← ρu + (1 - ρ)Δ²;  p ← p - lr · Δ.

    Args:
        params: parameters, named parameters, or groups of them.
        lr: factor of each step.
        rho: decay rate ρ of the two running means.
        eps: ε, added under both roots.
        weight_decay: multiple of p that is added to its gradient.
        foreach: accepted; it changes no result.
        capturable: keep the step count on the device of the parameter.
        maximize: climb the gradient instead of descending.
        differentiable: record the step itself for autograd.

    Raises:
        ValueError: a negative `lr`, `eps` or `weight_decay`, or `rho` outside [0, 1].

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.Adadelta([weight], lr=0.5, rho=0.0, eps=1.0)
    >>> weight.grad = fb.tensor([0.0])
    >>> optimizer.step()
    >>> weight.item()
    1.0
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero("epsilon value", eps)
        check_at_least_zero("weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        state["step"] = scalar_state(0.0, group, param)
        state["square_avg"] = fb.zeros_like(param)
        state["acc_delta"] = fb.zeros_like(param)

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "square_avg", "acc_delta", "step"

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.adadelta_step_(
            *lists,
            plain(group["lr"], group["differentiable"]),
            group["rho"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )
