"""Losses of classification that ask the right classes to win by a margin.

No file of ops has this name: they are made of other ops here, and no device has kernels for them.
"""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import choose_reduction, readable, reduced
from flambeau.nn.functional.activation import logsigmoid
from flambeau.overrides import checked, takes_as_annotated


@takes_as_annotated
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ_j w[t]·max(0, `margin` - x[t] + x[j])^`p` / C over the classes j other than t.

    Shapes: input (N, C) or (C), target (N) or () of int64, weight (C); result () or, for
    ``"none"``, as target.

    Raises:
        ValueError: an unknown `reduction`, `p` is neither 1 nor 2, or `weight` is no vector.
        RuntimeError: other shapes or dtypes do not fit, or a target is no class.

    >>> import flambeau as fb
    >>> fb.nn.functional.multi_margin_loss(fb.tensor([0.25, 0.5]), fb.tensor(1))
    tensor(0.3750)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got shape {list(weight.shape)}")
    rows, classes = _rows("multi_margin_loss", input), target.reshape(-1)
    count = rows.shape[1]
    if target.dim() > 1 or target.numel() != rows.shape[0]:
        raise RuntimeError(
            f"inconsistent target size, expected {[rows.shape[0]]} but got {list(target.shape)}"
        )
    if weight is not None and weight.numel() != count:
        raise RuntimeError(f"inconsistent weight size, expected {count} but got {weight.numel()}")
    if target.dtype is not fb.int64:
        raise RuntimeError(f"multi_margin_loss: expected a target of int64, got {target.dtype}")
    text = f"target out of range: classes are 0 to {count - 1}"
    classes = checked(classes, count, RuntimeError, text, ())
    column = classes.unsqueeze(1)
    own = column == fb.arange(count, device=rows.device)
    excess = (margin - rows.gather(1, column) + rows).clamp_min(0).masked_fill(own, 0)
    if p == 2:
        excess = excess * excess
    if weight is not None:
        excess = excess * weight[classes].unsqueeze(1)
    loss = excess.sum(1) / count
    single = reduction == "none" and target.dim() == 0
    return loss.reshape(()) if single else reduced(loss, reduction)


@takes_as_annotated
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ_tj max(0, 1 - x[t] + x[j]) / C over the right classes t and the others j.

    A row of the target lists the right classes; the first -1 ends the list.

    Shapes: input and target (N, C) or (C), the target of int64; result () or, for ``"none"``, (N)
    or ().

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: the shapes or dtypes do not fit, or a target is no class.

    >>> import flambeau as fb
    >>> x, t = fb.tensor([0.25, 0.5]), fb.tensor([1, -1])
    >>> fb.nn.functional.multilabel_margin_loss(x, t)
    tensor(0.3750)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    rows = _rows("multilabel_margin_loss", input)
    alone = target.numel() == input.numel() == 1 and target.dim() < 2 and input.dim() < 2
    if target.shape != input.shape and not alone:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    if target.dtype is not fb.int64:
        raise RuntimeError(
            f"multilabel_margin_loss: expected a target of int64, got {target.dtype}"
        )
    count = rows.shape[1]
    labels = target.reshape(rows.shape)
    if (
        readable(labels)
        and labels.numel()
        and not -1 <= int(labels.min()) <= int(labels.max()) < count
    ):
        raise RuntimeError(f"multilabel_margin_loss: a target is not in [-1, {count})")
    listed = (labels >= 0).long().cumprod(1) > 0
    labels = labels.masked_fill(~listed, 0)
    right = fb.zeros_like(rows, dtype=fb.int64).scatter_add(1, labels, listed.long()) > 0
    excess = (1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    excess = excess.masked_fill(~listed.unsqueeze(2) | right.unsqueeze(1), 0)
    loss = excess.sum((1, 2)) / count
    single = reduction == "none" and input.dim() < 2
    return loss.reshape(()) if single else reduced(loss, reduction)


@takes_as_annotated
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of -w·(t·log(sigmoid(x)) + (1 - t)·log(sigmoid(-x))).

    Shapes: input and target (N, C) or (C), weight broadcastable to them; result () or, for
    ``"none"``, without C.

    Raises:
        ValueError: an unknown `reduction`.

    >>> import flambeau as fb
    >>> fb.nn.functional.multilabel_soft_margin_loss(fb.zeros(1, 2), fb.ones(1, 2))
    tensor(0.6931)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    if input.dim() == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-t·x)) for targets t of 1 and -1.

    Shapes: target as input; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`.

    >>> import flambeau as fb
    >>> fb.nn.functional.soft_margin_loss(fb.tensor([0.0]), fb.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    require_tensors("soft_margin_loss", input=input, target=target)
    return reduced((-target * input).exp().log1p(), reduction)


def _rows(name: str, input: Tensor) -> Tensor:
    """The input as a matrix of a row per element of the batch."""
    require_tensors(name, input=input)
    if input.dim() > 2 or (input.dim() and input.shape[-1] == 0):
        raise RuntimeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, "
            f"but got: {list(input.shape)}"
        )
    return input.reshape(1, -1) if input.dim() < 2 else input
