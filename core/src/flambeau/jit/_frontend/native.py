"""Ops of PyTorch's programs that are no public functions: its layers and its traces call them."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau._tensor.tensor import Tensor


_PADDING = 1
"""The mask is of keys that are padding; otherwise it is one of scores."""


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    mask: Tensor | None,
    need_weights: bool,
    average: bool,
    mask_type: int | None,
) -> tuple[Tensor, Tensor]:
    """Attention with several heads, the batch first, as ``_native_multi_head_attention``."""
    padding = mask if mask_type == _PADDING else None
    scores = None if mask_type == _PADDING else mask
    if scores is not None and scores.dim() == 4:  # of each sequence and head
        scores = scores.reshape(-1, *scores.shape[2:])
    output, weights = fb.nn.functional.multi_head_attention_forward(
        query.transpose(0, 1),
        key.transpose(0, 1),
        value.transpose(0, 1),
        *(embed, heads, qkv_weight, qkv_bias, None, None, False, 0.0, out_weight, out_bias),
        training=False,
        key_padding_mask=padding,
        need_weights=need_weights,
        attn_mask=scores,
        average_attn_weights=average,
    )
    return output.transpose(0, 1), fb.empty(0) if weights is None else weights


def encoder_layer(
    src: Tensor,
    embed: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    weight_1: Tensor,
    bias_1: Tensor,
    weight_2: Tensor,
    bias_2: Tensor,
    mask: Tensor | None,
    mask_type: int | None,
) -> Tensor:
    """A `TransformerEncoderLayer`, the batch first, as ``_transformer_encoder_layer_fwd``."""
    functional = fb.nn.functional

    def norm_1(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed,), norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        weights = qkv_weight, qkv_bias, out_weight, out_bias
        return attention(x, x, x, embed, heads, *weights, mask, False, True, mask_type)[0]

    def feed_forward(x: Tensor) -> Tensor:
        inner = functional.linear(x, weight_1, bias_1)
        inner = functional.gelu(inner) if use_gelu else functional.relu(inner)
        return functional.linear(inner, weight_2, bias_2)

    if norm_first:
        src = src + attend(norm_1(src))
        return src + feed_forward(norm_2(src))
    src = norm_1(src + attend(src))
    return norm_2(src + feed_forward(src))


def unpooled(input: Tensor, indices: Tensor, size: list[int]) -> Tensor:
    """Zeros of a size with each element at its index, as ``max_unpool2d`` and ``max_unpool3d``."""
    lead = input.shape[: -len(size)]
    empty = input.new_zeros((*lead, math.prod(size)))
    placed = empty.scatter(-1, indices.flatten(len(lead)), input.flatten(len(lead)))
    return placed.reshape((*lead, *size))


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *switches: object,
) -> Tensor:
    """A convolution of any rank; the switches say which library computes it."""
    rank = weight.dim() - 2
    if transposed:
        function = getattr(fb, f"conv_transpose{rank}d")
        rest = output_padding, groups, dilation
        return function(input, weight, bias, stride, padding, *rest)
    function = getattr(fb, f"conv{rank}d")
    return function(input, weight, bias, stride, padding, dilation, groups)


def convolution_mode(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: Sequence[int],
    padding: str,
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """A convolution of any rank whose padding is ``"same"`` or ``"valid"``."""
    function = getattr(fb, f"conv{weight.dim() - 2}d")
    return function(input, weight, bias, stride, padding, dilation, groups)


def norm_except_dim(v: Tensor, power: int, dim: int) -> Tensor:
    """The norms over all dimensions but one, which are kept; of all for dimension -1."""
    dims = [each for each in range(v.dim()) if each != dim % v.dim()] if dim != -1 else None
    if dims is None:
        return v.norm(power)
    return v.norm(power, dims, True)


def pad_sequence(
    sequences: list[Tensor], batch_first: bool, padding_value: float, side: str
) -> Tensor:
    """Tensors of several lengths as one, as ``nn.utils.rnn.pad_sequence``."""
    function = importlib.import_module("flambeau.nn.utils.rnn").pad_sequence
    return function(sequences, batch_first, padding_value, padding_side=side)


def unique(
    input: Tensor, sorted: bool, return_inverse: bool, return_counts: bool, dim: int | None = None
) -> tuple[Any, Any, Any]:
    """The values that there are, as ``_unique2``: what is not asked for is empty."""
    asked = return_inverse, return_counts
    return _three(fb.unique(input, sorted, *asked, dim), asked)


def unique_consecutive(
    input: Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Any, Any, Any]:
    """Runs of equal values, as the op ``unique_consecutive``: what is not asked for is empty."""
    asked = return_inverse, return_counts
    return _three(fb.unique_consecutive(input, *asked, dim), asked)


def _three(found: Any, asked: tuple[bool, bool]) -> tuple[Any, Any, Any]:
    given = iter(found if any(asked) else (found,))
    values = next(given)
    empty = values.new_empty(0, dtype=fb.int64)
    inverse, counts = [next(given) if each else empty for each in asked]
    return values, inverse, counts
