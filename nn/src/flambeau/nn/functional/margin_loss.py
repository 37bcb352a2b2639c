"""Losses of classification that ask the right classes to win by a margin."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import choose_reduction, reduced
from flambeau.nn.functional.activation import logsigmoid
from flambeau.overrides import takes_as_annotated


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
    require_tensors("multi_margin_loss", input=input)
    return fb.multi_margin_loss(input, target, p, margin, weight, reduction)


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
    require_tensors("multilabel_margin_loss", input=input)
    return fb.multilabel_margin_loss(input, target, reduction)


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
