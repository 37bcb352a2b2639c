"""Ops that pick elements or write some of them."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau.onnx._export.errors import OnnxExporterError, UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.symbolic.sums import ADDS, added
from flambeau.onnx._export.table import need_number, symbolic


@symbolic("embedding")
def embedding(
    g: Graph, weight: Value, indices: Value, padding_idx: int = -1, **rest: object
) -> Value:
    return g.op("Gather", weight, indices)


@symbolic("embedding_bag")
def embedding_bag(
    g: Graph,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: int = 0,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    **rest: object,
) -> list[Value | None]:
    """Which bag each index is in, as a matrix that the vectors are multiplied by."""
    g.needs(11, "bags of vectors")
    vectors = g.op("Gather", weight, indices)
    vectors.shape = (None, None)
    count = g.size(indices, 0)
    places = g.op("Range", g.constant(0, fb.int64), g.value(count, fb.int64), g.constant(1))
    starts = g.cast(offsets, fb.int64)
    if include_last_offset:
        starts = g.slice(starts, [0], [-1], [0])
    last = g.reshape(g.value(count, fb.int64), [1])
    ends = g.op("Concat", g.slice(starts, [1], [2**63 - 1], [0]), last, axis_i=0)
    ends.shape = (None,)
    starts, ends = g.unsqueeze(starts, [1]), g.unsqueeze(ends, [1])
    inside = g.op("And", g.op("Not", g.op("Less", places, starts)), g.op("Less", places, ends))
    if padding_idx is not None:
        kept = g.op("Not", g.op("Equal", indices, g.constant(padding_idx, indices.dtype)))
        inside = g.op("And", inside, kept)
    inside.shape = (None, None)
    if mode == 2:
        return [_largest(g, vectors, inside), None, None, None]
    shares = g.cast(inside, weight.dtype)
    shares.shape = (None, None)
    if per_sample_weights is not None:
        shares = g.op("Mul", shares, g.unsqueeze(per_sample_weights, [0]))
    total = g.matmul(shares, vectors)
    if mode == 1:
        number = g.clip(g.reduce("ReduceSum", shares, [1], keepdim=True), 1, None)
        total = g.op("Div", total, number)
    return [total, None, None, None]


def _largest(g: Graph, vectors: Value, inside: Value) -> Value:
    """The largest of each element in each bag; 0 for bags of nothing."""
    least = g.constant(-math.inf, vectors.dtype)
    chosen = g.op("Where", g.unsqueeze(inside, [2]), g.unsqueeze(vectors, [0]), least)
    chosen.shape = (None, None, None)
    found = g.reduce("ReduceMax", chosen, [1])
    found.shape = (None, None)
    full = g.reduce("ReduceMax", g.cast(inside, fb.int32), [1], keepdim=True)
    return g.op("Where", g.cast(full, fb.bool), found, g.constant(0, vectors.dtype))


@symbolic("index_select")
def index_select(g: Graph, self: Value, dim: int, index: Value) -> Value:
    if not index.rank:
        index = g.reshape(index, [1])
    return g.op("Gather", self, index, axis_i=dim % max(1, self.rank))


@symbolic("gather", "take_along_dim", since=11)
def gather(
    g: Graph, self: Value, dim: object = None, index: object = None, indices: object = None
) -> Value:
    return g.op("GatherElements", self, index if index is not None else indices, axis_i=dim)


@symbolic("take")
def take(g: Graph, self: Value, index: Value) -> Value:
    return g.op("Gather", g.reshape(self, [-1]), index)


@symbolic("nonzero", "argwhere")
def nonzero(g: Graph, self: Value) -> Value:
    if not self.rank:  # as many rows as it is true, without columns
        made = g.transpose(g.op("NonZero", g.reshape(self, [1])), [1, 0])
        made.shape = (None, 1)
        return g.slice(made, [0], [0], [1])
    found = g.op("NonZero", self)
    found.shape = (self.rank, None)
    return g.transpose(found, [1, 0])


@symbolic("nonzero_numpy")
def nonzero_numpy(g: Graph, self: Value) -> list[Value]:
    found = g.op("NonZero", self if self.rank else g.reshape(self, [1]))
    return [g.op("Gather", found, g.constant(at), axis_i=0) for at in range(max(1, self.rank))]


@symbolic("masked_select", since=11)
def masked_select(g: Graph, self: Value, mask: Value) -> Value:
    shape = g.op("Shape", _together(g, self, mask))
    places = g.op("NonZero", g.expand(mask, shape))
    places.shape = (max(self.rank, mask.rank), None)
    return g.op("GatherND", g.expand(self, shape), g.transpose(places, [1, 0]))


def _together(g: Graph, x: Value, mask: Value) -> Value:
    zero = g.constant(0, fb.int64)
    one = g.op("Mul", g.filled(g.shape_of(x), 0, fb.int64), zero)
    return g.op("Add", one, g.filled(g.shape_of(mask), 0, fb.int64))


def _whole(g: Graph, indices: list[Any]) -> list[Any]:
    """Masks as the positions that they choose."""
    made: list[Any] = []
    for index in indices:
        if index is None or index.dtype not in (fb.bool, fb.uint8):
            made.append(index)
            continue
        rank = index.rank
        if index.tensor is not None and index.maker is not None:
            made += [g.constant(p.clone()) for p in index.tensor.bool().nonzero(as_tuple=True)]
            continue
        places = g.op("NonZero", index)
        for at in range(rank):
            row = g.op("Gather", places, g.constant(at), axis_i=0)
            row.dtype, row.shape = fb.int64, (None,)
            made.append(row)
    return made


def _positions(
    g: Graph, x: Value, indices: list[Any]
) -> tuple[list[int], list[Value], Value | None]:
    """Which dimensions are indexed, their indices broadcast and from the front, and the shape."""
    dims = [d for d, index in enumerate(indices) if index is not None]
    given = [g.cast(indices[d], fb.int64) for d in dims]
    if len(given) == 1:
        return dims, given, None
    zero = None
    for index in given:
        part = g.op("Mul", index, g.constant(0))
        zero = part if zero is None else g.op("Add", zero, part)
    assert zero is not None
    rank = max(index.rank for index in given)
    made = [g.op("Add", index, zero) for index in given]
    for index in made:
        index.shape = (None,) * rank
        index.dtype = fb.int64
    return dims, made, None


def _forward(g: Graph, x: Value, dim: int, index: Value) -> Value:
    """Indices counted from the front, which older opsets ask for."""
    if g.opset >= 11 or (index.tensor is not None and bool((index.tensor >= 0).all())):
        return index
    size = g.value(g.size(x, dim), fb.int64)
    below = g.op("Less", index, g.constant(0))
    return g.op("Where", below, g.op("Add", index, size), index)


@symbolic("index")
def index(g: Graph, self: Value, indices: list[Any]) -> Value:
    chosen = _whole(g, indices)
    dims, places, _ = _positions(g, self, chosen)
    if not dims:
        return self
    places = [_forward(g, self, d, p) for d, p in zip(dims, places, strict=True)]
    if len(dims) == 1:
        return g.op("Gather", self, places[0], axis_i=dims[0])
    g.needs(11, "indexing by several tensors")
    rank, shared = self.rank, places[0].rank
    rest = [d for d in range(rank) if d not in dims]
    front = g.transpose(self, [*dims, *rest])
    stacked = g.op("Concat", *(g.unsqueeze(p, [shared]) for p in places), axis_i=shared)
    made = g.op("GatherND", front, stacked)
    made.shape = (None,) * (shared + len(rest))
    if dims != list(range(dims[0], dims[0] + len(dims))) or dims[0] == 0:
        return made
    # Indices beside each other: their dimensions stand where the indexed ones stood.
    before = dims[0]
    order = [
        *range(shared, shared + before),
        *range(shared),
        *range(shared + before, shared + len(rest)),
    ]
    return g.transpose(made, order)


@symbolic("index_put")
def index_put(
    g: Graph, self: Value, indices: list[Any], values: object, accumulate: bool = False
) -> Value:
    mask = indices[0] if len(indices) == 1 else None
    value = g.value(values, self.dtype)
    if (
        mask is not None
        and mask.dtype in (fb.bool, fb.uint8)
        and value.shape in ((), (1,))
        and not accumulate
    ):
        condition = g.cast(mask, fb.bool)
        if mask.rank < self.rank:
            condition = g.unsqueeze(condition, range(mask.rank, self.rank))
        return g.op("Where", condition, value, self)
    g.needs(11, "a write to elements that tensors choose")
    chosen = _whole(g, indices)
    dims, places, _ = _positions(g, self, chosen)
    rank, shared = self.rank, places[0].rank
    rest = [d for d in range(rank) if d not in dims]
    front = g.transpose(self, [*dims, *rest])
    stacked = g.op("Concat", *(g.unsqueeze(p, [shared]) for p in places), axis_i=shared)
    shape = g.op("Concat", g.op("Shape", places[0]), *_tail(g, self, rest), axis_i=0)
    adjacent = dims == list(range(dims[0], dims[0] + len(dims))) and dims[0] > 0
    if adjacent and len(value.shape or ()) > len(rest) - dims[0]:
        # The values have the indexed dimensions where they stand in the tensor.
        before, total = dims[0], shared + len(rest)
        missing = total - value.rank
        if missing:
            value = g.unsqueeze(value, range(missing))
        order = [
            *range(before, before + shared),
            *range(before),
            *range(before + shared, total),
        ]
        value = g.transpose(value, order)
    value = g.expand(value, shape)
    if accumulate and g.opset < ADDS:
        made = added(
            g, front, value, lambda grid: g.op("GatherND", grid, stacked), "adding to elements"
        )
    else:
        more: dict[str, Any] = {"reduction_s": "add"} if accumulate else {}
        made = g.op("ScatterND", front, stacked, value, **more)
        made.shape = front.shape
    order = [*dims, *rest]
    return g.transpose(made, [order.index(d) for d in range(rank)])


def _tail(g: Graph, x: Value, rest: list[int]) -> list[Value]:
    return [g.ints([g.size(x, d) for d in rest])] if rest else []


def _reduced(reduce: Any) -> dict[str, Any]:
    names = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul"}
    names |= {"amax": "max", "amin": "min"}
    if reduce is None:
        return {}
    if reduce not in names:
        raise UnsupportedOperatorError(f"a scatter that reduces by {reduce}")
    return {"reduction_s": names[reduce]}


@symbolic("scatter", "scatter_reduce")
def scatter(
    g: Graph,
    self: Value,
    dim: int,
    index: Value,
    src: Any = None,
    value: object = None,
    reduce: object = None,
    include_self: bool = True,
) -> Value:
    if src is None:
        src = g.filled(g.shape_of(index), value, self.dtype or fb.float32)
    elif isinstance(src, Value) and src.shape != index.shape:
        axes = list(range(index.rank))
        ends = [g.size(index, d) for d in axes]
        src = g.slice(src, [0] * len(axes), ends, axes)
    if not include_self:
        raise UnsupportedOperatorError("scatter_reduce without the tensor itself")
    more = _reduced(reduce)
    if more == {"reduction_s": "add"} and g.opset < ADDS:
        return _added_along(g, self, dim, index, src)
    if more:
        g.needs(18 if more["reduction_s"] in ("max", "min") else 16, "a scatter that reduces")
    if g.opset < 11:
        return g.op("Scatter", self, index, g.cast(src, self.dtype), axis_i=dim)
    return g.op("ScatterElements", self, index, g.cast(src, self.dtype), axis_i=dim, **more)


def _added_along(g: Graph, x: Value, dim: int, index: Value, values: Value) -> Value:
    """What `scatter_add` gives, in opsets whose scatters do not add."""
    if not x.rank:
        return g.op("Add", x, g.cast(g.reshape(values, []), x.dtype))
    dim %= x.rank
    others = [d for d in range(x.rank) if d != dim]

    def chosen(grid: Value) -> Value:
        ends = [g.size(index, d) for d in others]
        part = g.slice(grid, [0] * len(others), ends, others) if others else grid
        return g.op("GatherElements", part, index, axis_i=dim)

    return added(g, x, values, chosen, "a scatter that adds")


@symbolic("scatter_add", since=11)
def scatter_add(g: Graph, self: Value, dim: int, index: Value, src: Value) -> Value:
    return scatter(g, self, dim, index, src, reduce="add")


def _is_empty(x: Value) -> bool:
    """Whether there are no elements that could be written, a scatter to which runtimes refuse."""
    return x.shape is not None and 0 in x.shape


def _rows(g: Graph, x: Value, dim: int, index: Value) -> Value:
    """Indices of whole rows, as many as the rows have elements."""
    rank = x.rank
    sizes = [1] * rank
    sizes[dim] = -1
    shape: list[Any] = [g.size(x, d) for d in range(rank)]
    shape[dim] = g.size(index, 0) if index.rank else 1
    return g.expand(g.reshape(g.cast(index, fb.int64), sizes), shape)


@symbolic("index_add", since=11)
def index_add(
    g: Graph, self: Value, dim: int, index: Value, source: Value, alpha: object = 1
) -> Value:
    if _is_empty(self):
        return self
    dim %= self.rank
    if alpha != 1:
        source = g.op("Mul", source, g.value(alpha, self.dtype))
    places = _rows(g, self, dim, index)
    if g.opset < ADDS:
        return _added_along(g, self, dim, places, source)
    return g.op("ScatterElements", self, places, source, axis_i=dim, reduction_s="add")


@symbolic("index_copy", since=11)
def index_copy(g: Graph, self: Value, dim: int, index: Value, source: Value) -> Value:
    if _is_empty(self):
        return self
    dim %= self.rank
    return g.op("ScatterElements", self, _rows(g, self, dim, index), source, axis_i=dim)


@symbolic("index_fill", since=11)
def index_fill(g: Graph, self: Value, dim: int, index: Value, value: object) -> Value:
    if _is_empty(self):
        return self
    dim %= self.rank
    places = _rows(g, self, dim, index)
    filling = g.filled(g.shape_of(places), value, self.dtype or fb.float32)
    return g.op("ScatterElements", self, places, filling, axis_i=dim)


@symbolic("masked_scatter", since=11)
def masked_scatter(g: Graph, self: Value, mask: Value, source: Value) -> Value:
    places = g.op("NonZero", g.expand(mask, g.shape_of(self)))
    places.shape = (self.rank, None)
    places = g.transpose(places, [1, 0])
    count = g.op("Gather", g.op("Shape", places), g.constant(0), axis_i=0)
    count.shape, count.dtype = (), fb.int64
    values = g.slice(g.reshape(source, [-1]), [0], [count], [0])
    return g.op("ScatterND", self, places, values)


@symbolic("one_hot")
def one_hot(g: Graph, self: Value, num_classes: object = -1) -> Value:
    if isinstance(num_classes, int) and num_classes == -1:
        raise OnnxExporterError("one_hot without a number of classes has sizes of its own")
    depth = g.value(num_classes, fb.int64)
    if depth.shape == ():
        depth = g.reshape(depth, [1])
    made = g.op("OneHot", self, depth, g.constant(fb.tensor([0, 1])), axis_i=-1)
    made.dtype = fb.int64
    return made


@symbolic("repeat_interleave")
def repeat_interleave(
    g: Graph,
    self: Value | None = None,
    repeats: object = None,
    dim: int | None = None,
    output_size: object = None,
) -> Value:
    if self is None:  # of counts alone: the place of each
        return g.cast(_repeated_places(g, g.value(repeats), None), g.dtype)
    x = self
    if dim is None:
        x, dim = g.reshape(x, [-1]), 0
    rank = x.rank
    dim %= rank
    count: Any = repeats
    if isinstance(repeats, Value) and not (repeats.tensor is not None and repeats.shape == ()):
        return g.op("Gather", x, _repeated_places(g, repeats, g.size(x, dim)), axis_i=dim)
    count = need_number(repeats, "the number of repetitions")
    sizes = [g.size(x, d) for d in range(rank)]
    wide = g.unsqueeze(x, [dim + 1])
    times = [1] * (rank + 1)
    times[dim + 1] = count
    tiled = g.op("Tile", wide, g.ints(times))
    return g.reshape(tiled, [*sizes[:dim], -1, *sizes[dim + 1 :]])


def _repeated_places(g: Graph, counts: Value, length: Any) -> Value:
    """The place of each count, as often as it says; one count is for all places."""
    g.needs(11, "repetitions that a tensor counts")
    counts = g.cast(counts, fb.int64)
    if length is not None and (counts.rank == 0 or counts.shape != (length,)):
        counts = g.expand(counts, [length])
    ends = g.op("CumSum", counts, g.constant(0))
    ends.shape = (None,)
    total = g.reduce("ReduceSum", counts)
    steps = g.op("Range", g.constant(0), total, g.constant(1))
    steps.shape = (None,)
    passed = g.op("Not", g.op("Less", g.unsqueeze(steps, [1]), g.unsqueeze(ends, [0])))
    passed.shape = (None, None)
    return g.reduce("ReduceSum", g.cast(passed, fb.int64), [1])


def _one_place(g: Graph, x: Value, dim: int, index: object) -> Value:
    rank = x.rank
    shape: list[Any] = [g.size(x, d) for d in range(rank)]
    shape[dim] = 1
    return g.expand(g.reshape(g.value(index, fb.int64), [1] * rank), shape)


@symbolic("select_scatter", since=11)
def select_scatter(g: Graph, self: Value, src: Value, dim: int, index: object) -> Value:
    dim %= self.rank
    places = _one_place(g, self, dim, index)
    return g.op("ScatterElements", self, places, g.unsqueeze(src, [dim]), axis_i=dim)
