"""Losses of classification as modules."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.loss_reduction import _WeightedLoss


class NLLLoss(_WeightedLoss):
    """-w[t]·x[t] for log-probabilities x and classes t; see `functional.nll_loss`.

    Shapes: input (N, C) or (N, C, d1, ...), target without C, weight (C).

    >>> import flambeau as fb
    >>> fb.nn.NLLLoss()(fb.tensor([[-0.5, -1.0]]), fb.tensor([0]))
    tensor(0.5000)
    """

    ignore_index: int

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of log-probabilities."""
        return F.nll_loss(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """The older name of `NLLLoss` for images; that one takes them too.

    >>> import flambeau as fb
    >>> fb.nn.NLLLoss2d()(fb.zeros(1, 2, 3, 3), fb.zeros(1, 3, 3, dtype=fb.int64)) == 0
    tensor(True)
    """


class CrossEntropyLoss(_WeightedLoss):
    """-log(softmax(x)[t]) for scores x and classes (or class probabilities) t, reduced.

    See `functional.cross_entropy`.  Shapes: input (C), (N, C) or (N, C, d1, ...), target without C
    or as input, weight (C).

    >>> import flambeau as fb
    >>> fb.nn.CrossEntropyLoss()(fb.tensor([[2.0, 0.0]]), fb.tensor([0]))
    tensor(0.1269)
    """

    ignore_index: int
    label_smoothing: float

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
