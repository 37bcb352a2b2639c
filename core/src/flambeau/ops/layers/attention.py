"""Attention: averages of values, weighted by how well their keys match a query.

With P = softmax(scale·Q·Kᵀ + bias) the output is P·V.  A query to which every key is closed (its
scores are all -∞) has weights of 0, not NaN.  From the output's gradient dO:

    dV = Pᵀ·dO,  dS = P·(dO·Vᵀ - Σ P·dO·Vᵀ),  dQ = scale·dS·K,  dK = scale·dSᵀ·Q

P is kept for that, or, where a device computes attention in one kernel, only the logarithm of each
row's sum of exponentials, from which it is found again: Σ P·dO·Vᵀ is then the sum of dO·O.

Sources: Vaswani et al. (2017); Dao et al. (2022) for the second form.
"""

from __future__ import annotations

import math

from flambeau._dispatch.arguments import need_number, need_tensor
from flambeau._dispatch.attention_kernels import attention_kernels
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import ones, zeros_like
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import dropout, need_floating, wide
from flambeau.ops.layers.recurrent_steps import through


@composite(results=2, title="ScaledDotProductAttentionBackward0")
def _attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """(P·V, P) for query (*, L, E), key (*, S, E), value (*, S, V) and bias (*, L, S) or None."""
    q, k, v = wide(query), wide(key), wide(value)
    scores = (q * scale) @ k.mT
    if bias is not None:
        scores = scores + wide(bias)
    weights = scores.softmax(-1)
    if bias is not None and key.shape[-2]:
        weights = weights.masked_fill(scores.amax(-1, True) == -math.inf, 0.0)
    return cast(weights @ v, query.dtype), cast(weights, query.dtype)


@_attention.gradient
def _(F, g, query, key, value, bias_shape, result1, scale, needs):
    over_value = over_weights = None
    if g[0] is not None:
        over_value = F.matmul(F.mT(result1), g[0]) if needs[2] else None
        over_weights = F.matmul(g[0], F.mT(value))
    if g[1] is not None:
        over_weights = g[1] if over_weights is None else F.add(over_weights, g[1])
    over_scores = F.softmax_backward(over_weights, result1, len(result1.shape) - 1)
    scaled = F.mul(over_scores, F.scalar(scale, over_scores))
    parts = (
        F.matmul(scaled, key) if needs[0] else None,
        F.matmul(F.mT(scaled), query) if needs[1] else None,
        over_value,
        over_scores if needs[3] else None,
    )
    shapes = query.shape, key.shape, value.shape, bias_shape
    return tuple(
        None if part is None else F.sum_to(part, tuple(shape))
        for part, shape in zip(parts, shapes, strict=True)
    )


@composite(results=2)
def _fused_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """(P·V, log Σ exp of the scores) of query (B, H, L, E), key (B, K, S, E), value (B, K, S, V).

    K divides H: a head of keys serves H/K neighbouring heads of queries.  Bias is broadcastable to
    (B, H, L, S), or None; the logarithms are (B, H, L, 1), float32 for half precisions.
    """
    q, k, v = wide(query), _repeated(wide(key), query.shape[1]), wide(value)
    scores = _scores(q, k, bias, causal, scale)
    total = scores.logsumexp(-1, True)
    weights = _weights(scores, total)
    return cast(weights @ _repeated(v, query.shape[1]), query.dtype), total


@_fused_attention.gradient
def _(F, g, query, key, value, bias, result0, result1, causal, scale, needs):
    saved = query, key, value, bias, result0, result1
    *grads, over_bias = F.fused_attention_backward(*g[:2], *saved, causal, scale, needs[3])
    return *grads, over_bias if needs[3] else None


@composite(results=4)
def _fused_attention_backward(
    grad_output: Tensor | None,
    grad_total: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    output: Tensor,
    total: Tensor,
    causal: bool,
    scale: float,
    over_bias: bool,
) -> tuple[Tensor, ...]:
    """The gradients of `fused_attention`; the last is empty unless `over_bias`."""
    heads, own = query.shape[1], key.shape[1]
    q, k, v = wide(query), _repeated(wide(key), heads), _repeated(wide(value), heads)
    weights = _weights(_scores(q, k, bias, causal, scale), total)
    over_scores = zeros_like(weights) if grad_total is None else weights * grad_total
    over_value = zeros_like(v)
    if grad_output is not None:
        over = wide(grad_output)
        shares = over @ v.mT - (over * wide(output)).sum(-1, True)
        over_scores = over_scores + weights * shares
        over_value = weights.mT @ over
    scaled = over_scores * scale
    over_key = scaled.mT @ q
    if own != heads:
        over_key, over_value = (
            t.unflatten(1, (own, heads // own)).sum(2) for t in (over_key, over_value)
        )
    last = query.new_zeros((0,))
    if over_bias and bias is not None:
        last = cast(over_scores.sum_to_size(bias.shape), bias.dtype)
    grads = (cast(t, query.dtype) for t in (scaled @ k, over_key, over_value))
    return *grads, last


@_fused_attention_backward.gradient
def _(
    F,
    g,
    grad_output,
    grad_total,
    query,
    key,
    value,
    bias,
    output,
    total,
    causal,
    scale,
    over_bias,
):
    saved = query, key, value, bias, output, total
    args = grad_output, grad_total, *saved, causal, scale, over_bias
    return through(F, _fused_attention_backward.body, g, args)[:8]


def _scores(q: Tensor, k: Tensor, bias: Tensor | None, causal: bool, scale: float) -> Tensor:
    scores = (q * scale) @ k.mT
    if bias is not None:
        scores = scores + wide(bias)
    if causal:
        hidden = ones(q.shape[-2], k.shape[-2], dtype=D.bool_, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores


def _weights(scores: Tensor, total: Tensor) -> Tensor:
    """exp(scores - total); zeros where all scores of a row are -∞."""
    return (scores - total.masked_fill(total == -math.inf, 0.0)).exp()


@public(method=False)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(`scale`·Q·Kᵀ + mask)·V, with `scale` 1/√E unless given.

    `attn_mask` is added to the scores, or, if it is boolean, says which keys each query may see.
    `is_causal` lets query i see the keys up to i.  `dropout_p` is the probability with which a
    weight is dropped, in training and elsewhere.  With `enable_gqa` each head of key and value
    serves several neighbouring heads of the queries.  A query that sees no key gets zeros.

    Shapes: query (*, L, E), key (*, S, E), value (*, S, V), mask broadcastable to (*, L, S);
    result (*, L, V).

    Raises:
        RuntimeError: ranks, dtypes or sizes that do not fit, a mask together with `is_causal`, or
            `nn.attention.sdpa_kernel` has left no kernel.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> q, k, v = fb.zeros(1, 2), fb.ones(2, 2), fb.tensor([[1.0], [3.0]])
    >>> fb.scaled_dot_product_attention(q, k, v)
    tensor([[2.]])
    """
    name = "scaled_dot_product_attention"
    given = {"query": query, "key": key, "value": value}
    for argument, t in given.items():
        need_tensor(t, name, argument)
    if min(t.dim() for t in given.values()) < 2:
        found = ", ".join(f"{k}.dim: {t.dim()}" for k, t in given.items())
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got {found}"
        )
    if not query.dtype is key.dtype is value.dtype:
        found = ", ".join(f"{k}.dtype: {t.dtype}" for k, t in given.items())
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got {found}"
        )
    need_floating(query, name, "query")
    if is_causal and attn_mask is not None:
        raise RuntimeError(f"_{name}: Explicit attn_mask should not be set when is_causal=True")
    bias = _bias(attn_mask, query)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    try:
        scale = float(need_number(scale, name, "scale"))
    except OverflowError as error:
        raise D.beyond(scale, D.float64) from error
    if not (attention_kernels.flash or attention_kernels.math):
        raise RuntimeError(
            f"No viable backend for {name} was found: the kernels 'flash' and 'math' are switched "
            "off, and there are no others"
        )
    given_as = query, key, value, bias, is_causal, scale
    as_one = attention_kernels.flash and not dropout_p
    if as_one and (enable_gqa or key.shape[:-2] == query.shape[:-2]):
        if _fused_attention.taken(*given_as):
            return _fused_attention.run(*given_as)[0]
    if is_causal:
        bias = query.new_full((query.shape[-2], key.shape[-2]), -math.inf).triu(1)
    if enable_gqa:
        key, value = (_repeated(t, query.shape[-3]) for t in (key, value))
    output, weights = _attention.run(query, key, value, bias, scale)
    return dropout(weights, dropout_p, True) @ value if dropout_p else output


def _bias(mask: Tensor | None, query: Tensor) -> Tensor | None:
    if mask is None:
        return None
    need_tensor(mask, "scaled_dot_product_attention", "attn_mask")
    if mask.dtype is D.bool_:
        zeros = zeros_like(mask, dtype=query.dtype)
        return zeros.masked_fill(~mask, -math.inf)
    if mask.dtype is not query.dtype and mask.dtype is not D.float32:
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {mask.dtype} and  query.dtype: {query.dtype} instead."
        )
    return cast(mask, query.dtype)


def _repeated(t: Tensor, heads: int) -> Tensor:
    own = t.shape[-3]
    if own == 0 or heads % own:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, got "
            f"{own} and {heads}"
        )
    return t if own == heads else t.repeat_interleave(heads // own, -3)
