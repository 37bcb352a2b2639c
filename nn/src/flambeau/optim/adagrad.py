"""Adagrad."""

from __future__ import annotations

from typing import Any, ClassVar

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import ElementwiseOptimizer, State, scalar_state
from flambeau.optim._options import (
    check_at_least_zero,
    check_flags,
    check_fused,
    check_learning_rate,
    number,
    plain,
)
from flambeau.optim.optimizer import ParamsT

__all__ = ["Adagrad"]


class Adagrad(ElementwiseOptimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi et al., 2011).

    s ← s + g²;  p ← p - lr/(1 + (t - 1)·lr_decay) · g / (√s + ε), in step t = 1, 2, …

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        lr_decay: how fast the learning rate falls with the number of steps.
        weight_decay: multiple of p that is added to its gradient.
        initial_accumulator_value: s before the first step.
        eps: ε, added to the root.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.
        differentiable: record the step itself for autograd.
        fused: require what a fused kernel requires, floating-point parameters.

    Raises:
        ValueError: a negative option.
        RuntimeError: `fused` together with `differentiable` or `foreach`.

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.Adagrad([weight], lr=0.5)
    >>> weight.grad = fb.tensor([3.0])
    >>> optimizer.step()
    >>> weight
    tensor([0.5000], requires_grad=True)
    """

    _later_options: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        check_at_least_zero("lr_decay value", lr_decay)
        check_at_least_zero("weight_decay value", weight_decay)
        check_at_least_zero("initial_accumulator_value value", initial_accumulator_value)
        check_at_least_zero("epsilon value", eps)
        check_flags(foreach, differentiable, fused)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        # The sums exist from the beginning, so that processes can share them before they train.
        for group in self.param_groups:
            for param in group["params"]:
                self._start(self.state[param], group, param)

    def share_memory(self) -> None:
        """Move the sums into shared memory, where other processes add to them too."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        if group["fused"]:
            check_fused(param)
        state["step"] = scalar_state(0.0, group, param)
        start = self.defaults["initial_accumulator_value"]
        state["sum"] = fb.full_like(param, complex(start, start) if param.is_complex() else start)

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "sum", "step"

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        fb.ops.adagrad_step_(
            *lists,
            plain(group["lr"], group["differentiable"]),
            group["lr_decay"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )

    def _step_sparse(self, param: Tensor, grad: Any, group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state = self.state[param]
        state["step"].add_(1)
        grad = (-grad if group["maximize"] else grad).coalesce()
        where, values = tuple(grad.indices().unbind(0)), grad.values()
        if not values.numel():
            return
        state["sum"].index_put_(where, values * values, accumulate=True)
        deviation = state["sum"][where].sqrt_().add_(group["eps"])
        decay = 1 + (state["step"].item() - 1) * group["lr_decay"]
        update = (values / deviation).mul_(-number(group["lr"]) / decay)
        param.index_put_(where, update, accumulate=True)
