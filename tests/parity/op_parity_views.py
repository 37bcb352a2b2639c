"""Entries for views of a tensor, and for what gives a tensor another place in memory."""

from __future__ import annotations

from op_parity import Entry

CUBE = {"x": (2, 2, 3), "y": (2, 2, 3)}

VIEWS = [
    Entry(
        "reshape",
        programs=[
            lambda x: x.reshape(-1),
            lambda x: x.reshape(3, 2),
            lambda x: x.reshape((6,)),
            lambda x: x.reshape(2, 3),
            lambda x: x.reshape(-1, -1),
            lambda x: x.reshape(4, 2),
            lambda x: x.reshape(1, 2, 3),
            lambda x: x.reshape(3, -1),
        ],
    ),
    Entry(
        "view",
        programs=[
            lambda x: x.view(-1),
            lambda x: x.view(3, 2),
            lambda x: x.view((6,)),
            lambda x: x.view(2, 3),
            lambda x: x.view(-1, -1),
            lambda x: x.view(4, 2),
            lambda x: x.view(1, 2, 3),
            lambda x: x.view(3, -1),
        ],
    ),
    Entry(
        "view",
        programs=[
            lambda t, x: x.view(t.int32),
            lambda t, x: x.view(t.uint8),
            lambda x, d: x.view(d),
            lambda s: s.view(1, 1),
        ],
        gradient=False,
    ),
    Entry(
        "reshape",
        programs=[
            lambda t, x: t.reshape(x, (-1,)),
            lambda t, x: t.reshape(x, (2, 1, -1)),
            lambda t, x: t.reshape(x, (7,)),
        ],
    ),
    Entry(
        "reshape_as view_as",
        programs=[
            lambda f, x, y: f(x, y),
            lambda f, x, r: f(x, r),
        ],
    ),
    Entry(
        "flatten",
        programs=[
            lambda f, x: f(x),
            lambda f, x: f(x, 1),
            lambda f, x: f(x, 0, 1),
            lambda f, x: f(x, start_dim=-1),
            lambda f, x: f(x, 1, 0),
        ],
        shapes=CUBE,
    ),
    Entry(
        "squeeze",
        programs=[
            lambda f, x: f(x),
            lambda f, x: f(x, 0),
            lambda f, x: f(x, 1),
            lambda f, x: f(x, dim=-1),
            lambda f, x: f(x, 5),
            lambda f, x: f(x, (0, 1)),
        ],
        shapes={"x": (1, 3, 1)},
    ),
    Entry(
        "unsqueeze",
        programs=[
            lambda f, x: f(x, 0),
            lambda f, x: f(x, -1),
            lambda f, x: f(x, 1),
            lambda f, x: f(x, 2),
            lambda f, x: f(x, 5),
            lambda f, x: f(x, dim=-3),
        ],
    ),
    Entry(
        "transpose",
        programs=[
            lambda f, x: f(x, 0, 1),
            lambda f, x: f(x, -1, 0),
            lambda f, x: f(x, 1, 1),
            lambda f, x: f(x, 0, 3),
            lambda f, x: f(x, dim0=0, dim1=1),
        ],
    ),
    Entry(
        "t",
        programs=[
            lambda f, x: f(x),
            lambda f, r: f(r),
            lambda f, s: f(s),
        ],
    ),
    Entry(
        "t",
        programs=[
            lambda f, x: f(x),
        ],
        shapes=CUBE,
    ),
    Entry(
        "permute",
        programs=[
            lambda x: x.permute(2, 0, 1),
            lambda x: x.permute((0, 2, 1)),
            lambda x: x.permute(-1, 0, 1),
            lambda x: x.permute(0, 0, 1),
            lambda x: x.permute(0, 1),
        ],
        shapes=CUBE,
    ),
    Entry(
        "expand",
        programs=[
            lambda c: c.expand(2, 3),
            lambda c: c.expand(4, 2, 3),
            lambda c: c.expand(-1, 3),
            lambda c: c.expand(3, 3),
            lambda c: c.expand((2, 2)),
            lambda c: c.expand(-1),
            lambda c: c.expand(-1, 2, 3),
            lambda x: x.expand(2, 3),
        ],
    ),
    Entry(
        "expand_as",
        programs=[
            lambda x, c: c.expand_as(x),
            lambda x, r: r.expand_as(x),
            lambda x, c: x.expand_as(c),
        ],
    ),
    Entry(
        "narrow",
        programs=[
            lambda f, x: f(x, 0, 0, 1),
            lambda f, x: f(x, 1, 1, 2),
            lambda f, x: f(x, -1, 0, 0),
            lambda f, x: f(x, 0, 1, 3),
            lambda f, x: f(x, 1, -1, 1),
            lambda f, x: f(x, dim=0, start=1, length=1),
            lambda f, x: f(x, 4, 0, 1),
        ],
    ),
    Entry(
        "narrow_copy",
        programs=[
            lambda x: x.narrow_copy(1, 0, 2),
            lambda x: x.narrow_copy(0, 1, 3),
        ],
    ),
    Entry(
        "select",
        programs=[
            lambda x: x.select(0, 1),
            lambda x: x.select(-1, -1),
            lambda x: x.select(0, 5),
            lambda x: x.select(3, 0),
            lambda t, x: t.select(x, 1, 0),
        ],
    ),
    Entry(
        "unbind",
        programs=[
            lambda f, x: f(x),
            lambda f, x: f(x, 1),
            lambda f, x: f(x, dim=-1),
            lambda f, x: f(x, 4),
        ],
    ),
    Entry(
        "chunk",
        programs=[
            lambda f, x: f(x, 2),
            lambda f, x: f(x, 2, 1),
            lambda f, x: f(x, 5, dim=-1),
            lambda f, x: f(x, 0),
            lambda f, x: f(x, 2, 4),
        ],
    ),
    Entry(
        "split",
        programs=[
            lambda f, x: f(x, 1),
            lambda f, x: f(x, 2, 1),
            lambda f, x: f(x, [1, 2], 1),
            lambda f, x: f(x, 2, dim=-1),
            lambda f, x: f(x, 0),
            lambda f, x: f(x, [1, 1], 1),
            lambda f, x: f(x, -1),
        ],
    ),
    Entry(
        "split_with_sizes",
        programs=[
            lambda f, x: f(x, [1, 1]),
            lambda f, x: f(x, [1, 2], dim=1),
            lambda f, x: f(x, [2, 2], 1),
        ],
    ),
    Entry(
        "unfold",
        programs=[
            lambda x: x.unfold(1, 2, 1),
            lambda x: x.unfold(-1, 2, 2),
            lambda x: x.unfold(0, 1, 1),
            lambda x: x.unfold(1, 4, 1),
            lambda x: x.unfold(1, 2, 0),
        ],
    ),
    Entry(
        "as_strided",
        programs=[
            lambda f, x: f(x, (2, 2), (1, 1)),
            lambda f, x: f(x, (2,), (1,), 1),
            lambda f, x: f(x, (3,), (0,)),
            lambda f, x: f(x, (9, 9), (9, 9)),
            lambda f, x: f(x, (2,), (-1,)),
        ],
        layouts=["contiguous", "sliced", "offset", "transposed"],
    ),
    Entry(
        "diagonal",
        programs=[
            lambda f, x: f(x),
            lambda f, x: f(x, 1),
            lambda f, x: f(x, -1),
            lambda f, x: f(x, offset=0, dim1=1, dim2=0),
            lambda f, x: f(x, 7),
            lambda f, x: f(x, 0, 0, 0),
        ],
    ),
    Entry(
        "squeeze_",
        programs=[
            lambda x: x.squeeze_(0),
        ],
        gradient=False,
    ),
    Entry(
        "unsqueeze_",
        programs=[
            lambda x: x.unsqueeze_(0),
        ],
        gradient=False,
    ),
    Entry(
        "transpose_",
        programs=[
            lambda x: x.transpose_(0, 1),
        ],
        gradient=False,
    ),
    Entry(
        "t_",
        programs=[
            lambda x: x.t_(),
        ],
        gradient=False,
    ),
    Entry(
        "resize_",
        programs=[
            lambda x: x.resize_(3, 2),
            lambda x: x.resize_(2),
            lambda x: x.resize_(2, 2),
            lambda x: x.resize_((1, 3)),
            lambda x: x.resize_(-1),
        ],
        gradient=False,
    ),
    Entry(
        "resize_as_",
        programs=[
            lambda x, c: x.resize_as_(c),
            lambda t, x, r: t.resize_as_(x, r),
        ],
        gradient=False,
    ),
    Entry(
        "set_",
        programs=[
            lambda x, y: x.set_(y),
            lambda x, y: x.set_(y.storage(), 1, (2,), (1,)),
            lambda x: x.set_(),
        ],
        gradient=False,
        layouts=["contiguous", "offset", "sliced"],
    ),
]
