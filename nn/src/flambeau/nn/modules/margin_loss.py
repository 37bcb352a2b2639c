"""Losses of classification by a margin, as modules."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.loss_reduction import _Loss, _WeightedLoss


class MultiMarginLoss(_WeightedLoss):
    """Wants the right class to win by a margin; see `functional.multi_margin_loss`.

    Raises:
        ValueError: `p` is neither 1 nor 2, or `weight` is no vector.

    >>> import flambeau as fb
    >>> fb.nn.MultiMarginLoss()(fb.tensor([0.25, 0.5]), fb.tensor(1))
    tensor(0.3750)
    """

    p: int
    margin: float

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores."""
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class MultiLabelMarginLoss(_Loss):
    """Wants all right classes to win by a margin; see `functional.multilabel_margin_loss`.

    >>> import flambeau as fb
    >>> fb.nn.MultiLabelMarginLoss()(fb.tensor([0.25, 0.5]), fb.tensor([1, -1]))
    tensor(0.3750)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Cross entropy of a yes or no for each class.

    See `functional.multilabel_soft_margin_loss`.

    >>> import flambeau as fb
    >>> fb.nn.MultiLabelSoftMarginLoss()(fb.zeros(1, 2), fb.ones(1, 2))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores."""
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class SoftMarginLoss(_Loss):
    """log(1 + exp(-t·x)) for targets of 1 and -1; see `functional.soft_margin_loss`.

    >>> import flambeau as fb
    >>> fb.nn.SoftMarginLoss()(fb.tensor([0.0]), fb.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)
