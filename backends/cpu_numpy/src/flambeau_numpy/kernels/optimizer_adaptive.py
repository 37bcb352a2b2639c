"""Steps of the optimisers that give every element a step size of its own (see `optimizer`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau.plugin.steps import (
    AdadeltaStep,
    AdagradStep,
    AdamaxStep,
    NadamStep,
    RadamStep,
    RmspropStep,
    RpropStep,
    takes,
)
from flambeau_numpy.kernels.optimizer import (
    Scratch,
    add_scaled,
    advanced,
    blend,
    blend_square,
    blockwise,
    decayed,
    moments_moved,
)
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


@takes(RmspropStep)
@quiet
def rmsprop_step_(s: RmspropStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, v: Array, *rest: Array) -> None:
        g = decayed(p, g, s.weight_decay, s.maximize, scratch)
        blend_square(v, g, s.alpha, scratch)
        t = scratch(0, p)
        if s.centered:
            mean = rest[0]
            blend(mean, g, s.alpha, scratch)
            v = np.subtract(v, np.multiply(mean, mean, out=t), out=t)
        np.divide(g, np.add(np.sqrt(v, out=t), s.eps, out=t), out=t)
        if s.momentum:
            velocity = rest[-1]
            np.multiply(velocity, s.momentum, out=velocity)
            t = np.add(velocity, t, out=velocity)
        add_scaled(p, t, -s.lr, scratch)

    used = [s.grad_avgs] if s.centered else []
    state = [s.square_avgs, *used, *([s.momentum_buffers] if s.momentum else [])]
    for i, param in enumerate(s.params):
        advanced(s.steps[i])
        blockwise(update, param, s.grads[i], *[arrays[i] for arrays in state])


@takes(AdagradStep)
@quiet
def adagrad_step_(s: AdagradStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, total: Array) -> None:
        g = decayed(p, g, s.weight_decay, s.maximize, scratch)
        t = np.multiply(g, g, out=scratch(0, p))
        np.add(total, t, out=total)
        np.add(np.sqrt(total, out=t), s.eps, out=t)
        add_scaled(p, np.divide(g, t, out=t), -rate, scratch)

    for i, param in enumerate(s.params):
        rate = s.lr / (1 + (advanced(s.steps[i]) - 1) * s.lr_decay)
        blockwise(update, param, s.grads[i], s.sums[i])


@takes(AdadeltaStep)
@quiet
def adadelta_step_(s: AdadeltaStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, v: Array, u: Array) -> None:
        g = decayed(p, g, s.weight_decay, s.maximize, scratch)
        blend_square(v, g, s.rho, scratch)
        t = scratch(0, p)
        deviation = np.sqrt(np.add(v, s.eps, out=t), out=t)
        delta = scratch(3, p)
        np.sqrt(np.add(u, s.eps, out=delta), out=delta)
        np.multiply(np.divide(delta, deviation, out=delta), g, out=delta)
        blend_square(u, delta, s.rho, scratch)
        add_scaled(p, delta, -s.lr, scratch)

    for i, param in enumerate(s.params):
        advanced(s.steps[i])
        blockwise(update, param, s.grads[i], s.square_avgs[i], s.acc_deltas[i])


@takes(AdamaxStep)
@quiet
def adamax_step_(s: AdamaxStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, m: Array, u: Array) -> None:
        g = decayed(p, g, s.weight_decay, s.maximize, scratch)
        blend(m, g, s.beta1, scratch)
        t = scratch(0, p)
        np.add(np.abs(g, out=t), s.eps, out=t)
        np.maximum(np.multiply(u, s.beta2, out=u), t, out=u)
        add_scaled(p, np.divide(m, u, out=t), -step_size, scratch)

    for i, param in enumerate(s.params):
        step_size = s.lr / (1 - s.beta1 ** advanced(s.steps[i]))
        blockwise(update, param, s.grads[i], s.exp_avgs[i], s.exp_infs[i])


@takes(NadamStep)
@quiet
def nadam_step_(s: NadamStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, m: Array, v: Array) -> None:
        g = moments_moved(p, g, m, v, s, scratch)
        t, quotient = scratch(0, p), scratch(3, p)
        np.add(np.sqrt(np.divide(v, correction, out=t), out=t), s.eps, out=t)
        add_scaled(p, np.divide(g, t, out=quotient), -rates[0], scratch)
        add_scaled(p, np.divide(m, t, out=quotient), -rates[1], scratch)

    for i, param in enumerate(s.params):
        step = advanced(s.steps[i])
        correction = 1 - s.beta2**step
        rates = nadam_rates(s.mu_products[i], step, s.lr, s.beta1, s.momentum_decay)
        blockwise(update, param, s.grads[i], s.exp_avgs[i], s.exp_avg_sqs[i])


def nadam_rates(
    mu_product: Array, step: float, lr: float, beta1: float, momentum_decay: float
) -> tuple[float, float]:
    """The factors of gradient and mean in a step of NAdam, whose momentum enters the product."""
    mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
    kind = mu_product.dtype.type  # in which the product is rounded
    mu_product.fill(kind(mu_product.item()) * kind(mu))
    product = mu_product.item()
    return lr * (1 - mu) / (1 - product), lr * mu_next / (1 - product * mu_next)


@takes(RadamStep)
@quiet
def radam_step_(s: RadamStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, m: Array, v: Array) -> None:
        moments_moved(p, g, m, v, s, scratch)
        if not factor:
            add_scaled(p, m, -step_size, scratch)
            return
        t = scratch(0, p)
        np.divide(m, np.add(np.sqrt(v, out=t), s.eps, out=t), out=t)
        add_scaled(p, t, -step_size * factor, scratch)

    for i, param in enumerate(s.params):
        step = advanced(s.steps[i])
        step_size, factor = s.lr / (1 - s.beta1**step), rectification(s.beta2, step)
        blockwise(update, param, s.grads[i], s.exp_avgs[i], s.exp_avg_sqs[i])


def rectification(beta2: float, step: float) -> float:
    """The factor r √(1 - β₂ᵗ) of RAdam, or 0 while v averages too few squares for a variance."""
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    if length <= 5.0:
        return 0.0
    square = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return (square * correction) ** 0.5


@takes(RpropStep)
@quiet
def rprop_step_(s: RpropStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, previous: Array, size: Array) -> None:
        g = decayed(p, g, 0.0, s.maximize, scratch)
        t = np.multiply(g, previous, out=scratch(0, p))
        turned = t < 0
        np.multiply(size, s.grow, out=size, where=t > 0)
        np.multiply(size, s.shrink, out=size, where=turned)
        np.minimum(np.maximum(size, s.smallest, out=size), s.largest, out=size)
        previous[...] = g
        previous[turned] = 0
        np.subtract(previous > 0, np.less(previous, 0, out=turned), out=t, dtype=p.dtype)
        np.subtract(p, np.multiply(t, size, out=t), out=p)

    for i, param in enumerate(s.params):
        advanced(s.steps[i])
        blockwise(update, param, s.grads[i], s.prevs[i], s.step_sizes[i])


KERNELS: dict[str, Callable[..., None]] = {
    "adadelta_step_": adadelta_step_,
    "adagrad_step_": adagrad_step_,
    "adamax_step_": adamax_step_,
    "nadam_step_": nadam_step_,
    "radam_step_": radam_step_,
    "rmsprop_step_": rmsprop_step_,
    "rprop_step_": rprop_step_,
}
