"""Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.optim.adam import Adam
from flambeau.optim.optimizer import ParamsT

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly (Loshchilov & Hutter, 2019).

    Before each step of Adam p ← p·(1 - lr·weight_decay); the decay enters neither moment.

    Args:
        params: parameters, named parameters, or groups of them.
        lr: learning rate.
        betas: decay rates of the two moment estimates.
        eps: added to the root of the second moment.
        weight_decay: rate of the decay, multiplied by `lr`.
        amsgrad, maximize, foreach, capturable, differentiable, fused: as in `Adam`.

    Raises:
        ValueError: a negative rate, or a beta outside [0, 1).

    >>> import flambeau as fb
    >>> weight = fb.tensor([1.0], requires_grad=True)
    >>> optimizer = fb.optim.AdamW([weight], lr=0.5, weight_decay=0.5)
    >>> weight.grad = fb.tensor([0.0])
    >>> optimizer.step()
    >>> weight.item()
    0.75
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # also for a state dict that Adam wrote
            group["decoupled_weight_decay"] = True
