"""Gated linear units."""

from __future__ import annotations

import numpy as np

from flambeau_numpy.casts import narrow, wide
from flambeau_numpy.kernels.activation import KERNELS as ACTIVATIONS
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet


def _halves(a: Array, dim: int) -> tuple[Array, Array]:
    half = a.shape[dim] // 2
    before = (slice(None),) * dim
    return a[(*before, slice(half))], a[(*before, slice(half, None))]


@quiet
def glu(a: Array, dim: int) -> Array:
    """The first half times the sigmoid of the second."""
    first, second = _halves(wide(a), dim)
    return narrow(np.asarray(first * ACTIVATIONS["sigmoid"](second)), a.dtype)


@quiet
def glu_backward(grad: Array, a: Array, dim: int) -> Array:
    """Both halves' gradients side by side."""
    g, (first, second) = wide(grad), _halves(wide(a), dim)
    s = ACTIVATIONS["sigmoid"](second)
    return narrow(np.concatenate([g * s, g * first * (s * (1 - s))], dim), grad.dtype)


KERNELS = {"glu": glu, "glu_backward": glu_backward}
