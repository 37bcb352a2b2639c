"""Muon."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._options import check_one_element, number
from flambeau.optim._steps import ParameterOptimizer
from flambeau.optim.optimizer import ParamsT

__all__ = ["Muon"]

_ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(ParameterOptimizer):
    """Momentum whose matrix is made orthogonal before it is a step (Jordan et al., 2024).

    b ← μb + (1 - μ)g;  u = b, or (1 - μ)g + μb with Nesterov momentum;
    p ← p·(1 - lr·weight_decay) - r·lr·NS(u).
    NS(u) is about U Vᵀ, where U S Vᵀ is the singular value decomposition of u, but found without
    it: x = u/‖u‖, then `ns_steps` times x ← ax + (bA + cA²)x with A = x xᵀ, in bfloat16.

    It is meant for the matrices of hidden layers; give embeddings, biases and norms to `AdamW`.

    Args:
        params: parameters of two dimensions, named parameters, or groups of them.
        lr: learning rate.
        weight_decay: rate of the decay, multiplied by `lr`.
        momentum: decay rate μ of the running mean of the gradient.
        nesterov: look ahead along the momentum.
        ns_coefficients: a, b, c of the iteration, chosen for its slope at zero.
        eps: smallest norm by which an update is divided.
        ns_steps: iterations, fewer than 100.
        adjust_lr_fn: how r depends on a parameter of A rows and B columns: ``"original"`` (also
            None) √max(1, A/B), or ``"match_rms_adamw"`` 0.2·√max(A, B) (Liu et al., 2025), with
            which rates tuned for AdamW serve.

    Raises:
        ValueError: a negative rate, another adjustment, a parameter that is no matrix, or
            coefficients and steps that are no iteration.
        RuntimeError: at a step, a gradient is sparse, or a parameter complex.

    >>> import flambeau as fb
    >>> weight = fb.zeros(2, 2, requires_grad=True)
    >>> optimizer = fb.optim.Muon([weight], lr=0.5)
    >>> weight.grad = fb.tensor([[100.0, 0.0], [0.0, 1.0]])
    >>> optimizer.step()
    >>> weight.sign()
    tensor([[-1.,  0.],
            [ 0., -1.]], grad_fn=<SignBackward0>)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element("lr", lr)
        for label, value in (
            ("Learning rate", lr),
            ("momentum", momentum),
            ("weight decay", weight_decay),
        ):
            if not value >= 0.0:
                raise ValueError(f"{label} should be >= 0 but is: {value}")
        if adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with "
                        f"size: {param.size()}"
                    )

    def _step_param(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if grad.is_sparse:
            raise RuntimeError("Muon does not support sparse gradients")
        if grad.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        state = self.state[param]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = fb.zeros_like(grad)
        lr, momentum = number(group["lr"]), group["momentum"]
        update = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        if group["nesterov"]:
            update = grad.lerp(update, momentum)
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - lr * group["weight_decay"])
        rows, columns = param.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            lr *= 0.2 * math.sqrt(max(rows, columns))
        else:
            lr *= math.sqrt(max(1, rows / columns))
        param.add_(update, alpha=-lr)


def _orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """About the orthogonal factor of `matrix`, in bfloat16, by Newton-Schulz iterations."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    turned = x.size(0) > x.size(1)  # the smaller of the two Gram matrices
    if turned:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = fb.addmm(x, fb.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if turned else x
