"""Losses."""

from __future__ import annotations

import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.table import Context, operator


@operator("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(
    c: Context,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    return F.nll_loss(x, target.long(), weight, ignore_index=ignore_index, reduction=reduction)


@operator("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(
    c: Context,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor | tuple[Tensor, Tensor]:
    logs = F.log_softmax(x, 1)
    loss = F.nll_loss(logs, target.long(), weight, ignore_index=ignore_index, reduction=reduction)
    return loss if c.outputs == 1 else (loss, logs)
