"""Fillings that take more than a formula: the truncated normal distribution, orthogonality.

The rejections follow PyTorch's order of draws: every round redraws the whole tensor and uses what
is still missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import flambeau as fb
from flambeau import Generator, Tensor

# Times by which [a, b] may be wider than where there is any density.  Beyond, a draw is accepted
# once in a thousand times or never, and PyTorch's order of draws would take minutes or have no end.
_RARE = 30


def by_rejection_from_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> None:
    """Draw from the normal distribution and redraw what lies outside [`a`, `b`]."""
    # The limits as the dtype has them, else a rounded value could lie outside for ever.
    low, high = tensor.new_tensor([a, b], device="cpu").tolist()
    values = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (values < low) | (values > high)
        if not bool(outside.any()):
            break
        again = fb.empty_like(values).normal_(mean, std, generator=generator)
        values = fb.where(outside, again, values)
    if values is not tensor:
        tensor.copy_(values)


def by_rejection_from_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> None:
    """Draw from U(`a`, `b`) and accept in proportion to the normal density there."""
    mode = max(a, min(mean, b))
    peak = (mode - mean) / std
    if tensor.is_floating_point():
        # Beyond, exp(-40) of the highest density is left: hypot(peak, 9) - |peak|, not rounded.
        far = std * 81.0 / (math.hypot(peak, 9.0) + abs(peak))
        low, high = max(a, mode - far), min(b, mode + far)
        rounded = peak * peak * fb.finfo(tensor.dtype).eps > 0.1
        if rounded or _RARE * (high - low) < b - a:
            tensor.copy_(_in_tail(tensor, mean, std, low, high, mode, generator))
            return

    def log_density(values: Tensor) -> Tensor:
        return ((values - mean) / std).pow(2) * -0.5 + 0.5 * peak * peak

    tensor.copy_(_accepted(tensor, a, b, log_density, generator))


def _in_tail(
    like: Tensor,
    mean: float,
    std: float,
    low: float,
    high: float,
    mode: float,
    generator: Generator | None,
) -> Tensor:
    """The same in float64, of a density that is taken relative to the highest without rounding."""
    peak = (mode - mean) / std

    def log_density(values: Tensor) -> Tensor:
        return (values - mode) / std * ((values - mean) / std + peak) * -0.5

    wide = fb.empty_like(like, dtype=fb.float64)
    return _accepted(wide, low, high, log_density, generator)


def _accepted(
    like: Tensor,
    low: float,
    high: float,
    log_density: Callable[[Tensor], Tensor],
    generator: Generator | None,
) -> Tensor:
    """Draws from U(`low`, `high`), each kept with the probability that `log_density` tells."""

    def drawn() -> tuple[Tensor, Tensor]:
        values = fb.empty_like(like).uniform_(low, high, generator=generator)
        height = fb.empty_like(like).uniform_(generator=generator).log()
        return values, height > log_density(values)

    accepted, pending = drawn()
    while bool(pending.any()):
        values, rejected = drawn()
        accepted = fb.where(pending, values, accepted)
        pending = pending & rejected
    return accepted


def orthonormal_columns(matrix: Tensor) -> Tensor:
    """Q of the QR decomposition whose R has a positive diagonal, by Gram-Schmidt.

    Every column is projected twice: that is enough for orthogonality to rounding
    (Giraud, Langou & Rozložník, 2005).
    """
    q = fb.zeros_like(matrix)
    for i in range(matrix.shape[1]):
        done, column = q[:, :i], matrix[:, i]
        for _ in range(2):
            column = column - done @ (done.t() @ column)
        q[:, i] = column / column.norm()
    return q
