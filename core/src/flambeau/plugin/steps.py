"""What kernels of optimiser steps are given, stated once for all backends.

A kernel is written as a function of one of these and becomes the kernel by `takes`.  Lists of
arrays stand first: parameters, gradients, state; plain numbers follow.  The ops of the same names
in `flambeau.ops` say what is computed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

Arrays = Sequence[Any]
Numbers = Any
"""A 0-d array for each parameter; of an `Accelerator` whose user counts on the host, floats."""

S = TypeVar("S", bound=tuple[Any, ...])


def takes(arguments: type[S]) -> Callable[[Callable[[S], None]], Callable[..., None]]:
    """Make a function of such arguments the kernel that is called with them one by one.

    >>> @takes(SgdStep)
    ... def sgd_step_(s): print(s.lr, s.maximize)
    >>> sgd_step_([], [], [], 0.1, 0.9, 0.0, 0.0, False, True)
    0.1 True
    """

    count, new = len(inspect.signature(arguments).parameters), tuple.__new__

    def made(step: Callable[[S], None]) -> Callable[..., None]:
        def kernel(*given: Any) -> None:
            if len(given) != count:
                arguments(*given)  # says what is missing
            step(new(arguments, given))  # a third of the time of a call of the class

        if name := getattr(step, "__name__", ""):  # a partial application has none
            kernel.__name__ = kernel.__qualname__ = name
        kernel.__signature__ = inspect.signature(arguments)  # type: ignore[attr-defined]
        return kernel

    return made


def alone(arguments: tuple[Any, ...], i: int) -> list[Any]:
    """The arguments of the same step for the i-th parameter only.

    >>> alone(SgdStep([2, 3], [4, 5], [], 0.1, 0.0, 0.0, 0.0, False, False), 1)[:4]
    [[3], [5], [], 0.1]
    """
    return [a[i : i + 1] if isinstance(a, (list, tuple)) else a for a in arguments]


class SgdStep(NamedTuple):
    """The arguments of ``sgd_step_``."""

    params: Arrays
    grads: Arrays
    momentum_buffers: Arrays
    lr: float
    momentum: float
    dampening: float
    weight_decay: float
    nesterov: bool
    maximize: bool


class AsgdStep(NamedTuple):
    """The arguments of ``asgd_step_``."""

    params: Arrays
    grads: Arrays
    averages: Arrays
    etas: Numbers
    mus: Numbers
    steps: Numbers
    lr: float
    lambd: float
    alpha: float
    t0: float
    weight_decay: float
    maximize: bool


class AdamStep(NamedTuple):
    """The arguments of ``adam_step_``."""

    params: Arrays
    grads: Arrays
    exp_avgs: Arrays
    exp_avg_sqs: Arrays
    max_exp_avg_sqs: Arrays
    steps: Numbers
    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    decoupled: bool
    amsgrad: bool
    maximize: bool


class RmspropStep(NamedTuple):
    """The arguments of ``rmsprop_step_``."""

    params: Arrays
    grads: Arrays
    square_avgs: Arrays
    grad_avgs: Arrays
    momentum_buffers: Arrays
    steps: Numbers
    lr: float
    alpha: float
    eps: float
    weight_decay: float
    momentum: float
    centered: bool
    maximize: bool


class AdagradStep(NamedTuple):
    """The arguments of ``adagrad_step_``."""

    params: Arrays
    grads: Arrays
    sums: Arrays
    steps: Numbers
    lr: float
    lr_decay: float
    eps: float
    weight_decay: float
    maximize: bool


class AdadeltaStep(NamedTuple):
    """The arguments of ``adadelta_step_``."""

    params: Arrays
    grads: Arrays
    square_avgs: Arrays
    acc_deltas: Arrays
    steps: Numbers
    lr: float
    rho: float
    eps: float
    weight_decay: float
    maximize: bool


class AdamaxStep(NamedTuple):
    """The arguments of ``adamax_step_``."""

    params: Arrays
    grads: Arrays
    exp_avgs: Arrays
    exp_infs: Arrays
    steps: Numbers
    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    maximize: bool


class NadamStep(NamedTuple):
    """The arguments of ``nadam_step_``."""

    params: Arrays
    grads: Arrays
    exp_avgs: Arrays
    exp_avg_sqs: Arrays
    mu_products: Numbers
    steps: Numbers
    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    momentum_decay: float
    decoupled: bool
    maximize: bool


class RadamStep(NamedTuple):
    """The arguments of ``radam_step_``."""

    params: Arrays
    grads: Arrays
    exp_avgs: Arrays
    exp_avg_sqs: Arrays
    steps: Numbers
    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    decoupled: bool
    maximize: bool


class RpropStep(NamedTuple):
    """The arguments of ``rprop_step_``."""

    params: Arrays
    grads: Arrays
    prevs: Arrays
    step_sizes: Arrays
    steps: Numbers
    shrink: float
    grow: float
    smallest: float
    largest: float
    maximize: bool
