"""Losses of yes-or-no targets as modules."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.loss_reduction import _Loss, _WeightedLoss


class BCELoss(_WeightedLoss):
    """-w·(t·log(x) + (1 - t)·log(1 - x)) for probabilities x.

    See `functional.binary_cross_entropy`.

    >>> import flambeau as fb
    >>> fb.nn.BCELoss()(fb.tensor([0.5]), fb.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of probabilities."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of sigmoid(x); see `functional.binary_cross_entropy_with_logits`.

    `pos_weight` multiplies the loss of positive targets.

    >>> import flambeau as fb
    >>> fb.nn.BCEWithLogitsLoss()(fb.tensor([0.0]), fb.tensor([1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )
