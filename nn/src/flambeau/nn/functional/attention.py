"""Attention with several heads, as a function of all its weights."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional.dropout import dropout
from flambeau.overrides import takes_as_annotated


@takes_as_annotated
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Project query, key and value, attend in `num_heads` heads, project the result.

    The projections are the thirds of `in_proj_weight` (3E, E), or the three separate weights.
    Masks are added to the scores, or, if boolean, are true where a key must not be seen.
    `bias_k` and `bias_v` (1, 1, E) are one more key and value; `add_zero_attn` adds zeros as
    another; `static_k` and `static_v` (N·heads, S, E/heads) replace the projected ones.

    Shapes: query (L, N, E), key (S, N, K), value (S, N, V), all without N for one sequence;
    `attn_mask` (L, S) or (N·heads, L, S), `key_padding_mask` (N, S); results (L, N, E) and, with
    `need_weights`, the weights (N, L, S), averaged over heads, or (N, heads, L, S).

    Raises:
        AssertionError: ranks or sizes of query, key, value or the padding mask do not fit.
        RuntimeError: the shape of `attn_mask`, or `is_causal` without `attn_mask`.

    >>> import flambeau as fb
    >>> x, w = fb.ones(3, 2, 4), fb.ones(12, 4)
    >>> out, weights = fb.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, w, None, None, None, False, 0.0, fb.ones(4, 4), None
    ... )
    >>> out.shape, weights.shape
    (torch.Size([3, 2, 4]), torch.Size([2, 3, 3]))
    """
    batched = check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (t.unsqueeze(1) for t in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    if embed != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}"
        )
    size = embed // num_heads
    if size * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        fits = key.shape[:2] == value.shape[:2]
        what = "key's sequence and batch dims {} do not match value's {}"
        shapes = key.shape[:2], value.shape[:2]
    else:
        fits = key.shape == value.shape
        what, shapes = "key shape {} does not match value shape {}", (key.shape, value.shape)
    if not fits:
        raise AssertionError(what.format(*shapes))
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )

    padding = _additive(key_padding_mask, query.dtype, "key_padding_mask")
    mask = _additive(attn_mask, query.dtype, "attn_mask")
    if is_causal and padding is None and not need_weights:
        mask = None  # what it holds is what is_causal says
    else:
        is_causal = False
    mask = _checked_mask(mask, length, key.shape[0], batch * num_heads)

    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        assert in_proj_weight is not None, (
            "use_separate_proj_weight is False: in_proj_weight is needed"
        )
        weights = in_proj_weight.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = _projected((query, key, value), weights, biases)

    if bias_k is not None and bias_v is not None:
        k = fb.cat([k, bias_k.expand(1, batch, embed)])
        v = fb.cat([v, bias_v.expand(1, batch, embed)])
        mask, padding = _one_more(mask), _one_more(padding)
    q = _by_head(q, batch * num_heads, size)
    k = _by_head(k, batch * num_heads, size) if static_k is None else static_k
    v = _by_head(v, batch * num_heads, size) if static_v is None else static_v
    if add_zero_attn:
        zeros = k.new_zeros((batch * num_heads, 1, size))
        k, v = fb.cat([k, zeros], 1), fb.cat([v, zeros], 1)
        mask, padding = _one_more(mask), _one_more(padding)
    source = k.shape[1]
    if padding is not None:
        if tuple(padding.shape) != (batch, source):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, source)}, but got "
                f"{tuple(padding.shape)}"
            )
        closed = padding.reshape(batch, 1, 1, source).expand(batch, num_heads, 1, source)
        closed = closed.reshape(batch * num_heads, 1, source)
        mask = closed if mask is None else mask + closed

    dropout_p = dropout_p if training else 0.0
    found = None
    if need_weights:
        scores = (q * math.sqrt(1 / size)) @ k.mT
        found = (scores if mask is None else scores + mask).softmax(-1)
        if dropout_p:
            found = dropout(found, dropout_p)
        output = found @ v
        found = found.reshape(batch, num_heads, length, source)
        if average_attn_weights:
            found = found.mean(1)
    else:
        # With four dimensions, as heads of a batch: the random draws of dropout follow the order.
        q, k, v = (t.reshape(batch, num_heads, t.shape[1], size) for t in (q, k, v))
        if mask is not None and mask.shape[0] != 1:
            mask = mask.reshape(batch, num_heads, *mask.shape[1:])
        output = fb.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
        output = output.reshape(batch * num_heads, length, size)
    output = output.transpose(0, 1).reshape(length, batch, embed)
    output = fb.linear(output, out_proj_weight, out_proj_bias)
    if not batched:
        output = output.squeeze(1)
        found = None if found is None else found.squeeze(0)
    return output, found


def check_ranks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding: Tensor | None,
    mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether there is a batch dimension; AssertionError if the operands disagree about it."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{query.dim()}-D query tensor"
        )
    rank, form = query.dim(), "batched (3-D)" if query.dim() == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"For {form} `query`, expected `key` and `value` to be {rank}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != rank - 1:
        raise AssertionError(
            f"For {form} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but "
            f"found {padding.dim()}-D tensor instead"
        )
    if mask is not None and mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {form} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{mask.dim()}-D tensor instead"
        )
    if mask is not None and rank == 2 and mask.dim() == 3:
        wanted = num_heads, query.shape[0], key.shape[0]
        if tuple(mask.shape) != wanted:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {wanted} but got {tuple(mask.shape)}"
            )
    if padding is not None and rank == 3 and padding.shape[0] != key.shape[1]:
        raise AssertionError(
            f"Expected key_padded_mask.shape[0] to be {key.shape[1]}, but got {padding.shape[0]}"
        )
    return rank == 3


def _additive(mask: Tensor | None, dtype: fb.dtype, name: str) -> Tensor | None:
    """A mask as numbers to add to the scores."""
    if mask is None:
        return None
    if mask.dtype is fb.bool:
        return fb.zeros_like(mask, dtype=dtype).masked_fill(mask, -math.inf)
    if not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask.to(dtype)


def _checked_mask(mask: Tensor | None, length: int, source: int, heads: int) -> Tensor | None:
    if mask is None:
        return None
    wanted = (length, source) if mask.dim() == 2 else (heads, length, source)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _projected(
    operands: tuple[Tensor, ...],
    weights: tuple[Tensor | None, ...],
    biases: tuple[Tensor | None, ...],
) -> tuple[Tensor, ...]:
    """x·Wᵀ + b for each of query, key and value."""
    return tuple(
        fb.linear(x, w, b)  # pyright: ignore[reportArgumentType]
        for x, w, b in zip(operands, weights, biases, strict=True)
    )


def _by_head(t: Tensor, heads: int, size: int) -> Tensor:
    return t.reshape(t.shape[0], heads, size).transpose(0, 1)


def _one_more(mask: Tensor | None) -> Tensor | None:
    """The mask with one more key, open to all."""
    return None if mask is None else fb.cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)
