"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._options import (
    check_flags,
    check_fused,
    check_one_element,
    number,
    per_device,
    plain,
)
from flambeau.optim._steps import GroupOptimizer
from flambeau.optim.optimizer import ParamsT

__all__ = ["SGD"]


class SGD(GroupOptimizer):
    """Stochastic gradient descent, with momentum if asked for.

    With d = grad + weight_decay·p:  b ← momentum·b + (1 - dampening)·d, where the first b is d;
    p ← p - lr·b, or p - lr·(d + momentum·b) with Nesterov momentum.  The learning rate multiplies
    the whole velocity, not the gradient as it enters (Sutskever et al., 2013, do the latter).

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        momentum: momentum factor.
        dampening: share of each gradient that the momentum leaves out, from the second step on.
        weight_decay: multiple of p that is added to its gradient.
        nesterov: look ahead along the momentum; needs `momentum` and no `dampening`.
        maximize: climb the gradient instead of descending.
        foreach: accepted; every step is already one multi-tensor operation.
        differentiable: record the step itself for autograd.
        fused: require what the fused kernel requires, floating-point parameters.

    Raises:
        ValueError: a negative `lr`, `momentum` or `weight_decay`; Nesterov without momentum.
        RuntimeError: `fused` together with `differentiable` or `foreach`.

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.SGD([weight], lr=0.25, momentum=0.5)
    >>> for _ in range(2):
    ...     weight.grad = fb.tensor([1.0])
    ...     optimizer.step()
    >>> weight.item()
    0.375
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_one_element("lr", lr)
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_flags(foreach, differentiable, fused)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("nesterov", "maximize", "differentiable", "fused"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)

    def _step_group(self, group: dict[str, Any]) -> None:
        params: list[Tensor] = []
        grads: list[Tensor] = []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                self._step_sparse(param, grad, group)
            else:
                params.append(param)
                grads.append(grad)
        if group["fused"]:
            for param in params:
                check_fused(param)
        if not group["momentum"]:
            self._step_params(group, params, grads, [], 0)
            return

        started: tuple[list[Tensor], ...] = ([], [], [])
        fresh: tuple[list[Tensor], ...] = ([], [], [])
        for param, grad in zip(params, grads, strict=True):
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            known = buffer is not None or not group["dampening"]
            if buffer is None:
                buffer = state["momentum_buffer"] = fb.zeros_like(param)
            lists = started if known else fresh
            for values, value in zip(lists, (param, grad, buffer), strict=True):
                values.append(value)
        self._step_params(group, *fresh, 0)  # the first gradient enters the momentum undamped
        self._step_params(group, *started, group["dampening"])

    def _step_sparse(self, param: Tensor, grad: Any, group: dict[str, Any]) -> None:
        # Only stored rows change; the momentum is a sparse tensor too.
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])  # refused: the sum would be dense
        if momentum := group["momentum"]:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = grad.detach().clone()
            else:
                buffer = (buffer * momentum).add(grad, alpha=1 - group["dampening"])
            state["momentum_buffer"] = buffer
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        where = tuple(grad._indices().unbind(0))
        param.index_put_(where, grad._values() * -number(group["lr"]), accumulate=True)

    def _step_params(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        buffers: list[Tensor],
        dampening: float,
    ) -> None:
        for lists in per_device(params, grads, buffers):
            fb.ops.sgd_step_(
                *lists,
                plain(group["lr"], group["differentiable"]),
                group["momentum"],
                dampening,
                plain(group["weight_decay"], group["differentiable"]),
                group["nesterov"],
                group["maximize"],
            )
