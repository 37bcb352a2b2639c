"""Calls of every op and of the functions of layers, and their operands.

Those of ops are of the op parity suite.  Those of layers are lines of a table: a call, in which
``F`` is ``nn.functional`` and ``t`` the library, and its operands, a letter and a shape of random
numbers, or ``letter=a,b<n`` for whole numbers below ``n``.
"""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from op_parity import _letters, _values  # noqa: E402
from op_parity_page import by_name  # noqa: E402

Operands = dict[str, Any]

LAYERS = """
F.adaptive_avg_pool1d(x, 2) | x=2,3,6
F.adaptive_avg_pool2d(x, (2, 3)) | x=2,3,6,6
F.adaptive_avg_pool2d(x, 1) | x=2,3,6,6
F.adaptive_avg_pool2d(x, (4, 5)) | x=2,3,6,6
F.adaptive_avg_pool3d(x, 2) | x=2,3,4,4,4
F.adaptive_avg_pool3d(x, 1) | x=2,3,4,4,4
F.adaptive_max_pool1d(x, 2) | x=2,3,6
F.adaptive_max_pool2d(x, 2) | x=2,3,6,6
F.adaptive_max_pool3d(x, 2) | x=2,3,4,4,4
F.affine_grid(x, [2, 1, 2, 3], False) | x=2,2,3
F.affine_grid(x, [2, 1, 2, 3, 2], False) | x=2,3,4
F.alpha_dropout(x, 0.5, True) | x=3,4
F.avg_pool1d(x, 2) | x=2,3,6
F.avg_pool2d(x, 2) | x=2,3,6,6
F.avg_pool3d(x, 2) | x=2,3,4,4,4
F.batch_norm(x, m, v.detach().exp(), None, None, False) | x=2,3,4;m=3;v=3
F.batch_norm(x, m.detach(), v.detach().exp(), w, b, False) | x=2,3,4;m=3;v=3;w=3;b=3
F.batch_norm(x, m.detach(), v.detach().exp(), w, b, True) | x=2,3,4;m=3;v=3;w=3;b=3
F.batch_norm(x, None, None, None, None, True) | x=2,3,4
F.bilinear(x, y, w, b) | x=2,3;y=2,4;w=5,3,4;b=5
F.binary_cross_entropy(x.sigmoid(), y.sigmoid()) | x=3,4;y=3,4
F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), w) | x=3,4;y=3,4;w=4
F.binary_cross_entropy_with_logits(x, y) | x=3,4;y=3,4
F.binary_cross_entropy_with_logits(x, y, w, pos_weight=v) | x=3,4;y=3,4;w=4;v=4
F.celu(x) | x=3,4
F.channel_shuffle(x, 2) | x=2,4,3,3
F.conv1d(x, w, b) | x=2,3,6;w=4,3,3;b=4
F.conv2d(x, w, b) | x=2,3,6,6;w=4,3,3,3;b=4
F.conv2d(x, w, None, 2, 1, 1, 3) | x=2,3,6,6;w=3,1,3,3
F.conv2d(x, w, b, padding="same") | x=2,3,6,6;w=4,3,3,3;b=4
F.conv2d(x, w, b, padding="same") | x=2,3,6,6;w=4,3,2,2;b=4
F.conv2d(x, w, b) | x=2,3,6,6;w=4,3,1,1;b=4
F.conv3d(x, w, b) | x=1,2,4,4,4;w=3,2,2,2,2;b=3
F.conv_tbc(x, w, b) | x=5,2,4;w=3,4,2;b=2
F.conv_transpose1d(x, w, b) | x=2,3,6;w=3,4,3;b=4
F.conv_transpose2d(x, w, b, 2, 1, 1) | x=2,3,6,6;w=3,4,3,3;b=4
F.conv_transpose3d(x, w, b) | x=1,2,4,4,4;w=2,3,2,2,2;b=3
F.cosine_embedding_loss(x, y, l.sign()) | x=3,4;y=3,4;l=3
F.cosine_similarity(x, y) | x=3,4;y=3,4
F.cross_entropy(x, i) | x=3,4;i=3<4
F.cross_entropy(x, i, w.detach().abs(), label_smoothing=0.1) | x=3,4;i=3<4;w=4
F.cross_entropy(x, y.softmax(1)) | x=3,4;y=3,4
F.ctc_loss(x.log_softmax(2), i + 1, (5, 5), (3, 2)) | x=5,2,4;i=2,3<3
F.dropout(x, 0.5, True) | x=3,4
F.dropout1d(x, 0.5, True) | x=2,3,4
F.dropout2d(x, 0.5, True) | x=2,3,4,4
F.dropout3d(x, 0.5, True) | x=2,3,4,4,4
F.elu(x, 1.5) | x=3,4
F.embedding(i, w) | w=5,3;i=2,3<5
F.embedding(i, w, padding_idx=1, scale_grad_by_freq=True) | w=5,3;i=2,3<5
F.embedding_bag(i, w) | w=5,3;i=2,3<5
F.embedding_bag(i, w, mode="sum", per_sample_weights=p) | w=5,3;i=2,3<5;p=2,3
F.embedding_bag(i, w, mode="max") | w=5,3;i=2,3<5
F.feature_alpha_dropout(x, 0.5, True) | x=2,3,4
F.fold(x, (4, 5), (2, 2)) | x=1,12,12
F.fractional_max_pool2d(x, 2, (3, 3), _random_samples=r.detach().sigmoid()) | x=1,2,6,6;r=1,2,2
F.fractional_max_pool3d(x, 2, (2, 2, 2), _random_samples=r.detach().sigmoid()) | x=1,2,5,5,5;r=1,2,3
F.gaussian_nll_loss(x, y, v.exp()) | x=3,4;y=3,4;v=3,4
F.gelu(x) | x=3,4
F.gelu(x, approximate="tanh") | x=3,4
F.glu(x) | x=3,4
F.grid_sample(x, g, align_corners=False) | x=1,2,4,4;g=1,3,3,2
F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True) | x=1,2,4,4;g=1,3,3,2
F.grid_sample(x, g, mode="bicubic", align_corners=True) | x=1,2,4,4;g=1,3,3,2
F.grid_sample(x, g, align_corners=False) | x=1,2,4,4,3;g=1,3,3,2,3
F.group_norm(x, 2, w, b) | x=2,4,3;w=4;b=4
F.group_norm(x, 2) | x=2,4,3
F.gumbel_softmax(x) | x=3,4
F.hardshrink(x) | x=3,4
F.hardsigmoid(x) | x=3,4
F.hardswish(x) | x=3,4
F.hardtanh(x) | x=3,4
F.hinge_embedding_loss(x, y.sign()) | x=3,4;y=3,4
F.huber_loss(x, y) | x=3,4;y=3,4
F.huber_loss(x, y, reduction="none") | x=3,4;y=3,4
F.instance_norm(x, None, None, w, b) | x=2,3,4;w=3;b=3
F.instance_norm(x, m.detach(), v.detach().exp(), w, b, False) | x=2,3,4;w=3;b=3;m=3;v=3
F.interpolate(x, scale_factor=2) | x=2,3,4
F.interpolate(x, scale_factor=2, mode="linear") | x=2,3,4
F.interpolate(x, scale_factor=2, mode="bilinear") | x=2,3,4,4
F.interpolate(x, scale_factor=2, mode="bicubic") | x=2,3,4,4
F.interpolate(x, scale_factor=2, mode="area") | x=2,3,4,4
F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True) | x=2,3,6,6
F.interpolate(x, scale_factor=2, mode="trilinear") | x=2,3,4,4,4
F.interpolate(x, scale_factor=2, mode="nearest-exact") | x=2,3,4,4
F.kl_div(x, y.abs()) | x=3,4;y=3,4
F.kl_div(x, y, log_target=True) | x=3,4;y=3,4
F.l1_loss(x, y) | x=3,4;y=3,4
F.l1_loss(x, y, reduction="none") | x=3,4;y=3,4
F.layer_norm(x, (4,)) | x=3,4
F.layer_norm(x, (4,), w, b) | x=3,4;w=4;b=4
F.leaky_relu(x) | x=3,4
F.linear(x, w, b) | x=3,4;w=5,4;b=5
F.linear(x, w) | x=3,4;w=5,4
F.local_response_norm(x, 2) | x=2,3,4
F.log_softmax(x, 1) | x=3,4
F.logsigmoid(x) | x=3,4
F.lp_pool1d(x, 2, 2) | x=2,3,6
F.lp_pool2d(x, 2, 2) | x=2,3,6,6
F.lp_pool3d(x, 2, 2) | x=2,3,4,4,4
F.margin_ranking_loss(x, y, l.sign(), 0.5) | x=3,4;y=3,4;l=3,4
F.max_pool1d(x, 2) | x=2,3,6
F.max_pool2d(x, 2) | x=2,3,6,6
F.max_pool3d(x, 2) | x=2,3,4,4,4
F.max_unpool1d(x, F.max_pool1d(x.detach().repeat_interleave(2, -1), 2, return_indices=True)[1], 2) | x=2,3,6
F.max_unpool2d(x, F.max_pool2d(x.detach().repeat_interleave(2, -1).repeat_interleave(2, -2), 2, return_indices=True)[1], 2) | x=2,3,4,4
F.max_unpool3d(x, F.max_pool3d(x.detach().repeat_interleave(2, -1).repeat_interleave(2, -2).repeat_interleave(2, -3), 2, return_indices=True)[1], 2) | x=2,3,4,4,4
F.mish(x) | x=3,4
F.mse_loss(x, y) | x=3,4;y=3,4
F.mse_loss(x, y, reduction="none") | x=3,4;y=3,4
F.multi_margin_loss(x, i) | x=3,4;i=3<4
F.multi_margin_loss(x, i, weight=w.detach()) | x=3,4;i=3<4;w=4
F.multilabel_margin_loss(x, i) | x=3,4;i=3,4<4
F.multilabel_soft_margin_loss(x, y.sigmoid()) | x=3,4;y=3,4
F.nll_loss(x, i) | x=3,4;i=3<4
F.nll_loss(x, i, w.detach(), reduction="sum") | x=3,4;i=3<4;w=4
F.nll_loss(x, i) | x=3,4,2;i=3,2<4
F.nll_loss(x, i) | x=3,4,2,2;i=3,2,2<4
F.normalize(x) | x=3,4
F.pad(x, (1, 2)) | x=3,4
F.pad(x, (1, 2), value=3.0) | x=3,4
F.pad(x, (1, 2), mode="reflect") | x=2,3,4
F.pad(x, (1, 2), mode="replicate") | x=2,3,4
F.pad(x, (1, 2), mode="circular") | x=2,3,4
F.pad(x, (1, 2, 1, 1), mode="reflect") | x=2,3,4,4
F.pad(x, (1, 2, 1, 1), mode="replicate") | x=2,3,4,4
F.pad(x, (1, 2, 1, 1), mode="circular") | x=2,3,4,4
F.pad(x, (1, 1, 1, 1, 1, 1), mode="reflect") | x=2,3,4,4,4
F.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate") | x=2,3,4,4,4
F.pairwise_distance(x, y) | x=3,4;y=3,4
F.pdist(x) | x=3,4
F.pdist(x, 1.0) | x=3,4
F.pixel_shuffle(x, 2) | x=2,4,3,3
F.pixel_unshuffle(x, 2) | x=2,4,4,4
F.poisson_nll_loss(x, y.abs()) | x=3,4;y=3,4
F.poisson_nll_loss(x.exp(), y.abs(), log_input=False, full=True) | x=3,4;y=3,4
F.prelu(x, w) | x=3,4;w=4
F.prelu(x, w) | x=3,4;w=1
F.relu(x) | x=3,4
F.relu6(x) | x=3,4
F.rms_norm(x, (4,), w) | x=3,4;w=4
F.rms_norm(x, (4,)) | x=3,4
F.rrelu(x, 0.1, 0.3, True) | x=3,4
F.rrelu(x, 0.1, 0.3, False) | x=3,4
F.scaled_dot_product_attention(q, k, v) | q=2,2,4,3;k=2,2,4,3;v=2,2,4,3
F.scaled_dot_product_attention(q, k, v, is_causal=True) | q=2,2,4,3;k=2,2,4,3;v=2,2,4,3
F.scaled_dot_product_attention(q, k, v, m) | q=2,2,4,3;k=2,2,4,3;v=2,2,4,3;m=4,4
F.selu(x) | x=3,4
F.sigmoid(x) | x=3,4
F.silu(x) | x=3,4
F.smooth_l1_loss(x, y) | x=3,4;y=3,4
F.smooth_l1_loss(x, y, reduction="none", beta=0.5) | x=3,4;y=3,4
F.soft_margin_loss(x, y.sign()) | x=3,4;y=3,4
F.softmax(x, 1) | x=3,4
F.softmin(x, 1) | x=3,4
F.softplus(x) | x=3,4
F.softshrink(x) | x=3,4
F.softsign(x) | x=3,4
F.tanh(x) | x=3,4
F.tanhshrink(x) | x=3,4
F.threshold(x, 0.1, 2.0) | x=3,4
F.triplet_margin_loss(x, y, z) | x=3,4;y=3,4;z=3,4
F.triplet_margin_with_distance_loss(x, y, z) | x=3,4;y=3,4;z=3,4
F.unfold(x, 2) | x=1,2,4,4
F.upsample(x, scale_factor=2) | x=2,3,4
t.nn.RNN(4, 3).double()(x, h)[0] | x=5,2,4;h=1,2,3
t.nn.LSTM(4, 3).double()(x)[0] | x=5,2,4
t.nn.GRU(4, 3).double()(x, h)[0] | x=5,2,4;h=1,2,3
t.nn.RNN(4, 3, nonlinearity="relu").double()(x, h)[0] | x=5,2,4;h=1,2,3
t.nn.LSTMCell(4, 3).double()(x)[0] | x=2,4
t.nn.GRUCell(4, 3).double()(x, h) | x=2,4;h=2,3
t.nn.RNNCell(4, 3).double()(x, h) | x=2,4;h=2,3
t.nn.Conv2d(3, 4, 3).double()(x) | x=2,3,6,6
t.nn.Linear(4, 4).double()(x) | x=2,4
t.nn.MultiheadAttention(4, 2).double()(x, x, x)[0] | x=5,2,4
t.nn.TransformerEncoderLayer(4, 2, 8, 0.0).double()(x) | x=5,2,4
t.nn.BatchNorm2d(3).double().eval()(x) | x=2,3,4,4
t.nn.BatchNorm1d(3).double()(x) | x=2,3
"""


def calls() -> Iterator[tuple[str, Operands]]:
    """The expressions and their operands, as PyTorch's tensors."""
    for group in by_name().values():
        first = {}
        for case in group:
            if case.dtype == "float64" and case.layout == "contiguous" and not case.out:
                first.setdefault(case.call, case)
        for call, case in first.items():
            if case.entry.gradient:
                letters = [letter for letter in _letters(call) if letter != "d"]
                yield call, {letter: _values(letter, case) for letter in letters}
    for line in LAYERS.strip().splitlines():
        call, operands = line.rsplit(" | ", 1)
        yield call, {part[0]: _drawn(part[2:], line) for part in operands.split(";")}


def _drawn(what: str, line: str) -> Any:
    seed = torch.Generator().manual_seed(zlib.crc32(line.encode()))
    size, _, below = what.partition("<")
    shape = tuple(map(int, size.split(",")))
    if below:
        return torch.randint(int(below), shape, generator=seed)
    return torch.randn(shape, generator=seed, dtype=torch.float64)
