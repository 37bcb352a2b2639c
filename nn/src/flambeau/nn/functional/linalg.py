"""Bilinear maps; `linear` is the core's."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y_k = x1ᵀ·W_k·x2 + b_k.

    Shapes: input1 (*, in1), input2 (*, in2), weight (out, in1, in2), bias (out); result (*, out).

    Raises:
        RuntimeError: the leading shapes differ or the sizes do not fit the weight.

    >>> import flambeau as fb
    >>> fb.nn.functional.bilinear(fb.ones(1, 2), fb.ones(1, 3), fb.ones(1, 2, 3))
    tensor([[6.]])
    """
    return fb.bilinear(input1, input2, weight, bias)
