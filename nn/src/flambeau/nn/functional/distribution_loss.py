"""Losses of predicted distributions."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional._arguments import (
    check_reduction,
    choose_reduction,
    legacy_reduction,
    readable,
    reduced,
)
from flambeau.overrides import takes_as_annotated, warn


@takes_as_annotated
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """t·(log(t) - x) for log-probabilities x (Kullback & Leibler, 1951), with 0·log(0) = 0.

    With `log_target` the target holds logarithms too.  ``"batchmean"`` divides the sum by the
    first size, which is the divergence's definition; ``"mean"`` divides by all of them and warns.

    Shapes: target broadcastable to input; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`.

    >>> import flambeau as fb
    >>> x, t = fb.tensor([[0.5, 0.5]]).log(), fb.tensor([[1.0, 0.0]])
    >>> fb.nn.functional.kl_div(x, t, reduction="batchmean")
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
        )
    if reduction != "batchmean":
        return fb.kl_div(input, target, reduction, log_target=log_target)
    total = fb.kl_div(input, target, "sum", log_target=log_target)
    return total / input.shape[0] if input.dim() else total


@takes_as_annotated
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(x) - t·x for logarithms x of rates of counts t, or else x - t·log(x + `eps`).

    With `full` Stirling's approximation of log(t!), t·log(t) - t + log(2π·t) / 2, is added where
    t > 1.

    Shapes: target as input; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`.

    >>> import flambeau as fb
    >>> fb.nn.functional.poisson_nll_loss(fb.tensor([0.0]), fb.tensor([1.0]))
    tensor(1.)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    return fb.poisson_nll_loss(input, target, log_input, full, eps, reduction)


@takes_as_annotated
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(v) + (x - t)² / v) / 2 for means x and variances v, the latter not below `eps`.

    The limit does not show in gradients.  With `full` the constant log(2π) / 2 is added.

    Shapes: target as input or broadcastable; `var` a number, as input, or with one dimension of
    size 1 or missing at the end; result () or, for ``"none"``, as input.

    Raises:
        ValueError: a negative variance or a wrong shape of `var`, or an unknown `reduction`.

    >>> import flambeau as fb
    >>> fb.nn.functional.gaussian_nll_loss(fb.tensor([1.0]), fb.tensor([3.0]), 4.0)
    tensor(1.1931)
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError(f"var has negative entry/entries: {var}")
        var = input.new_full((), var).expand(input.shape)
    elif readable(var) and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or [
            m for n, m in zip(input.shape, var.shape, strict=True) if n != m
        ] != [1]:
            raise ValueError(
                f"var is of incorrect size: {list(var.shape)} for input {list(input.shape)}"
            )
    check_reduction(reduction)
    var = var + (var.detach().clamp(min=eps) - var.detach())
    loss = 0.5 * (var.log() + (input - target).square() / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)
