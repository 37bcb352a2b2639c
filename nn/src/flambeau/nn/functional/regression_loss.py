"""Losses of regression: distances between a prediction and a number."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import choose_reduction, reduced
from flambeau.overrides import takes_as_annotated, warn


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(x - t)²; with `weight`, ``"mean"`` divides by the sum of the weights.

    Shapes: input, target and weight alike; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`, or a weight of another shape.

    >>> import flambeau as fb
    >>> fb.nn.functional.mse_loss(fb.tensor([1.0, 2.0]), fb.tensor([0.0, 0.0]))
    tensor(2.5000)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    input, target = _alike(input, target, weight)
    if weight is not None:
        return _weighted((input - target).square(), weight, reduction)
    return fb.mse_loss(input, target, reduction)


@takes_as_annotated
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """abs(x - t); with `weight`, ``"mean"`` divides by the sum of the weights.

    Shapes: input, target and weight alike; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`, or a weight of another shape.

    >>> import flambeau as fb
    >>> fb.nn.functional.l1_loss(fb.tensor([1.0, 2.0]), fb.tensor([0.0, 0.0]))
    tensor(1.5000)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    input, target = _alike(input, target, weight)
    return _weighted((input - target).abs(), weight, reduction)


@takes_as_annotated
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2·`beta`) where d = abs(x - t) < `beta`, else d - `beta` / 2 (Girshick, 2015).

    Shapes: input and target alike; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: `beta` is negative.

    >>> import flambeau as fb
    >>> fb.nn.functional.smooth_l1_loss(fb.tensor([0.5, 3.0]), fb.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    input, target = _alike(input, target, None)
    return fb.smooth_l1_loss(input, target, reduction, beta)


@takes_as_annotated
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d² / 2 where d = abs(x - t) < `delta`, else `delta`·(d - `delta` / 2) (Huber, 1964).

    With `weight`, ``"mean"`` divides by the sum of the weights.

    Shapes: input, target and weight alike; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`, or a weight of another shape.
        RuntimeError: `delta` is not positive.

    >>> import flambeau as fb
    >>> fb.nn.functional.huber_loss(fb.tensor([0.5, 3.0]), fb.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    reduction = choose_reduction(reduction, None, None)
    input, target = _alike(input, target, weight)
    if weight is None:
        return fb.huber_loss(input, target, reduction, delta)
    return _weighted(fb.huber_loss(input, target, "none", delta), weight, reduction)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduced(loss, reduction)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


def _alike(input: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Both in one shape; a target of another shape is usually a mistake, so that warns."""
    require_tensors("loss", input=input, target=target)
    if weight is not None:
        require_tensors("loss", weight=weight)
    if weight is not None and weight.shape != input.shape:
        raise ValueError(
            "Weights and input must have the same size, "
            f"got {list(weight.shape)} and {list(input.shape)}."
        )
    if target.shape == input.shape:
        return input, target
    warn(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}). This will likely lead to incorrect results due to broadcasting. Please "
        "ensure they have the same size.",
    )
    input, target = fb.broadcast_tensors(input, target)
    return input, target
