"""Entries for shapes, views, indexing and scattering."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

from op_parity import FLOATING, LAYOUTS, REAL, Entry, Index

CUBE = {"x": (2, 2, 3), "y": (2, 2, 3)}

MOVEMENT = [
    Entry(
        "reshape view",
        calls="x.NAME(-1); x.NAME(3, 2); x.NAME((6,)); x.NAME(2, 3); x.NAME(-1, -1);"
        "x.NAME(4, 2); x.NAME(1, 2, 3); x.NAME(3, -1)",
    ),
    Entry(
        "view", calls="x.view(t.int32); x.view(t.uint8); x.view(d); s.view(1, 1)", gradient=False
    ),
    Entry("reshape", calls="t.reshape(x, (-1,)); t.reshape(x, (2, 1, -1)); t.reshape(x, (7,))"),
    Entry("reshape_as view_as", "x, y; x, r"),
    Entry("flatten", "x; x, 1; x, 0, 1; x, start_dim=-1; x, 1, 0", shapes=CUBE),
    Entry("squeeze", "x; x, 0; x, 1; x, dim=-1; x, 5; x, (0, 1)", shapes={"x": (1, 3, 1)}),
    Entry("unsqueeze", "x, 0; x, -1; x, 1; x, 2; x, 5; x, dim=-3"),
    Entry("transpose", "x, 0, 1; x, -1, 0; x, 1, 1; x, 0, 3; x, dim0=0, dim1=1"),
    Entry("t", "x; r; s"),
    Entry("t", "x", shapes=CUBE),
    Entry(
        "permute",
        calls="x.permute(2, 0, 1); x.permute((0, 2, 1)); x.permute(-1, 0, 1);"
        "x.permute(0, 0, 1); x.permute(0, 1)",
        shapes=CUBE,
    ),
    Entry(
        "expand",
        calls="c.expand(2, 3); c.expand(4, 2, 3); c.expand(-1, 3); c.expand(3, 3);"
        "c.expand((2, 2)); c.expand(-1); c.expand(-1, 2, 3); x.expand(2, 3)",
    ),
    Entry("expand_as", calls="c.expand_as(x); r.expand_as(x); x.expand_as(c)"),
    Entry(
        "repeat",
        calls="x.repeat(2, 1); x.repeat(2, 1, 3); x.repeat(0, 1); x.repeat(2);"
        "x.repeat((1, 2)); x.repeat(-1, 2)",
    ),
    Entry(
        "narrow",
        "x, 0, 0, 1; x, 1, 1, 2; x, -1, 0, 0; x, 0, 1, 3; x, 1, -1, 1; x, dim=0, start=1, length=1;"
        "x, 4, 0, 1",
    ),
    Entry("narrow_copy", calls="x.narrow_copy(1, 0, 2); x.narrow_copy(0, 1, 3)"),
    Entry(
        "select",
        calls="x.select(0, 1); x.select(-1, -1); x.select(0, 5); x.select(3, 0); t.select(x, 1, 0)",
    ),
    Entry("unbind", "x; x, 1; x, dim=-1; x, 4"),
    Entry("chunk", "x, 2; x, 2, 1; x, 5, dim=-1; x, 0; x, 2, 4"),
    Entry("split", "x, 1; x, 2, 1; x, [1, 2], 1; x, 2, dim=-1; x, 0; x, [1, 1], 1; x, -1"),
    Entry("split_with_sizes", "x, [1, 1]; x, [1, 2], dim=1; x, [2, 2], 1"),
    Entry(
        "unfold",
        calls="x.unfold(1, 2, 1); x.unfold(-1, 2, 2); x.unfold(0, 1, 1); x.unfold(1, 4, 1);"
        "x.unfold(1, 2, 0)",
    ),
    Entry(
        "as_strided",
        "x, (2, 2), (1, 1); x, (2,), (1,), 1; x, (3,), (0,); x, (9, 9), (9, 9); x, (2,), (-1,)",
        layouts=["contiguous", "sliced", "offset", "transposed"],
    ),
    Entry("diagonal", "x; x, 1; x, -1; x, offset=0, dim1=1, dim2=0; x, 7; x, 0, 0, 0"),
    Entry("diag", "x; v; v, 1; v, -2; x, 1", out=True),
    Entry("diag_embed", "x; x, 1; x, offset=-1, dim1=0, dim2=2; v"),
    Entry("diagflat", "x; v, 1; s; v, -1"),
    Entry("tril triu", "x; x, 1; x, diagonal=-1; x, 9; v", out=True),
    Entry("tril triu", "x", shapes=CUBE),
    Entry(
        "flip",
        calls="t.flip(x, (0,)); x.flip(1); x.flip(0, 1); x.flip(-1); t.flip(x, (0, 0)); x.flip(5);"
        "t.flip(x, ())",
    ),
    Entry("roll", "x, 1; x, 2, 0; x, (1, 1), (0, 1); x, -1, -1; x, 1, 4; x, (1, 2), 0"),
    Entry("rot90", "x; x, 2; x, 1, (1, 0); x, 3, [0, 1]; x, 1, [0, 0]; x, -1"),
    Entry(
        "cat",
        calls="t.cat([x, y]); t.cat((x, y), 1); t.cat([x, y], dim=-1); t.cat([x, r]);"
        "t.cat([]); t.cat([x, y], 3); t.cat([x, y], 0, out=z); t.cat([x[:0], y]); t.cat(x);"
        "t.cat([x, t.zeros(2, 3)])",
    ),
    Entry(
        "stack",
        calls="t.stack([x, y]); t.stack((x, y), 1); t.stack([x, y], dim=-1); t.stack([x, r]);"
        "t.stack([]); t.stack([x, y], 4); t.stack([x])",
    ),
    Entry(
        "broadcast_tensors",
        calls="t.broadcast_tensors(x, r); t.broadcast_tensors(c, r, s);t.broadcast_tensors(x, e)",
    ),
    Entry(
        "meshgrid",
        calls="t.meshgrid(v, w); t.meshgrid([v, w], indexing='ij'); t.meshgrid(v, w, indexing='xy');"
        "t.meshgrid(v); t.meshgrid(x, v)",
    ),
    Entry(
        "cartesian_prod",
        calls="t.cartesian_prod(v, w); t.cartesian_prod(v); t.cartesian_prod(x, v)",
    ),
    Entry(
        "combinations",
        calls="t.combinations(v); t.combinations(v, 3); t.combinations(v, 2, True);"
        "t.combinations(v, r=1, with_replacement=True); t.combinations(x); t.combinations(v, 0)",
    ),
    Entry(
        "sum_to_size",
        calls="x.sum_to_size(1, 3); x.sum_to_size(2, 1); x.sum_to_size(3); x.sum_to_size(4)",
    ),
    Entry(
        "squeeze_ unsqueeze_ transpose_ t_",
        calls="x.NAME(0) if 'squeeze' in 'NAME' else"
        " (x.NAME(0, 1) if 'trans' in 'NAME' else x.NAME())",
        gradient=False,
    ),
    Entry(
        "resize_",
        calls="x.resize_(3, 2); x.resize_(2); x.resize_(2, 2); x.resize_((1, 3)); x.resize_(-1)",
        gradient=False,
    ),
    Entry("resize_as_", calls="x.resize_as_(c); t.resize_as_(x, r)", gradient=False),
    Entry(
        "set_",
        calls="x.set_(y); x.set_(y.untyped_storage()) if 0 else x.set_(y.storage(), 1, (2,), (1,));"
        "x.set_()",
        gradient=False,
        layouts=["contiguous", "offset", "sliced"],
    ),
    Entry(
        "pixel_shuffle",
        calls="t.pixel_shuffle(x, 2); t.pixel_shuffle(x, 3); t.pixel_shuffle(x, 0)",
        shapes={"x": (1, 4, 2, 3)},
    ),
    Entry(
        "constant_pad_nd",
        calls="t.constant_pad_nd(x, (1, 2)); t.constant_pad_nd(x, (0, 1, 2, 0), 3);"
        "t.constant_pad_nd(x, (-1, 1)); t.constant_pad_nd(x, (1,)); t.constant_pad_nd(x, (-5, 1))",
    ),
]

INDEXING = [
    Entry(
        "gather",
        "x, 1, i; x, 0, j; x, -1, i; x, 1, i.float(); x, 5, i; x, 0, i + 9",
        out=True,
        shapes={"i": Index((2, 2), 3), "j": Index((1, 3), 2)},
    ),
    Entry(
        "index_select",
        "x, 0, i; x, 1, j; x, -1, j; x, 0, i + 9; x, 0, x; x, 3, i; x, 0, i.int()",
        out=True,
        shapes={"i": Index((4,), 2), "j": Index((2,), 3)},
    ),
    Entry("masked_select", "x, n; x, n[0]; x, x; x, n[:1, :1]", out=True),
    Entry("nonzero", "x; x, as_tuple=True; s", layouts=LAYOUTS),
    Entry(
        "take", "x, i; x, i + 99; x, i.int(); x, -1 - i", shapes={"i": Index((2, 2), 6)}, out=True
    ),
    Entry(
        "put_",
        calls="x.put_(i, w); x.put_(i, w, accumulate=True); x.put_(i + 99, w); x.put_(i, v)",
        shapes={"i": Index((2,), 6, distinct=True)},
    ),
    Entry("masked_fill", "x, n, 2; x, n[0], 2.5; x, n, s; x, n, r; x, x, 1; x, n, 1j; x, n, True"),
    Entry("masked_scatter", "x, n, y; x, n[0], y; x, n, v[:0]; x, x, y"),
    Entry(
        "index_fill",
        "x, 0, i, 2; x, 1, j, 2.5; x, -1, j, s; x, 0, i, r; x, 0, i + 9, 1",
        shapes={"i": Index((1,), 2), "j": Index((2,), 3)},
    ),
    Entry(
        "index_add",
        "x, 0, i, y; x, 1, j, y; x, 0, i, y, alpha=2; x, 0, i, r; x, -1, j, y; x, 0, i + 9, y",
        shapes={"i": Index((2,), 2), "j": Index((3,), 3)},
    ),
    Entry(
        "index_copy",
        "x, 0, i, y; x, 1, j, y; x, 0, i, r; x, 0, i + 9, y",
        shapes={"i": Index((2,), 2, distinct=True), "j": Index((3,), 3, distinct=True)},
    ),
    Entry(
        "scatter",
        "x, 1, i, y; x, 1, i, 2; x, 0, i, y, reduce='add'; x, 0, i, y, reduce='multiply'; x, 1, i, 2, reduce='multiply';"
        "x, 1, i + 9, y; x, -1, i, y; x, 5, i, y; x, 1, i, 2.5",
        shapes={"i": Index((2, 1), 2)},
    ),
    Entry(
        "scatter_add",
        "x, 1, i, y; x, 0, j, y; x, 1, i + 9, y; x, 1, i, r",
        shapes={"i": Index((2, 3), 3), "j": Index((2, 2), 2)},
    ),
    Entry(
        "index_put",
        "x, (i,), y; x, (i, j), w; x, (i,), y, accumulate=True; x, (n,), s; x, (i,), s;"
        "x, (None, j), s; x, (i + 9,), y; x, [i, j], w, True",
        shapes={"i": Index((2,), 2, distinct=True), "j": Index((2,), 3, distinct=True)},
    ),
    Entry(
        "select",
        calls="x[0]; x[-1]; x[1:, ::2]; x[..., 0]; x[None]; x[:, None]; x[i]; x[i, j]; x[:, j];"
        "x[n]; x[5]; x[i + 9]; x[0, 0, 0]; x[n, 0]; x[[0, 1]]; x[::-1]; x[True]; x[False]; x[1.5]; x['a'];"
        "x[j > 0]; x[..., None]; x[:, [2, 0]]; x[i[0]]; x[()]; x[i, :, None]; x[:, 3:]; x[n[0]]",
        shapes={"i": Index((2,), 2), "j": Index((2,), 3)},
    ),
    Entry(
        "index_put_",
        calls="x.__setitem__(0, 2); x.__setitem__((slice(None), 1), w); x.__setitem__(n, 1.5);"
        "x.__setitem__(i, y); x.__setitem__((i, j), w); x.__setitem__(Ellipsis, s); x.__setitem__(5, 1);"
        "x.__setitem__(0, e); x.__setitem__((slice(None), j), 3); x.__setitem__(n, y[n])",
        shapes={"i": Index((2,), 2, distinct=True), "j": Index((2,), 3, distinct=True)},
    ),
    Entry(
        "bincount",
        "i; i, minlength=7; i, w; j; x",
        shapes={"i": Index((3,), 5), "w": (3,), "j": Index((2, 2), 4)},
        gradient=False,
    ),
    Entry(
        "unique",
        calls="t.unique(x); x.unique(return_inverse=True); t.unique(x, return_counts=True);"
        "t.unique(x, dim=0); t.unique(x, True, True, True, 1); x.unique(sorted=True)",
        gradient=False,
        dtypes=REAL,
    ),
    Entry(
        "argsort",
        "x; x, 1; x, -1, True; x, dim=0, descending=True; x, 4; x, dim=0, stable=True",
        dtypes=REAL,
    ),
    Entry(
        "sort", "x; x, 1; x, 0, True; x, dim=-1, descending=True; x, 4", out=True, layouts=LAYOUTS
    ),
    Entry(
        "topk",
        "v, 2; x, 1; x, 2, -1; x, 2, 1, False; x, 1, dim=0, largest=False; x, 9; x, -1; x, 0",
        out=True,
        layouts=LAYOUTS,
    ),
    Entry(
        "kthvalue", "x, 1; x, 2, 0; x, 2, -1, True; x, 9; x, 0; x, 1, dim=0, keepdim=True", out=True
    ),
    Entry(
        "embedding",
        calls="t.embedding(q, i); t.embedding(q, i + 9); t.embedding(q, i, 1); t.embedding(q, i.double())",
        shapes={"i": Index((2, 2), 3)},
        dtypes=FLOATING,
    ),
    Entry(
        "embedding_bag",
        calls="t.embedding_bag(q, i, j)[0]; t.embedding_bag(q, i, j, mode=1)[0];"
        "t.embedding_bag(q, i, j, mode=2)[0]",
        shapes={"i": Index((4,), 3), "j": Index((1,), 1)},
        dtypes=["float64", "float32"],
        layouts=["contiguous", "transposed"],
    ),
]
