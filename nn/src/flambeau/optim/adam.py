"""Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._options import (
    check_flags,
    check_fused,
    check_one_element,
    per_device,
    plain,
    scalar_dtype,
)
from flambeau.optim.optimizer import Optimizer, ParamsT

__all__ = ["Adam"]


class Adam(Optimizer):
    """Steps scaled by running estimates of each gradient's mean and square (Kingma & Ba, 2015).

    m ← β₁m + (1 - β₁)g;  v ← β₂v + (1 - β₂)g²;  p ← p - lr · m̂ / (√v̂ + ε),
    where m̂ = m/(1 - β₁ᵗ) and v̂ = v/(1 - β₂ᵗ) undo the start at zero.

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        betas: decay rates β₁, β₂ of the moment estimates; both floats or both one-element tensors.
        eps: ε, added to the root of the second moment.
        weight_decay: multiple of p that is added to its gradient.
        amsgrad: use the largest v̂ so far instead of v̂ (Reddi et al., 2018).
        foreach: accepted; every step is already one multi-tensor operation.
        maximize: climb the gradient instead of descending.
        capturable: keep the step count on the device of the parameter.
        differentiable: record the step itself for autograd.
        fused: require what the fused kernel requires, floating-point parameters.
        decoupled_weight_decay: decay as `AdamW` does.

    Raises:
        ValueError: a negative `lr`, `eps` or `weight_decay`, or a beta outside [0, 1).
        RuntimeError: `fused` together with `differentiable` or `foreach`.

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.Adam([weight], lr=0.5)
    >>> (weight * 3).sum().backward()
    >>> optimizer.step()
    >>> weight
    tensor([0.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        for name, value in {"lr": lr, "betas[0]": betas[0], "betas[1]": betas[1]}.items():
            if isinstance(value, Tensor) and foreach and not capturable:
                raise ValueError(
                    f"{name} as a Tensor is not supported for capturable=False and foreach=True"
                )
            check_one_element(name, value)
        if not lr >= 0.0:  # also refuses NaN
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if isinstance(betas[0], Tensor) and isinstance(betas[1], Tensor):
            betas = betas[0].squeeze(), betas[1].squeeze()
        elif not (isinstance(betas[0], float) and isinstance(betas[1], float)):
            raise ValueError("betas must be either both floats or both Tensors")
        check_flags(foreach, differentiable, fused)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "capturable", "differentiable"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", None)
            group.setdefault("decoupled_weight_decay", False)
            for param in group["params"]:
                entry = self.state.get(param, {})
                if "step" in entry and not isinstance(entry["step"], Tensor):  # written before 1.12
                    entry["step"] = _step_count(float(entry["step"]), group, param)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: re-evaluates the model and returns the loss; called once, with gradients on.

        Returns:
            what `closure` returned, or None without one.

        Raises:
            RuntimeError: a gradient is sparse.
            NotImplementedError: a parameter is complex.
        """
        loss = self._evaluate(closure)
        with fb.set_grad_enabled(self.defaults["differentiable"]):
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list[Tensor], ...] = ([], [], [], [], [], [])
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps = lists
        amsgrad = group["amsgrad"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                raise RuntimeError(
                    "Adam does not support sparse gradients, please consider SparseAdam instead"
                )
            state = self.state[param]
            if not state:
                _start(state, group, param)
            if group["differentiable"] and state["step"].requires_grad:
                raise RuntimeError(
                    "`requires_grad` is not supported for `step` in differentiable mode"
                )
            params.append(param)
            grads.append(grad)
            exp_avgs.append(state["exp_avg"])
            exp_avg_sqs.append(state["exp_avg_sq"])
            steps.append(state["step"])
            if amsgrad:
                max_exp_avg_sqs.append(state["max_exp_avg_sq"])

        differentiable = group["differentiable"]
        beta1, beta2 = group["betas"]
        for params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps in per_device(*lists):
            fb.ops.adam_step_(
                params,
                grads,
                exp_avgs,
                exp_avg_sqs,
                max_exp_avg_sqs,
                steps,
                plain(group["lr"], differentiable),
                plain(beta1, differentiable),
                plain(beta2, differentiable),
                group["eps"],
                plain(group["weight_decay"], differentiable),
                group["decoupled_weight_decay"],
                amsgrad,
                group["maximize"],
            )


def _start(state: dict[str, Any], group: dict[str, Any], param: Tensor) -> None:
    if param.is_complex():
        raise NotImplementedError(
            f"Adam: a parameter of dtype {param.dtype} is not supported; "
            "keep its real and imaginary parts as two parameters"
        )
    if group["fused"]:
        check_fused(param)
    state["step"] = _step_count(0.0, group, param)
    state["exp_avg"] = fb.zeros_like(param)
    state["exp_avg_sq"] = fb.zeros_like(param)
    if group["amsgrad"]:
        state["max_exp_avg_sq"] = fb.zeros_like(param)


def _step_count(value: float, group: dict[str, Any], param: Tensor) -> Tensor:
    """The number of steps taken, a 0-d tensor; on the host by default, where reading it is free."""
    device = param.device if group["capturable"] or group["fused"] else "cpu"
    return fb.tensor(value, dtype=scalar_dtype(group["fused"]), device=device)
