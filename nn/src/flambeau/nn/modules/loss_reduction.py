"""What all losses as modules have: a reduction, and maybe weights."""

from __future__ import annotations

from flambeau import Tensor
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
