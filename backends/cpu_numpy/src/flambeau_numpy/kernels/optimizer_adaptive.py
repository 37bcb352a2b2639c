"""Steps of the optimisers that give every element a step size of its own (see `optimizer`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau_numpy.kernels.optimizer import (
    Scratch,
    add_scaled,
    advanced,
    blend,
    blend_square,
    blockwise,
    decayed,
    split_decay,
)
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


@quiet
def rmsprop_step_(
    params: Arrays,
    grads: Arrays,
    square_avgs: Arrays,
    grad_avgs: Arrays,
    momentum_buffers: Arrays,
    steps: Arrays,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, v: Array, *rest: Array) -> None:
        g = decayed(p, g, weight_decay, maximize, scratch)
        blend_square(v, g, alpha, scratch)
        t = scratch(0, p)
        if centered:
            mean = rest[0]
            blend(mean, g, alpha, scratch)
            v = np.subtract(v, np.multiply(mean, mean, out=t), out=t)
        np.divide(g, np.add(np.sqrt(v, out=t), eps, out=t), out=t)
        if momentum:
            velocity = rest[-1]
            np.multiply(velocity, momentum, out=velocity)
            t = np.add(velocity, t, out=velocity)
        add_scaled(p, t, -lr, scratch)

    used = [grad_avgs] if centered else []
    state = [square_avgs, *used, *([momentum_buffers] if momentum else [])]
    for i, param in enumerate(params):
        advanced(steps[i])
        blockwise(update, param, grads[i], *[arrays[i] for arrays in state])


@quiet
def adagrad_step_(
    params: Arrays,
    grads: Arrays,
    sums: Arrays,
    steps: Arrays,
    lr: float,
    lr_decay: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, s: Array) -> None:
        g = decayed(p, g, weight_decay, maximize, scratch)
        t = np.multiply(g, g, out=scratch(0, p))
        np.add(s, t, out=s)
        np.add(np.sqrt(s, out=t), eps, out=t)
        add_scaled(p, np.divide(g, t, out=t), -rate, scratch)

    for i, param in enumerate(params):
        rate = lr / (1 + (advanced(steps[i]) - 1) * lr_decay)
        blockwise(update, param, grads[i], sums[i])


@quiet
def adadelta_step_(
    params: Arrays,
    grads: Arrays,
    square_avgs: Arrays,
    acc_deltas: Arrays,
    steps: Arrays,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, v: Array, u: Array) -> None:
        g = decayed(p, g, weight_decay, maximize, scratch)
        blend_square(v, g, rho, scratch)
        t = scratch(0, p)
        deviation = np.sqrt(np.add(v, eps, out=t), out=t)
        delta = scratch(3, p)
        np.sqrt(np.add(u, eps, out=delta), out=delta)
        np.multiply(np.divide(delta, deviation, out=delta), g, out=delta)
        blend_square(u, delta, rho, scratch)
        add_scaled(p, delta, -lr, scratch)

    for i, param in enumerate(params):
        advanced(steps[i])
        blockwise(update, param, grads[i], square_avgs[i], acc_deltas[i])


@quiet
def adamax_step_(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_infs: Arrays,
    steps: Arrays,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, m: Array, u: Array) -> None:
        g = decayed(p, g, weight_decay, maximize, scratch)
        blend(m, g, beta1, scratch)
        t = scratch(0, p)
        np.add(np.abs(g, out=t), eps, out=t)
        np.maximum(np.multiply(u, beta2, out=u), t, out=u)
        add_scaled(p, np.divide(m, u, out=t), -step_size, scratch)

    for i, param in enumerate(params):
        step_size = lr / (1 - beta1 ** advanced(steps[i]))
        blockwise(update, param, grads[i], exp_avgs[i], exp_infs[i])


@quiet
def nadam_step_(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_avg_sqs: Arrays,
    mu_products: Arrays,
    steps: Arrays,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    scratch = Scratch()
    coupled, shrink = split_decay(lr, weight_decay, decoupled)

    def update(p: Array, g: Array, m: Array, v: Array) -> None:
        if shrink != 1:
            np.multiply(p, shrink, out=p)
        g = decayed(p, g, coupled, maximize, scratch)
        blend(m, g, beta1, scratch)
        blend_square(v, g, beta2, scratch)
        t, quotient = scratch(0, p), scratch(3, p)
        np.add(np.sqrt(np.divide(v, correction, out=t), out=t), eps, out=t)
        add_scaled(p, np.divide(g, t, out=quotient), -rates[0], scratch)
        add_scaled(p, np.divide(m, t, out=quotient), -rates[1], scratch)

    for i, param in enumerate(params):
        step = advanced(steps[i])
        correction = 1 - beta2**step
        rates = nadam_rates(mu_products[i], step, lr, beta1, momentum_decay)
        blockwise(update, param, grads[i], exp_avgs[i], exp_avg_sqs[i])


def nadam_rates(
    mu_product: Array, step: float, lr: float, beta1: float, momentum_decay: float
) -> tuple[float, float]:
    """The factors of gradient and mean in a step of NAdam, whose momentum enters the product."""
    mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
    kind = mu_product.dtype.type  # in which the product is rounded
    mu_product.fill(kind(mu_product.item()) * kind(mu))
    product = mu_product.item()
    return lr * (1 - mu) / (1 - product), lr * mu_next / (1 - product * mu_next)


@quiet
def radam_step_(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_avg_sqs: Arrays,
    steps: Arrays,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    scratch = Scratch()
    coupled, shrink = split_decay(lr, weight_decay, decoupled)

    def update(p: Array, g: Array, m: Array, v: Array) -> None:
        if shrink != 1:
            np.multiply(p, shrink, out=p)
        g = decayed(p, g, coupled, maximize, scratch)
        blend(m, g, beta1, scratch)
        blend_square(v, g, beta2, scratch)
        if not factor:
            add_scaled(p, m, -step_size, scratch)
            return
        t = scratch(0, p)
        np.divide(m, np.add(np.sqrt(v, out=t), eps, out=t), out=t)
        add_scaled(p, t, -step_size * factor, scratch)

    for i, param in enumerate(params):
        step = advanced(steps[i])
        step_size, factor = lr / (1 - beta1**step), rectification(beta2, step)
        blockwise(update, param, grads[i], exp_avgs[i], exp_avg_sqs[i])


def rectification(beta2: float, step: float) -> float:
    """The factor r √(1 - β₂ᵗ) of RAdam, or 0 while v averages too few squares for a variance."""
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    if length <= 5.0:
        return 0.0
    square = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return (square * correction) ** 0.5


@quiet
def rprop_step_(
    params: Arrays,
    grads: Arrays,
    prevs: Arrays,
    step_sizes: Arrays,
    steps: Arrays,
    shrink: float,
    grow: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, previous: Array, size: Array) -> None:
        g = decayed(p, g, 0.0, maximize, scratch)
        t = np.multiply(g, previous, out=scratch(0, p))
        turned = t < 0
        np.multiply(size, grow, out=size, where=t > 0)
        np.multiply(size, shrink, out=size, where=turned)
        np.minimum(np.maximum(size, smallest, out=size), largest, out=size)
        previous[...] = g
        previous[turned] = 0
        np.subtract(previous > 0, np.less(previous, 0, out=turned), out=t, dtype=p.dtype)
        np.subtract(p, np.multiply(t, size, out=t), out=p)

    for i, param in enumerate(params):
        advanced(steps[i])
        blockwise(update, param, grads[i], prevs[i], step_sizes[i])


KERNELS: dict[str, Callable[..., None]] = {
    "adadelta_step_": adadelta_step_,
    "adagrad_step_": adagrad_step_,
    "adamax_step_": adamax_step_,
    "nadam_step_": nadam_step_,
    "radam_step_": radam_step_,
    "rmsprop_step_": rmsprop_step_,
    "rprop_step_": rprop_step_,
}
