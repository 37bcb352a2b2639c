"""Losses of pairs and triplets: which of them should be alike, or first."""

from __future__ import annotations

from collections.abc import Callable

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import check_reduction, choose_reduction, reduced
from flambeau.overrides import takes_as_annotated


@takes_as_annotated
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - `margin`) where it is -1.

    Shapes: inputs (N, D) and target (N), or (D) and (); result () or, for ``"none"``, as target.

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: the shapes do not fit.

    >>> import flambeau as fb
    >>> x, y = fb.tensor([[1.0, 0.0]]), fb.tensor([[3.0, 4.0]])
    >>> fb.nn.functional.cosine_embedding_loss(x, y, fb.tensor([1]))
    tensor(0.4000)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    return fb.cosine_embedding_loss(input1, input2, target, margin, reduction)


@takes_as_annotated
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1, max(0, `margin` - x) where it is -1.

    Shapes: target as input; result () or, for ``"none"``, as input.

    Raises:
        ValueError: an unknown `reduction`.

    >>> import flambeau as fb
    >>> fb.nn.functional.hinge_embedding_loss(fb.tensor([2.0, 0.25]), fb.tensor([1, -1]))
    tensor(1.3750)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    return fb.hinge_embedding_loss(input, target, margin, reduction)


@takes_as_annotated
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -t·(x1 - x2) + `margin`): t = 1 wants x1 larger, t = -1 wants x2 larger.

    Shapes: all of one number of dimensions; result () or, for ``"none"``, the common shape.

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: the numbers of dimensions differ.

    >>> import flambeau as fb
    >>> x, y = fb.tensor([1.0]), fb.tensor([3.0])
    >>> fb.nn.functional.margin_ranking_loss(x, y, fb.tensor([1]))
    tensor(2.)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    require_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return fb.margin_ranking_loss(input1, input2, target, margin, reduction)


@takes_as_annotated
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + `margin`), d as `pairwise_distance`.

    With `swap` the second distance is the smaller of those from the anchor and from the positive
    example (Balntas et al., 2016).

    Shapes: all (N, D) or (D); result () or, for ``"none"``, (N).

    Raises:
        ValueError: an unknown `reduction`, or a margin that is not positive.
        RuntimeError: the numbers of dimensions differ.

    >>> import flambeau as fb
    >>> a, p, n = fb.zeros(1, 1), fb.ones(1, 1), fb.tensor([[1.5]])
    >>> fb.nn.functional.triplet_margin_loss(a, p, n)
    tensor(0.5000)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    _check_margin(margin)
    return fb.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


@takes_as_annotated
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with another distance than `pairwise_distance`.

    Raises:
        ValueError: an unknown `reduction`, or a margin that is not positive.
        RuntimeError: the numbers of dimensions differ.

    >>> import flambeau as fb
    >>> a, p, n = fb.zeros(1, 1), fb.ones(1, 1), fb.tensor([[1.5]])
    >>> distance = lambda x, y: (x - y).abs().sum(-1)
    >>> fb.nn.functional.triplet_margin_with_distance_loss(a, p, n, distance_function=distance)
    tensor(0.5000)
    """
    check_reduction(reduction)
    _check_margin(margin)
    where = "triplet_margin_with_distance_loss"
    require_tensors(where, anchor=anchor, positive=positive, negative=negative)
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    distance = distance_function or fb.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = fb.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
