"""Losses of predicted distributions, as modules."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.loss_reduction import _Loss


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of log-probabilities; see `functional.kl_div`.

    >>> import flambeau as fb
    >>> x, t = fb.tensor([[0.5, 0.5]]).log(), fb.tensor([[1.0, 0.0]])
    >>> fb.nn.KLDivLoss(reduction="batchmean")(x, t)
    tensor(0.6931)
    """

    log_target: bool

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of log-probabilities."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """The loss of predicted rates of counts; see `functional.poisson_nll_loss`.

    >>> import flambeau as fb
    >>> fb.nn.PoissonNLLLoss()(fb.tensor([0.0]), fb.tensor([1.0]))
    tensor(1.)
    """

    log_input: bool
    full: bool
    eps: float

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The loss of rates or their logarithms."""
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The loss of predicted means and variances; see `functional.gaussian_nll_loss`.

    >>> import flambeau as fb
    >>> fb.nn.GaussianNLLLoss()(fb.tensor([1.0]), fb.tensor([3.0]), fb.tensor([4.0]))
    tensor(1.1931)
    """

    full: bool
    eps: float

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """The loss of means and variances."""
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )
