"""Optimiser steps: one pass over each parameter, rounded as the NumPy kernels round.

Every kernel is the compiled step of one parameter for all of a list; `numbers(i)` counts the step
of the i-th and gives what the compiled function takes after the arrays and their size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.plugin.steps import (
    AdadeltaStep,
    AdagradStep,
    AdamaxStep,
    AdamStep,
    AsgdStep,
    NadamStep,
    RadamStep,
    RmspropStep,
    RpropStep,
    SgdStep,
    alone,
    takes,
)
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

    def __call__(self, given: tuple[Any, ...], lists: tuple[Arrays, ...], numbers: Numbers) -> None:
        """What the op is given, and lists that the compiled step takes; unused ones are empty."""
        find, nothing = self.table.get, (None,) * len(lists[0])
        for i, own in enumerate(zip(*[arrays or nothing for arrays in lists], strict=True)):
            param = own[0]
            run, arrays = find(param.dtype), _dense(own)
            if run is not None and arrays is not None:
                run(*arrays, param.size, *numbers(i))
            else:
                self.general(*alone(given, i))


_rmsprop, _adagrad, _adadelta, _asgd = map(_Step, ("rmsprop", "adagrad", "adadelta", "asgd"))
_adam, _adamax, _nadam, _radam = map(_Step, ("adam", "adamax", "nadam", "radam"))
_rprop = _Step("rprop")
_sgd, _sgd_momentum, _numpy_sgd = compiled("sgd"), compiled("sgd_momentum"), otherwise("sgd_step_")


def _constants(s: AdamStep | NadamStep | RadamStep) -> tuple[float, ...]:
    """The two forms of the decay, then what is told about the moments."""
    decay = split_decay(s.lr, s.weight_decay, s.decoupled)
    return *decay, s.beta1, 1 - s.beta1, s.beta2, 1 - s.beta2, s.eps


@takes(SgdStep)
def sgd_step_(s: SgdStep) -> None:
    table = _sgd_momentum if s.momentum else _sgd
    numbers = (s.weight_decay, -s.lr, s.momentum, 1 - s.dampening)[: 4 if s.momentum else 2]
    for i, param in enumerate(s.params):
        state = (s.momentum_buffers[i],) if s.momentum else ()
        run, arrays = table.get(param.dtype), _dense((param, s.grads[i], *state))
        if run is None or arrays is None:
            _numpy_sgd(*alone(s, i))
        elif s.momentum:
            run(*arrays, param.size, s.maximize, s.nesterov, *numbers)
        else:
            run(*arrays, param.size, s.maximize, *numbers)


@takes(AsgdStep)
def asgd_step_(s: AsgdStep) -> None:
    def numbers(i: int) -> tuple[float, ...]:
        eta, mu = next_rates(s.etas[i], s.mus[i], s.steps[i], s.lr, s.lambd, s.alpha, s.t0)
        return s.maximize, s.weight_decay, -eta, 1 - s.lambd * eta, mu

    _asgd(s, (s.params, s.grads, s.averages), numbers)


@takes(AdamStep)
def adam_step_(s: AdamStep) -> None:
    decay, shrink, *moments = _constants(s)
    known: dict[float, tuple[float, ...]] = {}  # all parameters are at one step, as a rule

    def numbers(i: int) -> tuple[float, ...]:
        step = advanced(s.steps[i])
        if (found := known.get(step)) is None:
            rate, correction = -s.lr / (1 - s.beta1**step), (1 - s.beta2**step) ** 0.5
            found = known[step] = s.maximize, decay, shrink, rate, *moments, correction
        return found

    largest = s.max_exp_avg_sqs if s.amsgrad else ()
    _adam(s, (s.params, s.grads, s.exp_avgs, s.exp_avg_sqs, largest), numbers)


@takes(NadamStep)
def nadam_step_(s: NadamStep) -> None:
    decay, shrink, *moments = _constants(s)

    def numbers(i: int) -> tuple[float, ...]:
        step = advanced(s.steps[i])
        of_grad, of_mean = nadam_rates(s.mu_products[i], step, s.lr, s.beta1, s.momentum_decay)
        return s.maximize, decay, shrink, -of_grad, *moments, 1 - s.beta2**step, -of_mean

    _nadam(s, (s.params, s.grads, s.exp_avgs, s.exp_avg_sqs), numbers)


@takes(RadamStep)
def radam_step_(s: RadamStep) -> None:
    decay, shrink, *moments = _constants(s)

    def numbers(i: int) -> tuple[float, ...]:
        step = advanced(s.steps[i])
        factor = rectification(s.beta2, step)
        rate = -s.lr / (1 - s.beta1**step) * (factor or 1.0)
        return s.maximize, factor != 0, decay, shrink, rate, *moments

    _radam(s, (s.params, s.grads, s.exp_avgs, s.exp_avg_sqs), numbers)


@takes(AdamaxStep)
def adamax_step_(s: AdamaxStep) -> None:
    def numbers(i: int) -> tuple[float, ...]:
        rate = -s.lr / (1 - s.beta1 ** advanced(s.steps[i]))
        return s.maximize, s.weight_decay, rate, s.beta1, 1 - s.beta1, s.beta2, s.eps

    _adamax(s, (s.params, s.grads, s.exp_avgs, s.exp_infs), numbers)


@takes(RmspropStep)
def rmsprop_step_(s: RmspropStep) -> None:
    fixed = (s.maximize, s.weight_decay, -s.lr, s.alpha, 1 - s.alpha, s.eps, s.momentum)

    def numbers(i: int) -> tuple[float, ...]:
        advanced(s.steps[i])
        return fixed

    state = (
        s.square_avgs,
        s.grad_avgs if s.centered else (),
        s.momentum_buffers if s.momentum else (),
    )
    _rmsprop(s, (s.params, s.grads, *state), numbers)


@takes(AdagradStep)
def adagrad_step_(s: AdagradStep) -> None:
    def numbers(i: int) -> tuple[float, ...]:
        rate = -s.lr / (1 + (advanced(s.steps[i]) - 1) * s.lr_decay)
        return s.maximize, s.weight_decay, rate, s.eps

    _adagrad(s, (s.params, s.grads, s.sums), numbers)


@takes(AdadeltaStep)
def adadelta_step_(s: AdadeltaStep) -> None:
    fixed = (s.maximize, s.weight_decay, -s.lr, s.rho, 1 - s.rho, s.eps)

    def numbers(i: int) -> tuple[float, ...]:
        advanced(s.steps[i])
        return fixed

    _adadelta(s, (s.params, s.grads, s.square_avgs, s.acc_deltas), numbers)


@takes(RpropStep)
def rprop_step_(s: RpropStep) -> None:
    def numbers(i: int) -> tuple[float, ...]:
        advanced(s.steps[i])
        return s.maximize, s.shrink, s.grow, s.smallest, s.largest

    _rprop(s, (s.params, s.grads, s.prevs, s.step_sizes), numbers)


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
