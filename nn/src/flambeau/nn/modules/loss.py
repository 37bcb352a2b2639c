"""Losses as modules: they keep the settings of a function in `nn.functional`."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.functional._arguments import legacy_reduction
from flambeau.nn.module import Module


class _Loss(Module):
    """The reduction; `size_average` and `reduce` are older arguments that choose it and warn."""

    reduction: str

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_reduction(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with a weight per class or element, which moves with the module."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


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
