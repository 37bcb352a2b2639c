"""Optimiser steps: one pass over each parameter, rounded as the NumPy kernels round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau_native.kernels._common import Array, alike, compiled, otherwise

Arrays = Sequence[Array]

_sgd, _sgd_momentum, _adam = (compiled(name) for name in ("sgd", "sgd_momentum", "adam"))
_numpy_sgd, _numpy_adam = otherwise("sgd_step_"), otherwise("adam_step_")


def _dense(arrays: tuple[Array, ...]) -> tuple[Array, ...] | None:
    """The arrays in the order of their memory, if it is the same dense one for all."""
    first = arrays[0]
    if alike(*arrays):
        return arrays
    turned = tuple([a.T for a in arrays])
    return turned if first.ndim > 1 and alike(*turned) else None


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
    options = (lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize)
    decay = 0.0 if decoupled else weight_decay
    shrink = 1 - lr * weight_decay if decoupled else 1.0
    for i, param in enumerate(params):
        arrays = (param, grads[i], exp_avgs[i], exp_avg_sqs[i])
        run, dense = _adam.get(param.dtype), _dense(arrays)
        if run is None or dense is None or amsgrad:
            maximum = [max_exp_avg_sqs[i]] if amsgrad else []
            _numpy_adam(*([a] for a in arrays), maximum, [steps[i]], *options)
            continue
        steps[i][...] += 1
        step = float(steps[i])
        rate = -lr / (1 - beta1**step)
        correction = (1 - beta2**step) ** 0.5
        moments = (beta1, 1 - beta1, beta2, 1 - beta2, correction, eps)
        run(*dense, param.size, maximize, decoupled, decay, rate, shrink, *moments)


KERNELS: dict[str, Callable[..., Any]] = {"sgd_step_": sgd_step_, "adam_step_": adam_step_}
