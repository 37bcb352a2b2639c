"""Steps of Adam and its kin as functions."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.compat._torch.optim._calls import counted, is_wanted, number, step

__all__ = ["adam", "adamax", "adamw", "nadam", "radam"]

Tensors = list[Tensor]
Number = float | Tensor


def adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: Number,
    beta2: Number,
    lr: Number,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of Adam."""
    if not is_wanted(grads, fused, grad_scale, found_inf):
        return
    largest = max_exp_avg_sqs if amsgrad else []
    step(
        fb.ops.adam_step_,
        (params, grads, exp_avgs, exp_avg_sqs, largest, counted(state_steps)),
        *(number(x) for x in (lr, beta1, beta2)),
        eps,
        weight_decay,
        decoupled_weight_decay,
        amsgrad,
        maximize,
    )


def adamw(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: Number,
    beta2: Number,
    lr: Number,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of AdamW."""
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        decoupled_weight_decay=True,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )


def adamax(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_infs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Number,
    weight_decay: float,
) -> None:
    """A step of Adamax."""
    lists = (params, grads, exp_avgs, exp_infs, counted(state_steps))
    step(fb.ops.adamax_step_, lists, number(lr), beta1, beta2, eps, weight_decay, maximize)


def nadam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Number,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """A step of NAdam."""
    step(
        fb.ops.nadam_step_,
        (params, grads, exp_avgs, exp_avg_sqs, mu_products, counted(state_steps)),
        number(lr),
        beta1,
        beta2,
        eps,
        weight_decay,
        momentum_decay,
        decoupled_weight_decay,
        maximize,
    )


def radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Number,
    weight_decay: float,
    eps: float,
) -> None:
    """A step of RAdam."""
    options = (beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize)
    lists = (params, grads, exp_avgs, exp_avg_sqs, counted(state_steps))
    step(fb.ops.radam_step_, lists, number(lr), *options)
