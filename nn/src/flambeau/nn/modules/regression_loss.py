"""Losses of regression as modules."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.loss_reduction import _Loss


class L1Loss(_Loss):
    """abs(x - t), reduced; see `functional.l1_loss`.

    >>> import flambeau as fb
    >>> fb.nn.L1Loss()(fb.tensor([1.0, 2.0]), fb.zeros(2))
    tensor(1.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of a prediction."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(x - t)², reduced; see `functional.mse_loss`.

    >>> import flambeau as fb
    >>> fb.nn.MSELoss()(fb.tensor([1.0, 2.0]), fb.zeros(2))
    tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of a prediction."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Quadratic up to `beta`, linear beyond; see `functional.smooth_l1_loss`.

    >>> import flambeau as fb
    >>> fb.nn.SmoothL1Loss(reduction="none")(fb.tensor([0.5, 3.0]), fb.zeros(2))
    tensor([0.1250, 2.5000])
    """

    beta: float

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of a prediction."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Quadratic up to `delta`, linear beyond; see `functional.huber_loss`.

    >>> import flambeau as fb
    >>> fb.nn.HuberLoss(reduction="none", delta=2.0)(fb.tensor([0.5, 3.0]), fb.zeros(2))
    tensor([0.1250, 4.0000])
    """

    delta: float

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of a prediction."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)
