"""The encoder and decoder of Vaswani et al. (2017), and both together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import init
from flambeau.nn._refusals import need_room
from flambeau.nn.functional import gelu, relu
from flambeau.nn.module import Module
from flambeau.nn.modules._fused_layers import activated
from flambeau.nn.modules.attention import MultiheadAttention
from flambeau.nn.modules.container import ModuleList
from flambeau.nn.modules.dropout import Dropout
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.normalization import LayerNorm
from flambeau.overrides import takes_as_annotated

Device = fb.device | str | int | None
Activation = str | Callable[[Tensor], Tensor]


def _get_activation_fn(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    known = {"relu": relu, "gelu": gelu}
    if given not in known:
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return known[given]


def _get_clones(module: Module, count: int) -> ModuleList:
    if not isinstance(module, Module):
        raise TypeError(f"a layer must be Module, not {type(module).__name__}")
    need_room(count, sum(p.numel() * p.element_size() for p in module.parameters()))
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def generate_square_subsequent_mask(
    sz: int, device: Device = None, dtype: fb.dtype | None = None
) -> Tensor:
    """A mask (sz, sz) of 0 on and below the diagonal and -∞ above: no position sees later ones.

    >>> import flambeau as fb
    >>> fb.nn.Transformer.generate_square_subsequent_mask(2)
    tensor([[0., -inf],
            [0., 0.]])
    """
    return fb.full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)


def _attended(
    attention: MultiheadAttention,
    x: Tensor,
    source: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    is_causal: bool,
) -> Tensor:
    return attention(
        x,
        source,
        source,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        is_causal=is_causal,
        need_weights=False,
    )[0]


class _Layer(Module):
    """What the layers share: self-attention, the feed-forward part, and where to normalise."""

    # In the order in which they draw their weights; each has a norm and a dropout, and so has the
    # feed-forward part.
    _attentions: ClassVar[tuple[str, ...]] = ("self_attn",)

    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        super().__init__()
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **place
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for part in parts:
            setattr(self, f"norm{part}", LayerNorm(d_model, eps=layer_norm_eps, **place))
        for part in parts:
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    # Subclasses written for PyTorch override and call the parts by their names.
    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        return self.dropout1(
            _attended(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal)
        )

    def _fed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(activated(self.linear1, self.activation, x)))

    def _with_residual(
        self, x: Tensor, norm: Module, part: Callable[..., Tensor], *args: object, **options: bool
    ) -> Tensor:
        if self.norm_first:
            return x + part(norm(x), *args, **options)
        return norm(x + part(x, *args, **options))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual and a `LayerNorm`.

    `activation` is ``"relu"``, ``"gelu"`` or a function.  With `norm_first` the norms stand before
    the parts, otherwise after the sums.

    Shapes: src (S, N, E), (N, S, E) with `batch_first`, or (S, E); result as src.

    Raises:
        RuntimeError: an unknown activation.

    >>> import flambeau as fb
    >>> layer = fb.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(fb.rand(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """`src` after both parts."""
        masks = src_mask, src_key_padding_mask
        x = self._with_residual(src, self.norm1, self._sa_block, *masks, is_causal=is_causal)
        return self._with_residual(x, self.norm2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._fed_forward(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward network.

    Each has a residual and a `LayerNorm`; arguments as in `TransformerEncoderLayer`.

    Shapes: tgt (T, N, E) and memory (S, N, E), (N, T, E) and so on with `batch_first`, or without
    N; result as tgt.

    Raises:
        RuntimeError: an unknown activation.

    >>> import flambeau as fb
    >>> layer = fb.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(fb.rand(4, 3, 8), fb.rand(5, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """`tgt` after all three parts."""
        masks = tgt_mask, tgt_key_padding_mask
        x = self._with_residual(tgt, self.norm1, self._sa_block, *masks, is_causal=tgt_is_causal)
        args, causal = (memory, memory_mask, memory_key_padding_mask), memory_is_causal
        x = self._with_residual(x, self.norm2, self._mha_block, *args, is_causal=causal)
        return self._with_residual(x, self.norm3, self._ff_block)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        return self.dropout2(
            _attended(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal)
        )

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._fed_forward(x))


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after the other, and perhaps a norm at the end.

    `enable_nested_tensor` and `mask_check` are accepted; there is no nested tensor to use.

    >>> import flambeau as fb
    >>> layer = fb.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> fb.nn.TransformerEncoder(layer, num_layers=2)(fb.rand(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """`src` after all layers; `is_causal` says that `mask` is the causal one."""
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                is_causal=bool(is_causal),
                src_key_padding_mask=src_key_padding_mask,
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """`num_layers` copies of a layer, one after the other, and perhaps a norm at the end.

    >>> import flambeau as fb
    >>> layer = fb.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> decoder = fb.nn.TransformerDecoder(layer, num_layers=2)
    >>> decoder(fb.rand(4, 3, 8), fb.rand(5, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """`tgt` after all layers."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of the source and a decoder of the target, or `custom_encoder`/`custom_decoder`.

    The matrices among the parameters start from `init.xavier_uniform_`.

    Shapes: src (S, N, E), tgt (T, N, E), (N, S, E) and so on with `batch_first`, or without N;
    result as tgt.

    Raises:
        RuntimeError: batch sizes of src and tgt differ, or their features are not `d_model`.

    >>> import flambeau as fb
    >>> model = fb.nn.Transformer(
    ...     d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16
    ... )
    >>> model(fb.rand(5, 3, 8), fb.rand(4, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        order = (batch_first, norm_first)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*settings, *order, **place)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **place)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(*settings, *order, **place)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **place)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    @takes_as_annotated
    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's output for `tgt`, with the encoded `src` as memory."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    generate_square_subsequent_mask = staticmethod(generate_square_subsequent_mask)
