"""Optimiser steps over lists of tensors: what `step()` does to a parameter group.

SGD, ASGD and Adam; `optimizer_adaptive` has the others.  Each function updates its parameters and
their state in place and returns nothing.  The bodies are the meaning; a backend may override a
step with one fused kernel, which then receives native arrays and plain numbers.  Gradients flow
through the bodies (not through a kernel), so where autograd records, the body runs and the
hyper-parameters may be tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau import Tensor


def sgd_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    lr: float | Tensor,
    momentum: float,
    dampening: float,
    weight_decay: float | Tensor,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of stochastic gradient descent on every parameter, in place.

    With d = ±grad + weight_decay·p (minus where `maximize`):
    b ← momentum·b + (1 - dampening)·d;  d ← d + momentum·b (Nesterov) or b;  p ← p - lr·d.

    `momentum_buffers` is empty where `momentum` is zero; otherwise a fresh buffer is zeros, and its
    first step is taken with ``dampening=0``, so that b starts as d.

    >>> import flambeau as fb
    >>> p, b = fb.tensor([1.0]), fb.tensor([0.0])
    >>> fb.ops.sgd_step_([p], [fb.tensor([2.0])], [b], 0.25, 0.9, 0.0, 0.0, False, False)
    >>> p, b
    (tensor([0.5000]), tensor([2.]))
    """
    for i, param in enumerate(params):
        direction = decayed(param, grads[i], weight_decay, maximize)
        if momentum != 0:
            velocity = momentum_buffers[i] * momentum + direction * (1 - dampening)
            momentum_buffers[i].copy_(velocity)
            direction = direction + velocity * momentum if nesterov else velocity
        param.sub_(scaled(direction, lr))


def asgd_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    averages: Sequence[Tensor],
    etas: Sequence[Tensor],
    mus: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float,
    lambd: float,
    alpha: float,
    t0: float,
    weight_decay: float | Tensor,
    maximize: bool,
) -> None:
    """One step of averaged SGD (Polyak & Juditsky, 1992) on every parameter, in place.

    With g = ±grad + weight_decay·p:  t ← t + 1;  p ← (1 - λη)·p - η·g;  a ← a + μ(p - a);
    η ← lr / (1 + λ·lr·t)^α;  μ ← 1 / max(1, t - t₀).

    `etas`, `mus` and `steps` hold a 0-d tensor per parameter, on any device; new rates are rounded
    to the dtype of the step count.  Parameters are real.

    >>> import flambeau as fb
    >>> p, a = fb.tensor([1.0]), fb.tensor([0.0])
    >>> eta, mu, t = fb.tensor(0.5), fb.tensor(1.0), fb.tensor(0.0)
    >>> hyper = (0.5, 0.0, 0.75, 0.0, 0.0, False)
    >>> fb.ops.asgd_step_([p], [fb.tensor([1.0])], [a], [eta], [mu], [t], *hyper)
    >>> p, a
    (tensor([0.5000]), tensor([0.5000]))
    """
    for i, param in enumerate(params):
        step = advanced(steps[i])
        eta, mu = etas[i].item(), mus[i].item()
        grad = decayed(param, grads[i], weight_decay, maximize)
        value = param * (1 - lambd * eta) - grad * eta
        param.copy_(value)
        averages[i].copy_(value if mu == 1 else averages[i] + (value - averages[i]) * mu)
        rate = lr / (1 + lambd * lr * step) ** alpha
        for rates, new in ((etas, rate), (mus, 1 / max(1, step - t0))):
            rates[i].copy_(steps[i].new_tensor(new))


def adam_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float | Tensor,
    beta1: float | Tensor,
    beta2: float | Tensor,
    eps: float,
    weight_decay: float | Tensor,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
) -> None:
    """One step of Adam (Kingma & Ba, 2015, algorithm 1) on every parameter, in place.

    With g = ±grad (minus where `maximize`) plus weight_decay·p; or, where `decoupled`, g = ±grad
    after p ← p·(1 - lr·weight_decay) (Loshchilov & Hutter, 2019):
    t ← t + 1;  m ← β₁m + (1 - β₁)g;  v ← β₂v + (1 - β₂)g²;
    p ← p - lr/(1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε).
    With `amsgrad`, the running maximum of v replaces v in the last line (Reddi et al., 2018).

    `steps` holds one 0-d floating tensor t per parameter, on any device; `max_exp_avg_sqs` is empty
    without `amsgrad`.  Parameters are real.

    >>> import flambeau as fb
    >>> p, m, v, t = fb.tensor([1.0]), fb.tensor([0.0]), fb.tensor([0.0]), fb.tensor(0.0)
    >>> hyper = (0.5, 0.9, 0.999, 1e-8, 0.0, False, False, False)
    >>> fb.ops.adam_step_([p], [fb.tensor([2.0])], [m], [v], [], [t], *hyper)
    >>> p, t
    (tensor([0.5000]), tensor(1.))
    """
    for i, param in enumerate(params):
        step = advanced(steps[i])
        grad = shrunk(param, grads[i], lr, weight_decay, decoupled, maximize)
        first = blended(exp_avgs[i], grad, beta1)
        second = blended(exp_avg_sqs[i], grad * grad, beta2)
        if amsgrad:
            second = max_exp_avg_sqs[i].clone().maximum(second)
            max_exp_avg_sqs[i].copy_(second)

        step_size = lr / (1 - beta1**step)
        denominator = second.sqrt() / (1 - beta2**step) ** 0.5 + eps
        param.sub_(scaled(first, step_size) / denominator)


def advanced(step: Tensor) -> float:
    """The number of the step that begins, counted in place."""
    return step.add_(1).item()


def decayed(param: Tensor, grad: Tensor, weight_decay: float | Tensor, maximize: bool) -> Tensor:
    """``±grad + weight_decay * param``, minus where `maximize`."""
    grad = -grad if maximize else grad
    return grad if is_zero(weight_decay) else grad + scaled(param, weight_decay)


def shrunk(
    param: Tensor,
    grad: Tensor,
    lr: float | Tensor,
    weight_decay: float | Tensor,
    decoupled: bool,
    maximize: bool,
) -> Tensor:
    """The gradient with the decay in it; where `decoupled`, the decay changes `param` instead."""
    if not decoupled:
        return decayed(param, grad, weight_decay, maximize)
    if not is_zero(weight_decay):
        param.copy_(scaled(param, 1 - lr * weight_decay))
    return -grad if maximize else grad


def blended(average: Tensor, value: Tensor, keep: float | Tensor) -> Tensor:
    """The running mean ``keep * average + (1 - keep) * value``, stored in `average` too."""
    mean = scaled(average, keep) + scaled(value, 1 - keep)
    average.copy_(mean)
    return mean


def scaled(tensor: Tensor, factor: float | Tensor) -> Tensor:
    """``tensor * factor``; a tensor `factor` multiplies a copy.

    The product keeps what the gradient of the factor needs, and the next step overwrites `tensor`.
    """
    return tensor * factor if isinstance(factor, (int, float)) else tensor.clone() * factor


def is_zero(value: float | Tensor) -> bool:
    """Whether `value` is the plain number 0; a tensor is a variable even where it holds 0."""
    return isinstance(value, (int, float)) and value == 0
