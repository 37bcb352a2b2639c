"""Gradients of convolutions as functions of their own.

>>> import flambeau as fb
>>> fb.nn.grad.conv1d_input((1, 1, 3), fb.tensor([[[1.0, 2.0]]]), fb.ones(1, 1, 2))
tensor([[[1., 3., 2.]]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.overrides import takes_as_annotated

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

Size = int | Sequence[int]


def _gradient(
    convolution: Callable[..., Tensor],
    wanted: Tensor,
    input: Tensor,
    weight: Tensor,
    grad_output: Tensor,
    settings: dict[str, Any],
) -> Tensor:
    """The gradient with respect to `wanted`, which is `input` or `weight`, itself recorded."""
    others = (input, weight, grad_output)
    recorded = fb.is_grad_enabled() and any(t.requires_grad for t in others)
    wanted.requires_grad_()
    result = fb.enable_grad()(convolution)(input, weight, **settings)
    (found,) = fb.autograd.grad(result, wanted, grad_output, create_graph=recorded)
    return found


@takes_as_annotated
def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to an input of size `input_size`."""
    x = fb.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _gradient(fb.conv1d, x, x, weight, grad_output, settings)


@takes_as_annotated
def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to a weight of size `weight_size`."""
    weight = fb.zeros(tuple(weight_size), dtype=input.dtype, device=input.device)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _gradient(fb.conv1d, weight, input, weight, grad_output, settings)


@takes_as_annotated
def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to an input of size `input_size`."""
    x = fb.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _gradient(fb.conv2d, x, x, weight, grad_output, settings)


@takes_as_annotated
def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to a weight of size `weight_size`."""
    weight = fb.zeros(tuple(weight_size), dtype=input.dtype, device=input.device)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _gradient(fb.conv2d, weight, input, weight, grad_output, settings)


@takes_as_annotated
def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to an input of size `input_size`."""
    x = fb.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _gradient(fb.conv3d, x, x, weight, grad_output, settings)


@takes_as_annotated
def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to a weight of size `weight_size`."""
    weight = fb.zeros(tuple(weight_size), dtype=input.dtype, device=input.device)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _gradient(fb.conv3d, weight, input, weight, grad_output, settings)
