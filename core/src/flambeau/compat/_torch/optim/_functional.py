"""Steps of optimisers as functions of lists of tensors, which programs call and subclass with."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.compat._torch.optim._adam_steps import adam, adamax, adamw, nadam, radam
from flambeau.compat._torch.optim._calls import counted, is_wanted, number, step
from flambeau.optim.adagrad import Adagrad
from flambeau.optim.sgd import SGD
from flambeau.optim.sparse_adam import SparseAdam

__all__ = [
    "_make_sparse",
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]

Tensors = list[Tensor]
Number = float | Tensor


def sgd(
    params: Tensors,
    d_p_list: Tensors,
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: Number,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """A step of SGD; where `momentum_buffer_list` holds None, a buffer takes its place."""
    if not is_wanted(d_p_list, fused, grad_scale, found_inf):
        return
    lr = number(lr)
    options = {"weight_decay": weight_decay, "momentum": momentum, "lr": lr}
    options |= {"dampening": dampening, "nesterov": nesterov, "maximize": maximize}
    for place, (param, grad) in enumerate(zip(params, d_p_list, strict=True)):
        buffer = momentum_buffer_list[place] if momentum else None
        if grad.is_sparse:
            held: Any = SimpleNamespace(state={param: {"momentum_buffer": buffer}})
            SGD._step_sparse(held, param, grad, options)
            if momentum:
                momentum_buffer_list[place] = held.state[param]["momentum_buffer"]
            continue
        damped = dampening
        if momentum and buffer is None:
            # The first gradient enters undamped.
            buffer = momentum_buffer_list[place] = fb.zeros_like(grad)
            damped = 0.0
        step(
            fb.ops.sgd_step_,
            ([param], [grad], [] if buffer is None else [buffer]),
            lr,
            momentum,
            damped,
            weight_decay,
            nesterov,
            maximize,
        )


def rmsprop(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: Number,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """A step of RMSprop."""
    means, buffers = grad_avgs if centered else [], momentum_buffer_list if momentum > 0 else []
    step(
        fb.ops.rmsprop_step_,
        (params, grads, square_avgs, means, buffers, counted(state_steps)),
        number(lr),
        alpha,
        eps,
        weight_decay,
        momentum,
        centered,
        maximize,
    )


def adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Number,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of Adagrad."""
    if not is_wanted(grads, fused, grad_scale, found_inf):
        return
    lr = number(lr)
    options = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
    options["maximize"] = maximize
    for param, grad, total, count in zip(
        params, grads, state_sums, counted(state_steps), strict=True
    ):
        if grad.is_sparse:
            held: Any = SimpleNamespace(state={param: {"sum": total, "step": count}})
            Adagrad._step_sparse(held, param, grad, options)
            continue
        lists = ([param], [grad], [total], [count])
        step(fb.ops.adagrad_step_, lists, lr, lr_decay, eps, weight_decay, maximize)


def adadelta(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    acc_deltas: Tensors,
    state_steps: Tensors,
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Number,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """A step of Adadelta."""
    lists = (params, grads, square_avgs, acc_deltas, counted(state_steps))
    step(fb.ops.adadelta_step_, lists, number(lr), rho, eps, weight_decay, maximize)


def asgd(
    params: Tensors,
    grads: Tensors,
    axs: Tensors,
    mus: Tensors,
    etas: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: Number,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """A step of averaged SGD."""
    lists = (params, grads, axs, etas, mus, counted(state_steps))
    step(fb.ops.asgd_step_, lists, number(lr), lambd, alpha, t0, weight_decay, maximize)


def rprop(
    params: Tensors,
    grads: Tensors,
    prevs: Tensors,
    step_sizes: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """A step of Rprop."""
    lists = (params, grads, prevs, step_sizes, counted(state_steps))
    options = (etaminus, etaplus, step_size_min, step_size_max, maximize)
    step(fb.ops.rprop_step_, lists, *options)


def sparse_adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Sequence[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Number,
    maximize: bool,
) -> None:
    """A step of Adam for sparse gradients; the steps are counted by the caller."""
    options = {"eps": eps, "betas": (beta1, beta2), "lr": number(lr), "maximize": maximize}
    rows = zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)
    for param, grad, mean, square, count in rows:
        state = {"step": count - 1, "exp_avg": mean, "exp_avg_sq": square}
        held: Any = SimpleNamespace(state={param: state})
        SparseAdam._step_param(held, param, grad, options)


def _make_sparse(grad: Tensor, grad_indices: Tensor, values: Tensor) -> Any:
    """A sparse tensor of the size of a gradient."""
    return fb.sparse_coo_tensor(grad_indices, values, grad.size())
