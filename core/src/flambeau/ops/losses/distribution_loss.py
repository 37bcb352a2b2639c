"""Losses of predicted distributions: of a whole one, and of counts."""

from __future__ import annotations

import math

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.losses.loss_reduction import reduced
from flambeau.ops.special_functions.special import xlogy


@public(method=False)
def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", *, log_target: bool = False
) -> Tensor:
    """t·(log(t) - x) for log-probabilities x, with 0·log(0) = 0.

    With `log_target` the target holds logarithms too.  `reduction` is a name, or 0, 1 or 2 for
    none, mean and sum.

    Shapes: target broadcastable to input; result () or, for ``"none"``, as input.

    >>> import flambeau as fb
    >>> fb.kl_div(fb.tensor([0.5]).log(), fb.tensor([1.0]), reduction="sum")
    tensor(0.6931)
    """
    x, t = need_tensor(input, "kl_div", "input"), need_tensor(target, "kl_div", "target")
    if log_target:
        loss = t.exp() * (t - x)
    else:
        product = t * x  # what it keeps for gradients is kept first, as by PyTorch
        loss = xlogy(t, t) - product
    return reduced(loss, reduction)


@public(method=False)
@takes_as_annotated
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: str
) -> Tensor:
    """exp(x) - t·x for logarithms x of rates, or else x - t·log(x + `eps`).

    With `full` Stirling's approximation of log(t!), t·log(t) - t + log(2π·t) / 2, is added where
    t > 1.

    >>> import flambeau as fb
    >>> fb.poisson_nll_loss(fb.tensor([0.0]), fb.tensor([1.0]), True, False, 1e-8, "sum")
    tensor(1.)
    """
    x = need_tensor(input, "poisson_nll_loss", "input")
    t = need_tensor(target, "poisson_nll_loss", "target")
    loss = x.exp() - t * x if log_input else x - t * (x + eps).log()
    if full:
        stirling = t * t.log() - t + 0.5 * (t * (2 * math.pi)).log()
        loss = loss + stirling.masked_fill(t <= 1, 0)
    return reduced(loss, reduction)
