"""Attention with several heads."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import init
from flambeau.nn.functional.attention import multi_head_attention_forward
from flambeau.nn.module import Module
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear
from flambeau.nn.parameter import Parameter

Device = fb.device | str | int | None


class MultiheadAttention(Module):
    """Attention in `num_heads` heads of size E / num_heads (Vaswani et al., 2017).

    Keys and values may have sizes `kdim` and `vdim` other than E.  `add_bias_kv` learns one more
    key and value, `add_zero_attn` adds zeros as another.  Masks of a call are added to the scores,
    or, if boolean, are true where a key must not be seen.

    Shapes: query (L, N, E), key (S, N, kdim), value (S, N, vdim); (N, L, E) and so on with
    `batch_first`; without N for one sequence.  Results: (L, N, E) and the weights (N, L, S), or
    (N, heads, L, S) unless averaged, or None without `need_weights`.

    Raises:
        ValueError: `embed_dim` or `num_heads` is not positive.
        AssertionError: E is no multiple of `num_heads`, or operands of a call do not fit.

    >>> import flambeau as fb
    >>> attention = fb.nn.MultiheadAttention(8, 2)
    >>> x = fb.randn(5, 3, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([5, 3, 8]), torch.Size([3, 5, 5]))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(fb.empty((3 * embed_dim, embed_dim), **place))
            for name in names:
                self.register_parameter(name, None)
        else:
            for name, width in zip(names, (embed_dim, self.kdim, self.vdim), strict=True):
                self.register_parameter(name, Parameter(fb.empty((embed_dim, width), **place)))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(fb.empty(3 * embed_dim, **place))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **place)
        if add_bias_kv:
            self.bias_k = Parameter(fb.empty((1, 1, embed_dim), **place))
            self.bias_v = Parameter(fb.empty((1, 1, embed_dim), **place))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        weights = self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        for weight in weights:
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)  # pyright: ignore[reportArgumentType]
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values, and the weights or None."""
        turned = self.batch_first and query.dim() == 3
        if turned and key.dim() == value.dim() == 3:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        output, weights = multi_head_attention_forward(
            *(query, key, value, self.embed_dim, self.num_heads),
            *(self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v),
            *(self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias),
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if turned else output), weights
