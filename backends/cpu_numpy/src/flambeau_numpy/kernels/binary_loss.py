"""Losses of yes-or-no answers: binary cross entropy of probabilities."""

from __future__ import annotations

import numpy as np

from flambeau_numpy.pointwise import Array, blockwise


def _block(out: Array, x: Array, t: Array, log_no: Array, log_yes: Array) -> None:
    np.negative(x, log_no)
    np.log1p(log_no, log_no)
    np.maximum(log_no, -100, out=log_no)
    np.log(x, log_yes)
    np.maximum(log_yes, -100, out=log_yes)
    log_yes *= t
    np.subtract(t, 1, out)
    out *= log_no
    out -= log_yes


_binary_cross_entropy = blockwise(_block, scratch=2)


def binary_cross_entropy(x: Array, t: Array) -> np.ndarray:
    """(t - 1)·log(1 - x) - t·log(x), with logarithms not below -100."""
    return _binary_cross_entropy(x, t)


KERNELS = {"binary_cross_entropy": binary_cross_entropy}
