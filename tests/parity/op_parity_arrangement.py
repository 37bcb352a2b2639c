"""Entries for tensors made of others: diagonals, flips, joined and repeated ones, padding."""

from __future__ import annotations

from op_parity import Entry

CUBE = {"x": (2, 2, 3), "y": (2, 2, 3)}

ARRANGEMENT = [
    Entry(
        "repeat",
        programs=[
            lambda x: x.repeat(2, 1),
            lambda x: x.repeat(2, 1, 3),
            lambda x: x.repeat(0, 1),
            lambda x: x.repeat(2),
            lambda x: x.repeat((1, 2)),
            lambda x: x.repeat(-1, 2),
        ],
    ),
    Entry(
        "diag",
        programs=[
            lambda f, x: f(x),
            lambda f, v: f(v),
            lambda f, v: f(v, 1),
            lambda f, v: f(v, -2),
            lambda f, x: f(x, 1),
        ],
        out=True,
    ),
    Entry(
        "diag_embed",
        programs=[
            lambda f, x: f(x),
            lambda f, x: f(x, 1),
            lambda f, x: f(x, offset=-1, dim1=0, dim2=2),
            lambda f, v: f(v),
        ],
    ),
    Entry(
        "diagflat",
        programs=[
            lambda f, x: f(x),
            lambda f, v: f(v, 1),
            lambda f, s: f(s),
            lambda f, v: f(v, -1),
        ],
    ),
    Entry(
        "tril triu",
        programs=[
            lambda f, x: f(x),
            lambda f, x: f(x, 1),
            lambda f, x: f(x, diagonal=-1),
            lambda f, x: f(x, 9),
            lambda f, v: f(v),
        ],
        out=True,
    ),
    Entry(
        "tril triu",
        programs=[
            lambda f, x: f(x),
        ],
        shapes=CUBE,
    ),
    Entry(
        "flip",
        programs=[
            lambda t, x: t.flip(x, (0,)),
            lambda x: x.flip(1),
            lambda x: x.flip(0, 1),
            lambda x: x.flip(-1),
            lambda t, x: t.flip(x, (0, 0)),
            lambda x: x.flip(5),
            lambda t, x: t.flip(x, ()),
        ],
    ),
    Entry(
        "roll",
        programs=[
            lambda f, x: f(x, 1),
            lambda f, x: f(x, 2, 0),
            lambda f, x: f(x, (1, 1), (0, 1)),
            lambda f, x: f(x, -1, -1),
            lambda f, x: f(x, 1, 4),
            lambda f, x: f(x, (1, 2), 0),
        ],
    ),
    Entry(
        "rot90",
        programs=[
            lambda f, x: f(x),
            lambda f, x: f(x, 2),
            lambda f, x: f(x, 1, (1, 0)),
            lambda f, x: f(x, 3, [0, 1]),
            lambda f, x: f(x, 1, [0, 0]),
            lambda f, x: f(x, -1),
        ],
    ),
    Entry(
        "cat",
        programs=[
            lambda t, x, y: t.cat([x, y]),
            lambda t, x, y: t.cat((x, y), 1),
            lambda t, x, y: t.cat([x, y], dim=-1),
            lambda t, x, r: t.cat([x, r]),
            lambda t: t.cat([]),
            lambda t, x, y: t.cat([x, y], 3),
            lambda t, x, y, z: t.cat([x, y], 0, out=z),
            lambda t, x, y: t.cat([x[:0], y]),
            lambda t, x: t.cat(x),
            lambda t, x: t.cat([x, t.zeros(2, 3)]),
        ],
    ),
    Entry(
        "stack",
        programs=[
            lambda t, x, y: t.stack([x, y]),
            lambda t, x, y: t.stack((x, y), 1),
            lambda t, x, y: t.stack([x, y], dim=-1),
            lambda t, x, r: t.stack([x, r]),
            lambda t: t.stack([]),
            lambda t, x, y: t.stack([x, y], 4),
            lambda t, x: t.stack([x]),
        ],
    ),
    Entry(
        "broadcast_tensors",
        programs=[
            lambda t, x, r: t.broadcast_tensors(x, r),
            lambda t, c, r, s: t.broadcast_tensors(c, r, s),
            lambda t, x, e: t.broadcast_tensors(x, e),
        ],
    ),
    Entry(
        "meshgrid",
        programs=[
            lambda t, v, w: t.meshgrid(v, w),
            lambda t, v, w: t.meshgrid([v, w], indexing="ij"),
            lambda t, v, w: t.meshgrid(v, w, indexing="xy"),
            lambda t, v: t.meshgrid(v),
            lambda t, x, v: t.meshgrid(x, v),
        ],
    ),
    Entry(
        "cartesian_prod",
        programs=[
            lambda t, v, w: t.cartesian_prod(v, w),
            lambda t, v: t.cartesian_prod(v),
            lambda t, x, v: t.cartesian_prod(x, v),
        ],
    ),
    Entry(
        "combinations",
        programs=[
            lambda t, v: t.combinations(v),
            lambda t, v: t.combinations(v, 3),
            lambda t, v: t.combinations(v, 2, True),
            lambda t, v: t.combinations(v, r=1, with_replacement=True),
            lambda t, x: t.combinations(x),
            lambda t, v: t.combinations(v, 0),
        ],
    ),
    Entry(
        "sum_to_size",
        programs=[
            lambda x: x.sum_to_size(1, 3),
            lambda x: x.sum_to_size(2, 1),
            lambda x: x.sum_to_size(3),
            lambda x: x.sum_to_size(4),
        ],
    ),
    Entry(
        "pixel_shuffle",
        programs=[
            lambda t, x: t.pixel_shuffle(x, 2),
            lambda t, x: t.pixel_shuffle(x, 3),
            lambda t, x: t.pixel_shuffle(x, 0),
        ],
        shapes={"x": (1, 4, 2, 3)},
    ),
    Entry(
        "constant_pad_nd",
        programs=[
            lambda t, x: t.constant_pad_nd(x, (1, 2)),
            lambda t, x: t.constant_pad_nd(x, (0, 1, 2, 0), 3),
            lambda t, x: t.constant_pad_nd(x, (-1, 1)),
            lambda t, x: t.constant_pad_nd(x, (1,)),
            lambda t, x: t.constant_pad_nd(x, (-5, 1)),
        ],
    ),
]
