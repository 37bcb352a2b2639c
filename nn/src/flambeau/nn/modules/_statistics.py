"""Mean and variance over the batches of several processes, with gradients."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor


class _SumOfAll(fb.autograd.Function):
    """The sum of a tensor over the processes; its gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, group: fb.distributed.ProcessGroup | None) -> Tensor:
        ctx.group = group
        total = input.clone()
        fb.distributed.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        total = grads[0].clone()
        fb.distributed.all_reduce(total, group=ctx.group)
        return total, None


def statistics_of_all(
    input: Tensor, group: fb.distributed.ProcessGroup | None
) -> tuple[Tensor, Tensor, float]:
    """Mean and variance of each channel (dimension 1) in all processes, and how many elements.

    In two passes, since E[x²] − E[x]² loses the digits of a small variance.  Half floats are added
    in float32.
    """
    dims = [dim for dim in range(input.dim()) if dim != 1]
    wide = input if input.dtype in (fb.float32, fb.float64) else input.float()
    own = wide.new_full((1,), float(input.numel() // input.shape[1]))
    sums = _SumOfAll.apply(fb.cat([wide.sum(dims), own]), group)
    count = float(sums[-1].detach())
    mean = sums[:-1] / count
    centred = wide - mean.view(1, -1, *(1,) * (input.dim() - 2))
    squares = _SumOfAll.apply(centred.square().sum(dims), group)
    return mean, squares / count, count
