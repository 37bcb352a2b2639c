"""Entries for functions of layers that are also names of `torch`."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

from op_parity import DOUBLE, FLOATING, Entry, Index

PLAIN = ["contiguous", "transposed", "sliced", "expanded", "offset"]
EMPTY = [*PLAIN, "empty"]

LAYERS = [
    Entry(
        "dropout feature_dropout alpha_dropout feature_alpha_dropout",
        calls="t.NAME(x, 0.5, False);"
        "t.NAME(x, 0.0, True); t.NAME(x, 1.5, True); t.NAME_(x, 0.5, False); t.NAME(x, -0.5, False)",
        shapes={"x": (2, 4, 3)},
        dtypes=FLOATING,
        layouts=EMPTY,
    ),
    Entry(
        "dropout alpha_dropout",
        calls="(t.manual_seed(1), t.NAME(x, 0.5, True))[1]",
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "rrelu",
        calls="t.rrelu(x, 0.1, 0.3, False); t.rrelu_(x, 0.25, 0.5)",
        dtypes=FLOATING,
        layouts=EMPTY,
    ),
    Entry(
        "layer_norm",
        calls="t.layer_norm(x, (3,)); t.layer_norm(x, (2, 3)); t.layer_norm(x, (3,), r, v); t.layer_norm(x, (4,));"
        "t.layer_norm(x, (3,), eps=0.1)",
        dtypes=FLOATING,
        layouts=EMPTY,
        tolerance=10,
    ),
    Entry(
        "group_norm nn.functional.group_norm",
        calls="t.group_norm(x, 2); t.group_norm(x, 4, u, u); t.group_norm(x, 3); t.group_norm(x, 0)",
        shapes={"x": (2, 4, 3)},
        dtypes=FLOATING,
        layouts=EMPTY,
        tolerance=10,
    ),
    Entry(
        "batch_norm",
        calls="t.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False);"
        "t.batch_norm(x, u, u, u, u, False, 0.1, 1e-5, False); t.batch_norm(x, v, v, None, None, False, 0.1, 1e-5, False)",
        shapes={"x": (2, 4, 3)},
        values="positive",
        dtypes=DOUBLE,
        layouts=EMPTY,
        tolerance=10,
    ),
    Entry(
        "instance_norm",
        calls="t.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False);"
        "t.instance_norm(x, None, None, u, u, True, 0.1, 1e-5, False)",
        shapes={"x": (2, 4, 5)},
        dtypes=DOUBLE,
        layouts=PLAIN,
        tolerance=10,
    ),
    Entry(
        "conv1d conv_transpose1d",
        calls="t.NAME(x, y); t.NAME(x, y, w); t.NAME(x, y, None, 2, 1); t.NAME(x, y, padding=1, dilation=2); t.NAME(x, v)",
        shapes={"x": (2, 2, 6), "y": (2, 2, 3)},
        dtypes=FLOATING,
        layouts=EMPTY,
        tolerance=3,
    ),
    Entry(
        "conv2d conv_transpose2d",
        calls="t.NAME(x, y); t.NAME(x, y, w); t.NAME(x, y, None, 2, 1); t.NAME(x, y, stride=(1, 2)); t.NAME(x, v)",
        shapes={"x": (1, 2, 5, 4), "y": (2, 2, 2, 3)},
        dtypes=DOUBLE,
        layouts=PLAIN,
        tolerance=10,
    ),
    Entry(
        "conv3d conv_transpose3d",
        calls="t.NAME(x, y); t.NAME(x, y, w); t.NAME(x, y, None, 2, 1)",
        shapes={"x": (1, 2, 4, 3, 4), "y": (2, 2, 2, 2, 2)},
        dtypes=DOUBLE,
        layouts=PLAIN,
        tolerance=10,
    ),
    Entry(
        "convolution",
        calls="t.convolution(x, y, w, [1], [0], [1], False, [0], 1); t.convolution(x, y, None, [2], [1], [1], True, [0], 1)",
        shapes={"x": (2, 2, 6), "y": (2, 2, 3)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "conv_tbc",
        calls="t.conv_tbc(x, y, w); t.conv_tbc(x, y, w, 1)",
        shapes={"x": (5, 2, 4), "y": (3, 4, 2)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "avg_pool1d",
        calls="t.avg_pool1d(x, 2); t.avg_pool1d(x, 3, 1, 1); t.avg_pool1d(x, 3, 2, 1, True, False); t.avg_pool1d(x, 0)",
        shapes={"x": (2, 2, 6)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "adaptive_avg_pool1d adaptive_max_pool1d",
        calls="t.NAME(x, 2); t.NAME(x, 4); t.NAME(x, (3,)); t.NAME(x, -1)",
        shapes={"x": (2, 2, 6)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "affine_grid_generator",
        calls="t.affine_grid_generator(x, [2, 1, 2, 3], False); t.affine_grid_generator(x, [2, 1, 2, 3], True)",
        shapes={"x": (2, 2, 3)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "grid_sampler grid_sampler_2d",
        calls="t.NAME(x, y, 0, 0, False); t.NAME(x, y, 1, 1, True); t.NAME(x, y, 0, 2, True)",
        shapes={"x": (1, 2, 3, 4), "y": (1, 2, 2, 2)},
        values="unit",
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "grid_sampler_3d",
        calls="t.NAME(x, y, 0, 0, False); t.NAME(x, y, 1, 1, True)",
        shapes={"x": (1, 1, 3, 4, 2), "y": (1, 2, 2, 2, 3)},
        values="unit",
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "binary_cross_entropy_with_logits",
        calls="t.NAME(x, y); t.NAME(x, y, r); t.NAME(x, y, None, r); t.NAME(x, y, reduction=0); t.NAME(x, r)",
        values="positive",
        dtypes=FLOATING,
        layouts=EMPTY,
    ),
    Entry(
        "cosine_embedding_loss",
        calls="t.NAME(x, y, w); t.NAME(x, y, w, 0.5); t.NAME(x, y, w, reduction=0)",
        dtypes=DOUBLE,
        layouts=EMPTY,
        tolerance=10,
    ),
    Entry(
        "hinge_embedding_loss",
        calls="t.NAME(x, y.sign()); t.NAME(x, y.sign(), 0.5); t.NAME(x, y.sign(), reduction=0)",
        dtypes=DOUBLE,
        layouts=EMPTY,
    ),
    Entry(
        "margin_ranking_loss",
        calls="t.NAME(x, y, z); t.NAME(x, y, z, 0.5); t.NAME(x, y, z, reduction=2)",
        dtypes=DOUBLE,
        layouts=EMPTY,
    ),
    Entry(
        "triplet_margin_loss",
        calls="t.NAME(x, y, z); t.NAME(x, y, z, 0.5, 1, swap=True); t.NAME(x, y, z, reduction=0)",
        dtypes=DOUBLE,
        layouts=PLAIN,
        tolerance=10,
    ),
    Entry(
        "kl_div",
        calls="t.kl_div(x, y); t.kl_div(x, y, 0); t.kl_div(x, y, 2, log_target=True)",
        values="positive",
        dtypes=DOUBLE,
        layouts=EMPTY,
    ),
    Entry(
        "ctc_loss",
        calls="t.ctc_loss(x.log_softmax(2), i, [4, 4], [2, 1]); t.ctc_loss(x.log_softmax(2), i, [4, 4], [2, 1], reduction=0)",
        shapes={"x": (4, 2, 3), "i": Index((2, 2), 3, 1)},
        dtypes=DOUBLE,
        layouts=["contiguous", "sliced"],
    ),
    Entry(
        "lstm_cell",
        calls="t.lstm_cell(x, (y, z), q, r, c, u)",
        shapes={
            "x": (2, 3),
            "y": (2, 2),
            "z": (2, 2),
            "q": (8, 3),
            "r": (8, 2),
            "c": (8,),
            "u": (8,),
        },
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "gru_cell",
        calls="t.gru_cell(x, y, q, r, c, u)",
        shapes={"y": (2, 2), "q": (6, 3), "r": (6, 2), "c": (6,), "u": (6,)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "rnn_tanh_cell rnn_relu_cell",
        calls="t.NAME(x, y, q, r, c, u)",
        shapes={"y": (2, 2), "q": (2, 3), "r": (2, 2), "c": (2,), "u": (2,)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "rnn_tanh rnn_relu",
        calls="t.NAME(x, y, [q, r, c, u], True, 1, 0.0, False, False, False)",
        shapes={"x": (4, 2, 3), "y": (1, 2, 2), "q": (2, 3), "r": (2, 2), "c": (2,), "u": (2,)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "gru",
        calls="t.NAME(x, y, [q, r, c, u], True, 1, 0.0, False, False, False)",
        shapes={"x": (4, 2, 3), "y": (1, 2, 2), "q": (6, 3), "r": (6, 2), "c": (6,), "u": (6,)},
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
    Entry(
        "lstm",
        calls="t.NAME(x, (y, z), [q, r, c, u], True, 1, 0.0, False, False, False)",
        shapes={
            "x": (4, 2, 3),
            "y": (1, 2, 2),
            "z": (1, 2, 2),
            "q": (8, 3),
            "r": (8, 2),
            "c": (8,),
            "u": (8,),
        },
        dtypes=DOUBLE,
        layouts=PLAIN,
    ),
]
