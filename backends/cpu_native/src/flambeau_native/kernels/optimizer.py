"""Optimiser steps: one pass over each parameter, rounded as PyTorch rounds.

Every kernel is the compiled step of one parameter for all of a list. Where all parameters are
dense, of one type and at one step, which is the rule, one call goes through the whole list.
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
Numbers = Callable[[float], tuple[float, ...]]
"""Of the number of a step: what the compiled function takes after the arrays and their size."""
_COUNTED = 1 << 24  # steps, up to which a count in float32 is exact


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
        self.table, self.lists = compiled(function), compiled(f"{function}_each")
        self.general = otherwise(f"{function}_step_")

    def __call__(
        self, given: tuple[Any, ...], lists: tuple[Arrays, ...], steps: Arrays, numbers: Numbers
    ) -> None:
        """What the op is given, lists that the compiled step takes, and the counts of steps.

        Lists that are not used are empty.
        """
        if not self._at_once(lists, steps, numbers):
            known: dict[float, tuple[float, ...]] = {}

            def counted(i: int) -> tuple[float, ...]:
                step = advanced(steps[i])
                if (found := known.get(step)) is None:
                    found = known[step] = numbers(step)
                return found

            self.by_one(given, lists, counted)

    def _at_once(self, lists: tuple[Arrays, ...], steps: Arrays, numbers: Numbers) -> bool:
        """Make the step of all parameters by one call, if that can be."""
        if len(steps) < 2 or (run := self.lists.get(lists[0][0].dtype)) is None:
            return False
        count = steps[0].item() + 1
        if count > _COUNTED or any(step.item() + 1 != count for step in steps):
            return False
        if not run(*[arrays or None for arrays in lists], *numbers(count)):
            return False
        for step in steps:
            step.fill(count)
        return True

    def by_one(
        self,
        given: tuple[Any, ...],
        lists: tuple[Arrays, ...],
        numbers: Callable[[int], tuple[float, ...]],
    ) -> None:
        """The step of each parameter; `numbers` of its place counts it."""
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
_sgd_each, _sgd_momentum_each = compiled("sgd_each"), compiled("sgd_momentum_each")


def _constants(s: AdamStep | NadamStep | RadamStep) -> tuple[float, ...]:
    """The two forms of the decay, then what is told about the moments."""
    decay = split_decay(s.lr, s.weight_decay, s.decoupled)
    return *decay, s.beta1, 1 - s.beta1, s.beta2, 1 - s.beta2, s.eps


@takes(SgdStep)
def sgd_step_(s: SgdStep) -> None:
    table = _sgd_momentum if s.momentum else _sgd
    numbers = (s.weight_decay, -s.lr, s.momentum, 1 - s.dampening)[: 4 if s.momentum else 2]
    if len(s.params) > 1:
        lists = (_sgd_momentum_each if s.momentum else _sgd_each).get(s.params[0].dtype)
        buffers = (s.momentum_buffers,) if s.momentum else ()
        flags = (s.maximize, s.nesterov) if s.momentum else (s.maximize,)
        if lists is not None and lists(s.params, s.grads, *buffers, *flags, *numbers):
            return
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

    _asgd.by_one(s, (s.params, s.grads, s.averages), numbers)


@takes(AdamStep)
def adam_step_(s: AdamStep) -> None:
    decay, shrink, *moments = _constants(s)
    rate, b1, b2 = -s.lr, s.beta1, s.beta2

    def numbers(step: float) -> tuple[float, ...]:
        over = rate / (1 - b1**step)
        return s.maximize, decay, shrink, over, *moments, (1 - b2**step) ** 0.5

    largest = s.max_exp_avg_sqs if s.amsgrad else ()
    _adam(s, (s.params, s.grads, s.exp_avgs, s.exp_avg_sqs, largest), s.steps, numbers)


@takes(NadamStep)
def nadam_step_(s: NadamStep) -> None:
    decay, shrink, *moments = _constants(s)

    def numbers(i: int) -> tuple[float, ...]:
        step = advanced(s.steps[i])
        of_grad, of_mean = nadam_rates(s.mu_products[i], step, s.lr, s.beta1, s.momentum_decay)
        return s.maximize, decay, shrink, -of_grad, *moments, 1 - s.beta2**step, -of_mean

    _nadam.by_one(s, (s.params, s.grads, s.exp_avgs, s.exp_avg_sqs), numbers)


@takes(RadamStep)
def radam_step_(s: RadamStep) -> None:
    decay, shrink, *moments = _constants(s)

    def numbers(step: float) -> tuple[float, ...]:
        factor, deviation = rectification(s.beta2, step), (1 - s.beta2**step) ** 0.5
        rates = 1 - s.beta1**step, deviation, factor / deviation
        return s.maximize, factor != 0, decay, shrink, s.lr, *moments, *rates

    _radam(s, (s.params, s.grads, s.exp_avgs, s.exp_avg_sqs), s.steps, numbers)


@takes(AdamaxStep)
def adamax_step_(s: AdamaxStep) -> None:
    def numbers(step: float) -> tuple[float, ...]:
        rate = -s.lr / (1 - s.beta1**step)
        return s.maximize, s.weight_decay, rate, s.beta1, 1 - s.beta1, s.beta2, s.eps

    _adamax(s, (s.params, s.grads, s.exp_avgs, s.exp_infs), s.steps, numbers)


@takes(RmspropStep)
def rmsprop_step_(s: RmspropStep) -> None:
    fixed = (s.maximize, s.weight_decay, -s.lr, s.alpha, 1 - s.alpha, s.eps, s.momentum)
    state = (
        s.square_avgs,
        s.grad_avgs if s.centered else (),
        s.momentum_buffers if s.momentum else (),
    )
    _rmsprop(s, (s.params, s.grads, *state), s.steps, lambda _: fixed)


@takes(AdagradStep)
def adagrad_step_(s: AdagradStep) -> None:
    def numbers(step: float) -> tuple[float, ...]:
        rate = -s.lr / (1 + (step - 1) * s.lr_decay)
        return s.maximize, s.weight_decay, rate, s.eps

    _adagrad(s, (s.params, s.grads, s.sums), s.steps, numbers)


@takes(AdadeltaStep)
def adadelta_step_(s: AdadeltaStep) -> None:
    fixed = (s.maximize, s.weight_decay, -s.lr, s.rho, 1 - s.rho, s.eps)
    _adadelta(s, (s.params, s.grads, s.square_avgs, s.acc_deltas), s.steps, lambda _: fixed)


@takes(RpropStep)
def rprop_step_(s: RpropStep) -> None:
    fixed = (s.maximize, s.shrink, s.grow, s.smallest, s.largest)
    _rprop(s, (s.params, s.grads, s.prevs, s.step_sizes), s.steps, lambda _: fixed)


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
