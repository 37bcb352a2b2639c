"""What the gradients of convolutions demand: libraries are given addresses and no lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Sizes = Sequence[int]


def _check(
    grad: Any,
    image: Sizes,
    weight: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> None:
    out = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(image[2:], weight[2:], stride, padding, dilation, strict=False)
    )
    wanted = (*image[:1], *weight[:1], *out)
    if len(image) != len(weight) or len(out) != len(weight) - 2 or tuple(grad.shape) != wanted:
        raise RuntimeError(
            f"convolution backward: expected the gradient of an input of shape {tuple(image)} and "
            f"a weight of shape {tuple(weight)} to have shape {wanted}, got {tuple(grad.shape)}"
        )
    if image[1] != weight[1] * groups or weight[0] % groups:
        raise RuntimeError(
            f"convolution backward: with groups={groups}, an input of shape {tuple(image)} does "
            f"not go with a weight of shape {tuple(weight)}"
        )


def input_grad(
    grad: object,
    weight: Any,
    input_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> None:
    """What the gradient of the input demands."""
    _check(grad, input_shape, weight.shape, stride, padding, dilation, groups)


def weight_grad(
    grad: object,
    input: Any,
    weight_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> None:
    """What the gradient of the weight demands."""
    _check(grad, input.shape, weight_shape, stride, padding, dilation, groups)
