"""Adam for gradients that are zero except in some rows."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._options import check_learning_rate, number
from flambeau.optim._steps import ParameterOptimizer
from flambeau.optim.optimizer import ParamsT


class SparseAdam(ParameterOptimizer):
    """Adam whose averages move only where the gradient stores elements.

    For every stored element g, with the step count t of its whole parameter::

        m <- β1·m + (1 - β1)·g
        v <- β2·v + (1 - β2)·g²
        θ <- θ - lr · √(1 - β2ᵗ) / (1 - β1ᵗ) · m / (√v + ε)

    Elsewhere m, v and θ keep their values, where Adam would let the averages decay.

    Args:
        params: parameters, or dictionaries of groups.  They are dense, their gradients sparse.
        lr: learning rate.
        betas: decay rates of the averages of g and g².
        eps: added to the denominator.
        maximize: ascend instead.

    Raises:
        ValueError: an option out of range, or a sparse parameter.
        RuntimeError: at a step, a gradient is dense.

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, applied to the
    elements that have a gradient.

    >>> import flambeau as fb
    >>> table = fb.ones(3, requires_grad=True)
    >>> optimizer = fb.optim.SparseAdam([table], lr=0.25)
    >>> table.grad = fb.sparse_coo_tensor([[1]], [2.0], (3,))
    >>> optimizer.step()
    >>> table
    tensor([1.0000, 0.7500, 1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            [g, i]
            for g, group in enumerate(self.param_groups)
            for i, param in enumerate(group["params"])
            if param.is_sparse
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def _step_param(self, param: Tensor, grad: Any, group: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"] = fb.zeros_like(param)
            state["exp_avg_sq"] = fb.zeros_like(param)
        state["step"] += 1
        grad = grad.coalesce()
        if not grad.values().numel():
            return
        where = tuple(grad.indices().unbind(0))
        g = -grad.values() if group["maximize"] else grad.values()
        beta1, beta2 = group["betas"]
        # The change of each average is what is added: the table is written only where g is stored.
        old = state["exp_avg"][where]
        change = g.sub(old).mul_(1 - beta1)
        state["exp_avg"].index_put_(where, change, accumulate=True)
        average = change.add_(old)
        old_sq = state["exp_avg_sq"][where]
        change_sq = g.pow(2).sub_(old_sq).mul_(1 - beta2)
        state["exp_avg_sq"].index_put_(where, change_sq, accumulate=True)
        denominator = change_sq.add_(old_sq).sqrt_().add_(group["eps"])
        correction = (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        update = average.mul_(-number(group["lr"]) * correction).div_(denominator)
        param.index_put_(where, update, accumulate=True)
