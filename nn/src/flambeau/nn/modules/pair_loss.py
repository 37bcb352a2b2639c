"""Losses of pairs and triplets as modules."""

from __future__ import annotations

from collections.abc import Callable

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.distance import PairwiseDistance
from flambeau.nn.modules.loss_reduction import _Loss


class _MarginLoss(_Loss):
    """A loss with a margin."""

    margin: float

    def __init__(
        self,
        margin: float,
        size_average: bool | None,
        reduce: bool | None,
        reduction: str,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_MarginLoss):
    """Small for like (1) and unlike (-1) pairs; see `functional.cosine_embedding_loss`.

    >>> import flambeau as fb
    >>> x, y = fb.tensor([[1.0, 0.0]]), fb.tensor([[3.0, 4.0]])
    >>> fb.nn.CosineEmbeddingLoss()(x, y, fb.tensor([1]))
    tensor(0.4000)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of pairs."""
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class HingeEmbeddingLoss(_MarginLoss):
    """x for like (1) pairs, max(0, margin - x) for others (-1).

    See `functional.hinge_embedding_loss`.

    >>> import flambeau as fb
    >>> fb.nn.HingeEmbeddingLoss()(fb.tensor([2.0, 0.25]), fb.tensor([1, -1]))
    tensor(1.3750)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of distances."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """max(0, -t·(x1 - x2) + margin); see `functional.margin_ranking_loss`.

    >>> import flambeau as fb
    >>> fb.nn.MarginRankingLoss()(fb.tensor([1.0]), fb.tensor([3.0]), fb.tensor([1]))
    tensor(2.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of pairs of scores."""
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class TripletMarginLoss(_MarginLoss):
    """Wants the positive example nearer than the negative one by a margin.

    See `functional.triplet_margin_loss`.

    Raises:
        ValueError: the margin is not positive.

    >>> import flambeau as fb
    >>> fb.nn.TripletMarginLoss()(fb.zeros(1, 1), fb.ones(1, 1), fb.tensor([[1.5]]))
    tensor(0.5000)
    """

    p: float
    eps: float
    swap: bool

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)
        _check_margin(type(self).__name__, margin)
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss of triplets."""
        return F.triplet_margin_loss(
            *(anchor, positive, negative, self.margin, self.p, self.eps, self.swap),
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of one's own.

    Raises:
        ValueError: the margin is not positive.

    >>> import flambeau as fb
    >>> loss = fb.nn.TripletMarginWithDistanceLoss(
    ...     distance_function=lambda x, y: (x - y).abs().sum(-1)
    ... )
    >>> loss(fb.zeros(1, 1), fb.ones(1, 1), fb.tensor([[1.5]]))
    tensor(0.5000)
    """

    distance_function: Callable[[Tensor, Tensor], Tensor]
    margin: float
    swap: bool

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_margin(type(self).__name__, margin)
        self.distance_function = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss of triplets."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")
