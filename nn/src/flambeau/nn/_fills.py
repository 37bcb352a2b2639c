"""Fillings that take more than a formula: the truncated normal distribution, orthogonality.

The rejections follow PyTorch's order of draws: every round redraws the whole tensor and uses what
is still missing.
"""

from __future__ import annotations

import flambeau as fb
from flambeau import Generator, Tensor
from flambeau.nn._refusals import takes_as_annotated


@takes_as_annotated
def fill_by_rejection_from_normal(
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


@takes_as_annotated
def fill_by_rejection_from_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> None:
    """Draw from U(`a`, `b`) and accept in proportion to the normal density there."""
    if not std > 0:
        raise ValueError(f"std must be positive, got {std}")
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    pending = None
    while pending is None or bool(pending.any()):
        values = fb.empty_like(tensor).uniform_(a, b, generator=generator)
        log_density = ((values - mean) / std).pow(2) * -0.5 - log_peak
        height = fb.empty_like(tensor).uniform_(generator=generator).log()
        rejected = height > log_density
        if pending is None:
            tensor.copy_(values)
            pending = rejected
        else:
            tensor.copy_(fb.where(pending, values, tensor))
            pending = pending & rejected


@takes_as_annotated
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
