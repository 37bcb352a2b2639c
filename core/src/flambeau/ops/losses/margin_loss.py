"""Losses of classification that ask the right classes to win by a margin."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import zeros_like
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _gather, _index, _scatter_add
from flambeau.ops.layers.gradient_rules import check_shape
from flambeau.ops.losses.loss_reduction import check_reduction

_WEIGHT = "the derivative for 'weight' of multi_margin_loss is not implemented by this op"
_FLOATS = (D.float32, D.float64)


def _reduced(loss: Tensor, classes: int, reduction: str) -> Tensor:
    loss = loss / classes
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _spread(F, g, counts, reduction, factors=None):
    """What counts of scores, which a loss grows by or falls by, are of its gradient."""
    rows, classes = counts.shape
    parts = classes * max(rows, 1) if reduction == "mean" else classes
    share = F.mul(g, F.scalar(1 / parts, g))
    share = F.reshape(share, (rows, 1)) if reduction == "none" else share
    if factors is not None:
        share = F.mul(share, F.reshape(factors, (rows, 1)))
    return F.mul(F.cast_like(counts, g), share)


def _excess(input: Tensor, target: Tensor, margin: float) -> Tensor:
    """By how much each score exceeds that of its row's class less a margin, 0 if it does not."""
    column, classes = target.unsqueeze(1), input.shape[1]
    excess = margin - _gather(input, 1, column) + input
    wins = (excess > 0) & (arange(classes, device=input.device) != column)
    return excess.masked_fill(~wins, 0)


def _weighted(loss: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    return loss if weight is None else loss * _index(weight, (target,))


@composite(results=2, title="MultiMarginLossBackward0")
def _multi_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, margin: float, reduction: str
) -> tuple[Tensor, Tensor]:
    """Σ_j w[t]·max(0, margin - x[t] + x[j]) / C over j other than t.

    And int32 counts (N, C): 1 for each score with a part in it, minus their number for that of t.
    """
    excess = _excess(input, target, margin)
    wins = cast(excess > 0, D.int32)
    falls = -wins.sum(1, keepdim=True, dtype=D.int32)
    counts = _scatter_add(wins, 1, target.unsqueeze(1), falls)
    loss = _weighted(excess.sum(1), target, weight)
    return _reduced(loss, input.shape[1], reduction), counts


@_multi_margin_loss.demand
def _(input: Tensor, target: Tensor, weight: Tensor | None, margin: float, reduction: str) -> None:
    check_shape("multi_margin_loss", "target", target, tuple(input.shape[:-1]))
    check_shape("multi_margin_loss", "weight", weight, tuple(input.shape[1:]))


@_multi_margin_loss.gradient("input")
def _(F, g, target, weight, reduction, result1):
    factors = None if weight is None else F.index(weight, (target,))
    return _spread(F, g[0], result1, reduction, factors)


@_multi_margin_loss.gradient("target")
def _(F, g):
    return None


@_multi_margin_loss.gradient("weight")
def _(F, g):
    raise NotImplementedError(_WEIGHT)


@_multi_margin_loss.samples(D.float32, D.float64)
def _(S):
    classes = S.Arr((4,), D.int64, kind="literal", literal=(2, 0, 1, 0))
    weight = S.Arr((3,), low=0.5, high=2, seed=8, fixed=True)
    return [
        S.Sample((S.Arr((4, 3)), classes, w, margin, reduction), reduction, True)
        for w, margin, reduction in (
            (None, 1.0, "mean"),
            (weight, 0.5, "sum"),
            (None, 1.25, "none"),
        )
    ]


@composite(results=2, title="MultilabelMarginLossBackward0")
def _multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str) -> tuple[Tensor, Tensor]:
    """Σ_tj max(0, 1 - x[t] + x[j]) / C over the classes t before the first -1; and counts."""
    listed = cast(target >= 0, D.int64).cumprod(1) > 0
    labels = target.masked_fill(~listed, 0)
    right = _scatter_add(zeros_like(target), 1, labels, cast(listed, D.int64)) > 0
    excess = 1 - _gather(input, 1, labels).unsqueeze(2) + input.unsqueeze(1)
    wins = (excess > 0) & listed.unsqueeze(2) & ~right.unsqueeze(1)
    loss = excess.masked_fill(~wins, 0).sum((1, 2))
    rises, falls = wins.sum(1, dtype=D.int32), -wins.sum(2, dtype=D.int32)
    return _reduced(loss, input.shape[1], reduction), _scatter_add(rises, 1, labels, falls)


@_multilabel_margin_loss.demand
def _(input: Tensor, target: Tensor, reduction: str) -> None:
    check_shape("multilabel_margin_loss", "target", target, tuple(input.shape))


@_multilabel_margin_loss.gradient("input")
def _(F, g, reduction, result1):
    return _spread(F, g[0], result1, reduction)


@_multilabel_margin_loss.gradient("target")
def _(F, g):
    return None


@_multilabel_margin_loss.samples(D.float32, D.float64)
def _(S):
    lists = S.Arr((3, 4), D.int64, kind="literal", literal=(2, 0, -1, 1, -1, 0, 1, 2, 3, 1, 3, -1))
    return [
        S.Sample((S.Arr((3, 4)), lists, reduction), reduction, True)
        for reduction in ("mean", "sum", "none")
    ]


@public(method=False)
@takes_as_annotated
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ_j w[t]·max(0, `margin` - x[t] + x[j])^`p` / C over the classes j other than t.

    Shapes: input (N, C) or (C), target (N) or () of int64, weight (C); result () or, for
    ``"none"``, as target.

    Raises:
        ValueError: an unknown `reduction`, `p` is neither 1 nor 2, or `weight` is no vector.
        RuntimeError: other shapes or dtypes do not fit, or a target is no class.

    >>> import flambeau as fb
    >>> fb.multi_margin_loss(fb.tensor([0.25, 0.5]), fb.tensor(1))
    tensor(0.3750)
    """
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got shape {list(weight.shape)}")
    rows, given = _rows("multi_margin_loss", input), tuple(target._a.shape)
    classes, count = target if len(given) == 1 else target.reshape((-1,)), rows._a.shape[1]
    if len(given) > 1 or classes._a.shape[0] != rows._a.shape[0]:
        raise RuntimeError(
            f"inconsistent target size, expected {[rows.shape[0]]} but got {list(target.shape)}"
        )
    if weight is not None and weight.numel() != count:
        raise RuntimeError(f"inconsistent weight size, expected {count} but got {weight.numel()}")
    if target.dtype is not D.int64:
        raise RuntimeError(f"multi_margin_loss: expected a target of int64, got {target.dtype}")
    text = f"target out of range: classes are 0 to {count - 1}"
    classes = checked(classes, count, RuntimeError, text, ())
    whole = rows.dtype in _FLOATS and (
        weight is None or (weight.dtype is rows.dtype and not weight.requires_grad)
    )
    if p == 1 and whole:
        loss = _multi_margin_loss.head(rows, classes, weight, float(margin), reduction)
    else:
        excess = _excess(rows, classes, margin)
        powers = excess if p == 1 else excess * excess
        loss = _reduced(_weighted(powers.sum(1), classes, weight), count, reduction)
    return loss.reshape(()) if reduction == "none" and not given else loss


@public(method=False)
@takes_as_annotated
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Σ_tj max(0, 1 - x[t] + x[j]) / C over the right classes t and the others j.

    A row of the target lists the right classes; the first -1 ends the list.

    Shapes: input and target (N, C) or (C), the target of int64; result () or, for ``"none"``, (N)
    or ().

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: the shapes or dtypes do not fit, or a target is no class.

    >>> import flambeau as fb
    >>> fb.multilabel_margin_loss(fb.tensor([0.25, 0.5]), fb.tensor([1, -1]))
    tensor(0.3750)
    """
    check_reduction(reduction)
    rows = _rows("multilabel_margin_loss", input)
    alone = target.numel() == input.numel() == 1 and target.dim() < 2 and input.dim() < 2
    if target._a.shape != input._a.shape and not alone:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    if target.dtype is not D.int64:
        raise RuntimeError(
            f"multilabel_margin_loss: expected a target of int64, got {target.dtype}"
        )
    count, labels = rows._a.shape[1], target.reshape(rows._a.shape)
    text = f"multilabel_margin_loss: a target is not in [-1, {count})"
    labels = checked(labels, count, RuntimeError, text, (), allowed=-1)
    run = _multilabel_margin_loss
    whole = rows.dtype in _FLOATS
    loss = run.head(rows, labels, reduction) if whole else run.body(rows, labels, reduction)[0]
    return loss.reshape(()) if reduction == "none" and input.dim() < 2 else loss


def _rows(name: str, input: Tensor) -> Tensor:
    """The input as a matrix of a row per element of the batch."""
    shape = need_tensor(input, name, "input")._a.shape
    rank = len(shape)
    if rank > 2 or (rank and shape[-1] == 0):
        raise RuntimeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, "
            f"but got: {list(input.shape)}"
        )
    return input.reshape((1, -1)) if rank < 2 else input
