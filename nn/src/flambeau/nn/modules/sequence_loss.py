"""Losses of sequences as modules."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.loss_reduction import _Loss


class CTCLoss(_Loss):
    """The loss of a sequence of unknown alignment; see `functional.ctc_loss`.

    >>> import flambeau as fb
    >>> y = fb.zeros(3, 1, 2).log_softmax(2)
    >>> fb.nn.CTCLoss()(y, fb.tensor([[1]]), fb.tensor([3]), fb.tensor([1]))
    tensor(0.2877)
    """

    blank: int
    zero_infinity: bool

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int] | int,
        target_lengths: Tensor | Sequence[int] | int,
    ) -> Tensor:
        """The loss of log-probabilities."""
        return F.ctc_loss(
            *(log_probs, targets, input_lengths, target_lengths),
            *(self.blank, self.reduction, self.zero_infinity),
        )
