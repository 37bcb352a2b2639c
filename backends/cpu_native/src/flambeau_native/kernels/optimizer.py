"""Optimiser steps: one pass over each parameter, rounded as the NumPy kernels round.

Every kernel is the compiled step of one parameter for all of a list; `numbers(i)` counts the step
of the i-th and gives what the compiled function takes after the arrays and their size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau_native.kernels._common import Array, alike, compiled, otherwise
from flambeau_numpy.extending.parts import (
    advanced,
    nadam_rates,
    next_rates,
    rectification,
    split_decay,
)

Arrays = Sequence[Array]
Numbers = Callable[[int], tuple[float, ...]]


def _dense(arrays: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arrays (or None) in the order of their memory, if it is the same dense one for all.

    Row-major ones are compared by compiled code: see ``checks`` below.
    """
    if alike(*arrays):
        return arrays
    first, *others = arrays
    if any(a is not None and a.shape != first.shape for a in others):
        raise RuntimeError("the arrays must have one shape")
    turned = (first.T, *[None if a is None else a.T for a in others])
    return turned if first.ndim > 1 and alike(*turned) else None


class _Step:
    """The compiled step `function` over lists of arrays, with the NumPy kernel for the rest."""

    def __init__(self, function: str) -> None:
        self.table = compiled(function)
        self.general = otherwise(f"{function}_step_")

    def __call__(
        self,
        lists: tuple[Arrays, ...],
        scalars: tuple[Arrays, ...],
        options: tuple[float, ...],
        numbers: Numbers,
    ) -> None:
        """Lists, 0-d state and plain arguments are those of the op; an unused list is empty."""
        find = self.table.get
        for i, param in enumerate(lists[0]):
            own = tuple([arrays[i] if arrays else None for arrays in lists])
            run, arrays = find(param.dtype), _dense(own)
            if run is not None and arrays is not None:
                run(*arrays, param.size, *numbers(i))
                continue
            single = [[] if a is None else [a] for a in own]
            self.general(*single, *[[arrays[i]] for arrays in scalars], *options)


_rmsprop, _adagrad, _adadelta, _asgd = map(_Step, ("rmsprop", "adagrad", "adadelta", "asgd"))
_adam, _adamax, _nadam, _radam = map(_Step, ("adam", "adamax", "nadam", "radam"))
_rprop = _Step("rprop")
_sgd, _sgd_momentum, _numpy_sgd = compiled("sgd"), compiled("sgd_momentum"), otherwise("sgd_step_")


def sgd_step_(
    params: Arrays,
    grads: Arrays,
    momentum_buffers: Arrays,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    table = _sgd_momentum if momentum else _sgd
    numbers = (weight_decay, -lr, momentum, 1 - dampening)[: 4 if momentum else 2]
    for i, param in enumerate(params):
        state = (momentum_buffers[i],) if momentum else ()
        run, arrays = table.get(param.dtype), _dense((param, grads[i], *state))
        if run is None or arrays is None:
            rest = (lr, momentum, dampening, weight_decay, nesterov, maximize)
            _numpy_sgd([param], [grads[i]], list(state), *rest)
        elif momentum:
            run(*arrays, param.size, maximize, nesterov, *numbers)
        else:
            run(*arrays, param.size, maximize, *numbers)


def asgd_step_(
    params: Arrays,
    grads: Arrays,
    averages: Arrays,
    etas: Arrays,
    mus: Arrays,
    steps: Arrays,
    lr: float,
    lambd: float,
    alpha: float,
    t0: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    def numbers(i: int) -> tuple[float, ...]:
        eta, mu = next_rates(etas[i], mus[i], steps[i], lr, lambd, alpha, t0)
        return maximize, weight_decay, -eta, 1 - lambd * eta, mu

    options = (lr, lambd, alpha, t0, weight_decay, maximize)
    _asgd((params, grads, averages), (etas, mus, steps), options, numbers)


def adam_step_(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_avg_sqs: Arrays,
    max_exp_avg_sqs: Arrays,
    steps: Arrays,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
) -> None:
    decay, shrink = split_decay(lr, weight_decay, decoupled)
    moments = (beta1, 1 - beta1, beta2, 1 - beta2, eps)

    def numbers(i: int) -> tuple[float, ...]:
        step = advanced(steps[i])
        rate = -lr / (1 - beta1**step)
        return maximize, decay, shrink, rate, *moments, (1 - beta2**step) ** 0.5

    largest = max_exp_avg_sqs if amsgrad else ()
    options = (lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize)
    _adam((params, grads, exp_avgs, exp_avg_sqs, largest), (steps,), options, numbers)


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
    decay, shrink = split_decay(lr, weight_decay, decoupled)
    moments = (beta1, 1 - beta1, beta2, 1 - beta2, eps)

    def numbers(i: int) -> tuple[float, ...]:
        step = advanced(steps[i])
        of_grad, of_mean = nadam_rates(mu_products[i], step, lr, beta1, momentum_decay)
        return maximize, decay, shrink, -of_grad, *moments, 1 - beta2**step, -of_mean

    options = (lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled, maximize)
    _nadam((params, grads, exp_avgs, exp_avg_sqs), (mu_products, steps), options, numbers)


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
    decay, shrink = split_decay(lr, weight_decay, decoupled)
    moments = (beta1, 1 - beta1, beta2, 1 - beta2, eps)

    def numbers(i: int) -> tuple[float, ...]:
        step = advanced(steps[i])
        factor = rectification(beta2, step)
        rate = -lr / (1 - beta1**step) * (factor or 1.0)
        return maximize, factor != 0, decay, shrink, rate, *moments

    options = (lr, beta1, beta2, eps, weight_decay, decoupled, maximize)
    _radam((params, grads, exp_avgs, exp_avg_sqs), (steps,), options, numbers)


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
    def numbers(i: int) -> tuple[float, ...]:
        rate = -lr / (1 - beta1 ** advanced(steps[i]))
        return maximize, weight_decay, rate, beta1, 1 - beta1, beta2, eps

    options = (lr, beta1, beta2, eps, weight_decay, maximize)
    _adamax((params, grads, exp_avgs, exp_infs), (steps,), options, numbers)


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
    fixed = (maximize, weight_decay, -lr, alpha, 1 - alpha, eps, momentum)

    def numbers(i: int) -> tuple[float, ...]:
        advanced(steps[i])
        return fixed

    state = (square_avgs, grad_avgs if centered else (), momentum_buffers if momentum else ())
    options = (lr, alpha, eps, weight_decay, momentum, centered, maximize)
    _rmsprop((params, grads, *state), (steps,), options, numbers)


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
    def numbers(i: int) -> tuple[float, ...]:
        rate = -lr / (1 + (advanced(steps[i]) - 1) * lr_decay)
        return maximize, weight_decay, rate, eps

    options = (lr, lr_decay, eps, weight_decay, maximize)
    _adagrad((params, grads, sums), (steps,), options, numbers)


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
    fixed = (maximize, weight_decay, -lr, rho, 1 - rho, eps)

    def numbers(i: int) -> tuple[float, ...]:
        advanced(steps[i])
        return fixed

    options = (lr, rho, eps, weight_decay, maximize)
    _adadelta((params, grads, square_avgs, acc_deltas), (steps,), options, numbers)


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
    def numbers(i: int) -> tuple[float, ...]:
        advanced(steps[i])
        return maximize, shrink, grow, smallest, largest

    options = (shrink, grow, smallest, largest, maximize)
    _rprop((params, grads, prevs, step_sizes), (steps,), options, numbers)


KERNELS: dict[str, Callable[..., Any]] = {
    "adadelta_step_": adadelta_step_,
    "adagrad_step_": adagrad_step_,
    "adam_step_": adam_step_,
    "adamax_step_": adamax_step_,
    "asgd_step_": asgd_step_,
    "nadam_step_": nadam_step_,
    "radam_step_": radam_step_,
    "rmsprop_step_": rmsprop_step_,
    "rprop_step_": rprop_step_,
    "sgd_step_": sgd_step_,
}

for _kernel in KERNELS.values():
    _kernel.checks = True  # type: ignore[attr-defined]  # shapes, which the core then does not
