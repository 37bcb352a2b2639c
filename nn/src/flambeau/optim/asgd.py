"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import ElementwiseOptimizer, State
from flambeau.optim._options import check_at_least_zero, check_learning_rate, number, scalar_dtype
from flambeau.optim.optimizer import ParamsT

__all__ = ["ASGD"]


class ASGD(ElementwiseOptimizer):
    """Gradient descent that also keeps the average of its parameters (Polyak & Juditsky, 1992).

    p ← (1 - λη)p - ηg;  a ← a + μ(p - a), where after step t
    η = lr / (1 + λ·lr·t)^α and μ = 1 / max(1, t - t₀): until t₀ the average is p itself.
    The average of a parameter is ``optimizer.state[param]["ax"]``.

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate of the first step.
        lambd: λ, decay of the parameters and of the learning rate.
        alpha: α, power of the fall of the learning rate.
        t0: t₀, the step after which the averaging begins.
        weight_decay: multiple of p that is added to its gradient.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.
        differentiable: record the step itself for autograd.
        capturable: accepted; counts and rates are on the device of the parameter in any case.

    Raises:
        ValueError: a negative `lr` or `weight_decay`.

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.ASGD([weight], lr=0.5, lambd=0.0, t0=0)
    >>> for _ in range(2):
    ...     weight.grad = fb.tensor([1.0])
    ...     optimizer.step()
    >>> weight.item(), optimizer.state[weight]["ax"].item()
    (0.0, 0.0)
    """

    _scalar_state: ClassVar[tuple[str, ...]] = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_at_least_zero("weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        def scalar(value: float) -> Tensor:
            return fb.tensor(value, dtype=scalar_dtype(None), device=param.device)

        state["step"] = scalar(0.0)
        state["eta"] = scalar(number(group["lr"]))
        state["mu"] = scalar(1.0)
        state["ax"] = fb.zeros_like(param)

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "ax", "eta", "mu", "step"

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.asgd_step_(
            *lists,
            number(group["lr"]),
            group["lambd"],
            group["alpha"],
            group["t0"],
            group["weight_decay"],
            group["maximize"],
        )
