"""Quantiles of distributions over 0, 1, 2, …"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions.distribution import Distribution


@fb.no_grad()
def least_count(d: Distribution, level: Tensor, most: Any = math.inf) -> Tensor:
    """The least k with ``d.cdf(k) >= level``, without a gradient; NaN outside of [0, 1].

    The interval that has it is doubled until it does and halved until it has nothing else.
    """
    mean = d.mean
    level, mean, most = fb.broadcast_tensors(
        level, mean, fb.as_tensor(most, dtype=mean.dtype, device=mean.device)
    )
    dtype, top = mean.dtype, most.double()
    inside = (level > 0) & (level < 1)

    def reached(k: Tensor) -> Tensor:
        return ~inside | (k >= top) | (d.cdf(k.to(dtype)) >= level)

    high = fb.minimum(mean.double().nan_to_num(0.0, 0.0).floor(), top)
    low, width = fb.full_like(high, -1.0), 1.0
    while not (done := reached(high)).all():
        low = fb.where(done, low, high)
        high = fb.where(done, high, fb.minimum(high + width, top))
        width *= 2
    while (high - low > 1).any():
        middle = ((low + high) / 2).floor().clamp(min=0)
        if ((middle == low) | (middle == high)).all():
            break  # counts beyond 2⁵³
        done = reached(middle)
        low, high = fb.where(done, low, middle), fb.where(done, middle, high)
    found = fb.where(level == 1, top, high).to(dtype)
    zero = fb.zeros_like(found)
    return fb.where(inside | (level == 1), found, fb.where(level == 0, zero, math.nan))
