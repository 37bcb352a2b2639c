"""Adafactor."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import State, scalar_state
from flambeau.optim._options import check_one_element, number
from flambeau.optim._steps import ParameterOptimizer
from flambeau.optim.optimizer import ParamsT

__all__ = ["Adafactor"]


class Adafactor(ParameterOptimizer):
    """Steps scaled by running squares that a matrix keeps as one row and one column.

    Shazeer & Stern (2018).  With β = 1 - tᵟ, δ the `beta2_decay`, and means over rows and columns,
    r ← βr + (1 - β) mean₋₁(g²);  c ← βc + (1 - β) mean₋₂(g²);  v = r·c / max(mean(r), ε₁);
    u = g / max(√v, ε₁);  p ← p - max(ε₂, RMS(p)) · min(lr, 1/√t) · u / max(1, RMS(u)/d).
    Of vectors and numbers v itself is kept: v ← βv + (1 - β)g².

    Args:
        params: parameters, named parameters, or groups of them.
        lr: largest size of a relative step; also the factor of the weight decay.
        beta2_decay: δ, not above zero.
        eps: ε₁, by default the dtype's epsilon, and ε₂, the least scale of a parameter.
        d: largest root mean square of an update.
        weight_decay: multiple of lr · p that is subtracted from p first.
        foreach: accepted; it changes no result.
        maximize: climb the gradient instead of descending.

    Raises:
        ValueError: an option outside of its range, or a tensor `lr` of several elements.
        RuntimeError: at a step, a gradient is sparse, or a parameter complex.

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.Adafactor([weight], lr=0.25)
    >>> weight.grad = fb.tensor([8.0])
    >>> optimizer.step()
    >>> weight.item()
    0.75
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        for label, value, least in (
            ("Learning rate", number(lr), 0),
            ("epsilon1", 0.0 if eps[0] is None else eps[0], 0),
            ("epsilon2", eps[1], 0),
            ("Clipping threshold d", d, 1),
            ("weight_decay", weight_decay, 0),
        ):
            if not value >= least:
                raise ValueError(f"{label} should be >= {least} but is: {value}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _step_param(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if grad.is_sparse:
            raise RuntimeError("Adafactor does not support sparse gradients")
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = self.state[param]
        if not state:
            self._start(state, group, param)
        scale = max(group["eps"][1], _rms(param))  # of what the weight decay has not touched yet
        if group["weight_decay"]:
            param.mul_(1 - number(group["lr"]) * group["weight_decay"])
        state["step"].add_(1)
        grad = -grad if group["maximize"] else grad
        update, size = self._update(param, grad, state, group)
        param.add_(update, alpha=-scale * size)

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        state["step"] = scalar_state(0.0, group, param)
        if param.dim() > 1:
            state["row_var"] = param.new_zeros((*param.shape[:-1], 1))
            state["col_var"] = param.new_zeros((*param.shape[:-2], 1, param.shape[-1]))
        else:
            state["variance"] = fb.zeros_like(param)

    def _update(
        self, param: Tensor, grad: Tensor, state: State, group: dict[str, Any]
    ) -> tuple[Tensor, float]:
        """The direction of the step, and its size over the scale of the parameter."""
        least = group["eps"][0]
        if least is None:
            least = fb.finfo(param.dtype).eps
        step = state["step"].item()
        share = step ** group["beta2_decay"]  # 1 - β
        squares = grad * grad
        if param.dim() > 1:
            rows = state["row_var"].lerp_(squares.mean(-1, True), share)
            columns = state["col_var"].lerp_(squares.mean(-2, True), share)
            variance = rows @ columns / rows.mean(-2, True).clamp(min=least)
        else:
            variance = state["variance"].lerp_(squares, share)
        update = variance.clamp(min=least * least).rsqrt() * grad
        size = min(number(group["lr"]), 1 / math.sqrt(step))
        return update, size / max(1.0, _rms(update) / group["d"])


def _rms(t: Tensor) -> float:
    return t.norm(2).item() / math.sqrt(max(t.numel(), 1))
