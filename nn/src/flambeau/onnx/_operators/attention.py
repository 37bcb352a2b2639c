"""Attention and what goes with it."""

from __future__ import annotations

import math

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.table import Context, dtype_of, operator, wide


def _heads(x: Tensor, count: int | None, name: str) -> Tensor:
    """(batch, length, heads · size) as (batch, heads, length, size)."""
    if x.dim() == 4:
        return x
    if not count:
        raise ValueError(f"{name}: inputs of three dimensions need the number of heads")
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def _repeated(x: Tensor, heads: int) -> Tensor:
    """Each head as often as queries share it."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


@operator("Attention")
def _attention(
    c: Context,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Tensor | None = None,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, ...]:
    flat = query.dim() == 3
    query = _heads(query, q_num_heads, "Attention")
    key = _heads(key, kv_num_heads, "Attention")
    value = _heads(value, kv_num_heads, "Attention")
    if past_key is not None and past_value is not None:
        key, value = fb.cat([past_key, key], 2), fb.cat([past_value, value], 2)
    present = key, value
    key, value = _repeated(key, query.shape[1]), _repeated(value, query.shape[1])
    # The root of the scale on either side, so that products of float16 do not overflow.
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    logits = (query * factor) @ (key * factor).transpose(-1, -2)
    shown = logits
    if softcap:
        logits = softcap * fb.tanh(logits / softcap)
    if qk_matmul_output_mode == 1:
        shown = logits
    allowed, added = _allowed(
        query, key, mask, past_key, lengths, is_causal, (left_window_size, right_window_size)
    )
    if added is not None:
        logits = logits + added
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -math.inf)
    if qk_matmul_output_mode == 2:
        shown = logits
    kind = dtype_of(softmax_precision) if softmax_precision else None
    weights = F.softmax(logits, -1, dtype=kind).to(query.dtype)
    if allowed is not None or added is not None:
        # A query that may see nothing: no weight at all, where the quotient would be 0 / 0.
        blind = _blind(allowed, added, logits)
        weights = weights.masked_fill(blind, 0.0)
    if qk_matmul_output_mode == 3:
        shown = weights
    y = weights @ value
    if flat:
        y = y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)
    return (y, *present, shown)[: max(c.outputs, 1)]


def _blind(allowed: Tensor | None, added: Tensor | None, logits: Tensor) -> Tensor:
    seen = fb.ones(1, dtype=fb.bool) if added is None else added > -math.inf
    seen = seen if allowed is None else seen & allowed
    return ~seen.expand(logits.shape).any(-1, keepdim=True)


def _allowed(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    past: Tensor | None,
    lengths: Tensor | None,
    causal: int,
    window: tuple[int, int],
) -> tuple[Tensor | None, Tensor | None]:
    """Which keys a query may see, and what is added to its products."""
    rows, columns = query.shape[2], key.shape[2]
    allowed = added = None
    if mask is not None:
        missing = columns - mask.shape[-1]
        if missing > 0:
            mask = F.pad(mask, (0, missing), value=0 if mask.dtype is fb.bool else -math.inf)
        if mask.dtype is fb.bool:
            allowed = mask
        else:
            added = mask
    if past is None and lengths is not None:
        before = (lengths.reshape(-1, 1, 1, 1) - rows).long()
    else:
        before = fb.tensor(0 if past is None else past.shape[2])
    distance = fb.arange(rows).unsqueeze(1) + before - fb.arange(columns)
    conditions = []
    if causal:
        conditions.append(distance >= 0)
    if window[0] >= 0:
        conditions.append(distance <= window[0])
    if window[1] >= 0:
        conditions.append(-distance <= window[1])
    if lengths is not None:
        conditions.append(fb.arange(columns) < lengths.reshape(-1, 1, 1, 1))
    for condition in conditions:
        allowed = condition if allowed is None else allowed & condition
    return allowed, added


@operator("RotaryEmbedding")
def _rotary_embedding(
    c: Context,
    x: Tensor,
    cosines: Tensor,
    sines: Tensor,
    positions: Tensor | None = None,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    shape = x.shape
    z = _heads(x, num_heads, "RotaryEmbedding")
    if positions is not None:
        cosines, sines = cosines[positions.long()], sines[positions.long()]
    cosines, sines = cosines.unsqueeze(1), sines.unsqueeze(1)
    count = rotary_embedding_dim or z.shape[-1]
    turned, rest = z[..., :count], z[..., count:]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned.chunk(2, -1)
    real, imaginary = cosines * a - sines * b, sines * a + cosines * b
    if interleaved:
        turned = fb.stack([real, imaginary], -1).flatten(-2)
    else:
        turned = fb.cat([real, imaginary], -1)
    y = fb.cat([turned, rest], -1)
    return y.transpose(1, 2).reshape(shape) if len(shape) == 3 else y


@operator("LinearAttention")
def _linear_attention(
    c: Context,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    chunk_size: int | None = None,
    kv_num_heads: int = 1,
    q_num_heads: int = 1,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Tensor, Tensor]:
    kind = query.dtype
    q = wide(_heads(query, q_num_heads, "LinearAttention"))
    k = wide(_heads(key, kv_num_heads, "LinearAttention"))
    v = wide(_heads(value, kv_num_heads, "LinearAttention"))
    batch, length, size = q.shape[0], q.shape[2], q.shape[3]
    gates = None if decay is None else wide(_heads(decay, kv_num_heads, "LinearAttention")).exp()
    rates = None if beta is None else wide(_heads(beta, beta.shape[-1], "LinearAttention"))
    if past is None:
        state = fb.zeros(batch, kv_num_heads, size, v.shape[-1], dtype=q.dtype)
    else:
        state = wide(past)
    results = []
    for t in range(length):
        now, new = k[:, :, t].unsqueeze(-1), v[:, :, t].unsqueeze(-2)
        if gates is not None and "gated" in update_rule:
            state = state * gates[:, :, t].unsqueeze(-1)
        if rates is not None and "delta" in update_rule:
            known = now.transpose(-1, -2) @ state
            new = rates[:, :, t].unsqueeze(-1) * (new - known)
        state = state + now * new
        read = q[:, :, t].unsqueeze(-2) @ _repeated(state, q_num_heads)
        results.append(read.squeeze(-2))
    y = fb.stack(results, 1) * (scale or 1 / math.sqrt(size))
    return y.reshape(batch, length, -1).to(kind), state.to(kind if past is None else past.dtype)


@operator("CausalConvWithState")
def _causal_conv_with_state(
    c: Context,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    past: Tensor | None = None,
    activation: str = "none",
) -> tuple[Tensor, Tensor]:
    count = weight.shape[-1] - 1
    before = fb.zeros(*x.shape[:2], count, dtype=x.dtype) if past is None else past
    whole = fb.cat([before, x], 2)
    y = F.conv1d(whole, weight, bias, groups=x.shape[1])
    if activation in ("silu", "swish"):
        y = F.silu(wide(y)).to(x.dtype)
    return y, whole.narrow(2, whole.shape[2] - count, count)


@operator("SwiGLU")
def _swiglu(c: Context, x: Tensor, y: Tensor, alpha: float = 1.0) -> Tensor:
    return x * fb.sigmoid(alpha * x) * y
