"""Steps of the optimisers that give every element a step size of its own (see `optimizer`).

In all of them g = ±grad + weight_decay·p, minus where `maximize`, and `steps` holds one 0-d
floating tensor t per parameter, on any device, that the step counts up first.  Parameters are
real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.ops.optimisers.optimizer import advanced, blended, decayed, scaled, shrunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau import Tensor


def rmsprop_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    grad_avgs: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float | Tensor,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    """One step of RMSprop (Hinton, 2012, lecture 6) on every parameter, in place.

    v ← αv + (1 - α)g²;  d = g / (√v + ε);  with momentum μ, b ← μb + d and d = b;  p ← p - lr·d.
    Where `centered`, m ← αm + (1 - α)g, and v - m² takes the place of v under the root.

    `grad_avgs` is empty where not `centered`, `momentum_buffers` where `momentum` is zero.

    >>> import flambeau as fb
    >>> p, v, t = fb.tensor([1.0]), fb.tensor([0.0]), fb.tensor(0.0)
    >>> hyper = (0.5, 0.0, 0.0, 0.0, 0.0, False, False)
    >>> fb.ops.rmsprop_step_([p], [fb.tensor([3.0])], [v], [], [], [t], *hyper)
    >>> p, v
    (tensor([0.5000]), tensor([9.]))
    """
    for i, param in enumerate(params):
        steps[i].add_(1)
        grad = decayed(param, grads[i], weight_decay, maximize)
        variance = blended(square_avgs[i], grad * grad, alpha)
        if centered:
            mean = blended(grad_avgs[i], grad, alpha)
            variance = variance - mean * mean
        update = grad / (variance.sqrt() + eps)
        if momentum > 0:
            update = momentum_buffers[i] * momentum + update
            momentum_buffers[i].copy_(update)
        param.sub_(scaled(update, lr))


def adagrad_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    sums: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float | Tensor,
    lr_decay: float,
    eps: float,
    weight_decay: float | Tensor,
    maximize: bool,
) -> None:
    """One step of Adagrad (Duchi et al., 2011) on every parameter, in place.

    s ← s + g²;  p ← p - lr/(1 + (t - 1)·lr_decay) · g / (√s + ε).

    >>> import flambeau as fb
    >>> p, s, t = fb.tensor([1.0]), fb.tensor([0.0]), fb.tensor(0.0)
    >>> fb.ops.adagrad_step_([p], [fb.tensor([3.0])], [s], [t], 0.5, 0.0, 0.0, 0.0, False)
    >>> p, s
    (tensor([0.5000]), tensor([9.]))
    """
    for i, param in enumerate(params):
        rate = lr / (1 + (advanced(steps[i]) - 1) * lr_decay)
        grad = decayed(param, grads[i], weight_decay, maximize)
        total = sums[i] + grad * grad
        sums[i].copy_(total)
        param.sub_(scaled(grad / (total.sqrt() + eps), rate))


def adadelta_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    acc_deltas: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float | Tensor,
    maximize: bool,
) -> None:
    """One step of Adadelta (Zeiler, 2012) on every parameter, in place.

    v ← ρv + (1 - ρ)g²;  Δ = g · √(u + ε) / √(v + ε);  u ← ρu + (1 - ρ)Δ²;  p ← p - lr·Δ.

    >>> import flambeau as fb
    >>> p, v, u, t = fb.tensor([1.0]), fb.tensor([0.0]), fb.tensor([0.0]), fb.tensor(0.0)
    >>> hyper = (0.5, 0.0, 1.0, 0.0, False)
    >>> fb.ops.adadelta_step_([p], [fb.tensor([0.0])], [v], [u], [t], *hyper)
    >>> p, t
    (tensor([1.]), tensor(1.))
    """
    for i, param in enumerate(params):
        steps[i].add_(1)
        grad = decayed(param, grads[i], weight_decay, maximize)
        square = blended(square_avgs[i], grad * grad, rho)
        delta = (acc_deltas[i] + eps).sqrt() / (square + eps).sqrt() * grad
        blended(acc_deltas[i], delta * delta, rho)
        param.sub_(scaled(delta, lr))


def adamax_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_infs: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float | Tensor,
    maximize: bool,
) -> None:
    """One step of Adamax (Kingma & Ba, 2015, algorithm 2) on every parameter, in place.

    m ← β₁m + (1 - β₁)g;  u ← max(β₂u, |g| + ε);  p ← p - lr/(1 - β₁ᵗ) · m / u.

    >>> import flambeau as fb
    >>> p, m, u, t = fb.tensor([1.0]), fb.tensor([0.0]), fb.tensor([0.0]), fb.tensor(0.0)
    >>> hyper = (0.5, 0.9, 0.999, 0.0, 0.0, False)
    >>> fb.ops.adamax_step_([p], [fb.tensor([-3.0])], [m], [u], [t], *hyper)
    >>> p, u
    (tensor([1.5000]), tensor([3.]))
    """
    for i, param in enumerate(params):
        step_size = lr / (1 - beta1 ** advanced(steps[i]))
        grad = decayed(param, grads[i], weight_decay, maximize)
        mean = blended(exp_avgs[i], grad, beta1)
        largest = (exp_infs[i] * beta2).maximum(grad.abs() + eps)
        exp_infs[i].copy_(largest)
        param.sub_(scaled(mean, step_size) / largest)


def nadam_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    mu_products: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float | Tensor,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    """One step of Adam with Nesterov momentum (Dozat, 2016) on every parameter, in place.

    m ← β₁m + (1 - β₁)g;  v ← β₂v + (1 - β₂)g²;  μₜ = β₁(1 - 0.96^(tψ)/2);  M ← Mμₜ;
    p ← p - lr · [(1 - μₜ)/(1 - M) · g + μₜ₊₁/(1 - Mμₜ₊₁) · m] / (√(v/(1 - β₂ᵗ)) + ε).
    ψ is `momentum_decay`; `decoupled` is as in `adam_step_`.

    `mu_products` holds the 0-d product M per parameter, on any device.

    >>> import flambeau as fb
    >>> p, m, v = fb.tensor([1.0]), fb.tensor([0.0]), fb.tensor([0.0])
    >>> product, t = fb.tensor(1.0), fb.tensor(0.0)
    >>> hyper = (0.5, 0.5, 0.999, 0.0, 0.0, 0.0, False, False)
    >>> fb.ops.nadam_step_([p], [fb.tensor([2.0])], [m], [v], [product], [t], *hyper)
    >>> p, product
    (tensor([0.4333]), tensor(0.2500))
    """
    for i, param in enumerate(params):
        step = advanced(steps[i])
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
        product = mu_products[i].mul_(mu).item()
        grad = shrunk(param, grads[i], lr, weight_decay, decoupled, maximize)
        first = blended(exp_avgs[i], grad, beta1)
        second = blended(exp_avg_sqs[i], grad * grad, beta2)
        denominator = (second / (1 - beta2**step)).sqrt() + eps
        param.sub_(scaled(grad, lr * (1 - mu) / (1 - product)) / denominator)
        param.sub_(scaled(first, lr * mu_next / (1 - product * mu_next)) / denominator)


def radam_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float | Tensor,
    decoupled: bool,
    maximize: bool,
) -> None:
    """One step of rectified Adam (Liu et al., 2020) on every parameter, in place.

    m ← β₁m + (1 - β₁)g;  v ← β₂v + (1 - β₂)g²;  p ← p - lr · m̂ · r √(1 - β₂ᵗ) / (√v + ε), or
    p ← p - lr · m̂ while v averages too few squares for a variance, with m̂ = m/(1 - β₁ᵗ).
    `rectification` gives r; `decoupled` is as in `adam_step_`.

    >>> import flambeau as fb
    >>> p, m, v, t = fb.tensor([1.0]), fb.tensor([0.0]), fb.tensor([0.0]), fb.tensor(0.0)
    >>> hyper = (0.25, 0.9, 0.999, 1e-8, 0.0, False, False)
    >>> fb.ops.radam_step_([p], [fb.tensor([2.0])], [m], [v], [t], *hyper)
    >>> p, t
    (tensor([0.5000]), tensor(1.))
    """
    for i, param in enumerate(params):
        step = advanced(steps[i])
        grad = shrunk(param, grads[i], lr, weight_decay, decoupled, maximize)
        update = blended(exp_avgs[i], grad, beta1)
        second = blended(exp_avg_sqs[i], grad * grad, beta2)
        factor = rectification(beta2, step)
        if factor:
            update = update / (second.sqrt() + eps) * factor
        param.sub_(scaled(update, lr / (1 - beta1**step)))


def rectification(beta2: float, step: float) -> float:
    """The factor r √(1 - β₂ᵗ) of RAdam, or 0 while its average is too short for a variance.

    With ρ∞ = 2/(1 - β₂) - 1 and ρ = ρ∞ - 2tβ₂ᵗ/(1 - β₂ᵗ), the length of the average:
    r² = (ρ - 4)(ρ - 2)ρ∞ / ((ρ∞ - 4)(ρ∞ - 2)ρ) where ρ > 5.
    """
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    if length <= 5.0:
        return 0.0
    square = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return (square * correction) ** 0.5


def rprop_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    prevs: Sequence[Tensor],
    step_sizes: Sequence[Tensor],
    steps: Sequence[Tensor],
    shrink: float,
    grow: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> None:
    """One step of resilient backpropagation (Riedmiller & Braun, 1993), in place.

    Where g = ±grad has the sign of the last one, s ← grow·s; where it changed sign, s ← shrink·s
    and g ← 0; s is clamped to [`smallest`, `largest`].  Then p ← p - s·sign(g).

    >>> import flambeau as fb
    >>> p, last, s, t = fb.tensor([1.0]), fb.tensor([1.0]), fb.tensor([0.25]), fb.tensor(0.0)
    >>> hyper = (0.5, 2.0, 1e-6, 50.0, False)
    >>> fb.ops.rprop_step_([p], [fb.tensor([3.0])], [last], [s], [t], *hyper)
    >>> p, s
    (tensor([0.5000]), tensor([0.5000]))
    """
    for i, param in enumerate(params):
        steps[i].add_(1)
        grad = -grads[i] if maximize else grads[i]
        agreement = grad * prevs[i].clone()
        turned = agreement < 0
        grad = grad.masked_fill(turned, 0)
        factor = grad.new_ones(grad.shape).masked_fill(turned, shrink)
        factor = factor.masked_fill(agreement > 0, grow)
        size = (step_sizes[i] * factor).clamp(smallest, largest)
        step_sizes[i].copy_(size)
        prevs[i].copy_(grad)
        param.sub_(grad.sign() * size)
