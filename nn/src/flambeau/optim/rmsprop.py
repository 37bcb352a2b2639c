"""RMSprop."""

from __future__ import annotations

from typing import Any, ClassVar

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import ElementwiseOptimizer, State, scalar_state
from flambeau.optim._options import check_at_least_zero, check_learning_rate, plain
from flambeau.optim.optimizer import ParamsT

__all__ = ["RMSprop"]


class RMSprop(ElementwiseOptimizer):
    """Steps divided by the running root mean square of the gradient (Hinton, 2012, lecture 6).

    v ← αv + (1 - α)g²;  d = g / (√v + ε);  p ← p - lr · d.
    With `centered`, v - ḡ² takes the place of v, where ḡ is the running mean of the gradient
    (Graves, 2013).  With momentum μ, b ← μb + d and p ← p - lr · b.

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        alpha: decay rate α of the running means.
        eps: ε, added to the root.
        weight_decay: multiple of p that is added to its gradient.
        momentum: momentum factor μ.
        centered: divide by the running standard deviation.
        capturable: keep the step count on the device of the parameter.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.
        differentiable: record the step itself for autograd.

    Raises:
        ValueError: a negative option.

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.RMSprop([weight], lr=0.5, alpha=0.0)
    >>> weight.grad = fb.tensor([3.0])
    >>> optimizer.step()
    >>> weight
    tensor([0.5000], requires_grad=True)
    """

    _later_options: ClassVar[dict[str, Any]] = {
        "momentum": 0,
        "centered": False,
        **ElementwiseOptimizer._later_options,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_at_least_zero("epsilon value", eps)
        check_at_least_zero("momentum value", momentum)
        check_at_least_zero("weight_decay value", weight_decay)
        check_at_least_zero("alpha value", alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        state["step"] = scalar_state(0.0, group, param)
        state["square_avg"] = fb.zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = fb.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = fb.zeros_like(param)

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return (
            "square_avg",
            "grad_avg" if group["centered"] else None,
            "momentum_buffer" if group["momentum"] > 0 else None,
            "step",
        )

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.rmsprop_step_(
            *lists,
            plain(group["lr"], group["differentiable"]),
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
            group["centered"],
            group["maximize"],
        )
