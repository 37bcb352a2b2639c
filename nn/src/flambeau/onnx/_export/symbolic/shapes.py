"""Ops that move elements or change sizes."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.onnx._export.errors import OnnxExporterError, UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.table import need_number, symbolic

if TYPE_CHECKING:
    from collections.abc import Sequence


@symbolic("view", "reshape", "_unsafe_view")
def reshape(
    g: Graph,
    self: Value,
    size: list[Value | int] | None = None,
    shape: list[Value | int] | None = None,
    dtype: object = None,
) -> Value:
    sizes = size if size is not None else shape
    if sizes is None:
        raise UnsupportedOperatorError("a view as another dtype")
    return g.reshape(self, sizes)


@symbolic("view_as", "reshape_as")
def view_as(g: Graph, self: Value, other: Value) -> Value:
    return g.reshape(self, g.shape_of(other))


@symbolic("ravel")
def ravel(g: Graph, self: Value) -> Value:
    return g.reshape(self, [-1])


@symbolic("flatten")
def flatten(g: Graph, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    rank = self.rank
    if rank == 0:
        return g.reshape(self, [1])
    start, end = start_dim % rank, end_dim % rank
    if start == end:
        return self
    if end == rank - 1 and start == 1:
        return g.op("Flatten", self, axis_i=1)
    front = [g.size(self, d) for d in range(start)]
    back = [g.size(self, d) for d in range(end + 1, rank)]
    return g.reshape(self, [*front, -1, *back])


@symbolic("unflatten")
def unflatten(g: Graph, self: Value, dim: int, sizes: Any) -> Value:
    dim %= self.rank
    front = [g.size(self, d) for d in range(dim)]
    back = [g.size(self, d) for d in range(dim + 1, self.rank)]
    return g.reshape(self, [*front, *sizes, *back])


@symbolic("squeeze")
def squeeze(g: Graph, self: Value, dim: Any = None) -> Value:
    rank = self.rank
    if not rank:
        return self
    named = dim if isinstance(dim, list | tuple) else [dim]
    wanted = range(rank) if dim is None else [d % rank for d in named]
    sizes = self.shape or (None,) * rank
    axes = [d for d in wanted if sizes[d] == 1]
    open_ones = [d for d in wanted if not isinstance(sizes[d], int)]
    if not open_ones:
        return g.squeeze(self, axes) if axes else self
    gone = rank - len(g.result.shape) - len(axes)
    if gone and (gone < len(open_ones) or dim is None):
        raise OnnxExporterError(
            f"whether dimension {open_ones[0]}, which is dynamic, is squeezed depends on the input"
        )
    if gone:  # a runtime refuses other sizes
        return g.squeeze(self, [*axes, *open_ones])
    warnings.warn(
        f"squeeze removes dimension {open_ones[0]}, which is dynamic, where it has size 1, "
        "and the model is right where it has not",
        stacklevel=2,
    )
    if dim is None:
        return g.op("Squeeze", self)
    made = g.squeeze(self, axes) if axes else self
    for d in sorted(open_ones, reverse=True):
        made = _squeezed_if_one(g, made, d - sum(axis < d for axis in axes))
    made.shape = None
    return made


def _squeezed_if_one(g: Graph, x: Value, axis: int) -> Value:
    """Without a dimension where it has size one."""
    size = g.op("Gather", g.op("Shape", x), g.constant(axis), axis_i=0)
    size.dtype, size.shape = fb.int64, ()
    without, whole = g.inner(), g.inner()
    without.outputs = [without.squeeze(x, [axis])]
    whole.outputs = [whole.op("Identity", x)]
    for inner in (without, whole):  # the branches differ in how many dimensions they have
        inner.outputs[0].shape = None
    made = g.op(
        "If", g.op("Equal", size, g.constant(1)), then_branch_g=without, else_branch_g=whole
    )
    made.dtype = x.dtype
    return made


@symbolic("unsqueeze")
def unsqueeze(g: Graph, self: Value, dim: int) -> Value:
    return g.unsqueeze(self, [dim % (self.rank + 1)])


@symbolic("permute")
def permute(g: Graph, self: Value, dims: list[int]) -> Value:
    return g.transpose(self, [d % self.rank for d in dims])


@symbolic("transpose", "swapaxes", "swapdims")
def transpose(
    g: Graph,
    self: Value,
    dim0: Any = None,
    dim1: Any = None,
    axis0: Any = None,
    axis1: Any = None,
) -> Value:
    one, other = (dim0, dim1) if dim0 is not None else (axis0, axis1)
    return self if self.rank == 0 else g.swap(self, one, other)


@symbolic("t")
def t(g: Graph, self: Value) -> Value:
    return g.swap(self, 0, 1) if self.rank == 2 else self


@symbolic("numpy_T")
def numpy_t(g: Graph, self: Value) -> Value:
    return g.transpose(self, list(reversed(range(self.rank))))


@symbolic("mT", "adjoint", "mH")
def matrix_t(g: Graph, self: Value) -> Value:
    return g.swap(self, -1, -2)


@symbolic("movedim", "moveaxis")
def movedim(g: Graph, self: Value, source: Any, destination: Any) -> Value:
    sources = source if isinstance(source, list | tuple) else [source]
    targets = destination if isinstance(destination, list | tuple) else [destination]
    rank = self.rank
    order = [-1] * rank
    for one, other in zip(sources, targets, strict=True):
        order[other % rank] = one % rank
    rest = iter(d for d in range(rank) if d not in order)
    return g.transpose(self, [next(rest) if d < 0 else d for d in order])


@symbolic("expand", "broadcast_to")
def expand(g: Graph, self: Value, size: Any) -> Value:
    # Where the size stays, PyTorch says -1 and ONNX 1.
    return g.expand(self, [1 if isinstance(n, int) and n == -1 else n for n in size])


@symbolic("expand_as")
def expand_as(g: Graph, self: Value, other: Value) -> Value:
    return g.expand(self, g.shape_of(other))


@symbolic("repeat", "tile")
def repeat(g: Graph, self: Value, repeats: Any = None, dims: Any = None) -> Value:
    times = list(repeats if repeats is not None else dims)
    rank = self.rank
    if len(times) > rank:
        self = g.unsqueeze(self, range(len(times) - rank)) if rank or times else self
    times = [1] * (rank - len(times)) + times
    return g.op("Tile", self, g.ints(times))


@symbolic("cat", "concat", "concatenate")
def cat(g: Graph, tensors: list[Value], dim: int = 0) -> Value:
    # An empty tensor of one dimension is nothing beside others, to PyTorch alone.
    kept = [x for x in tensors if x.shape != (0,)] or tensors
    if len(kept) == 1:
        return kept[0]
    return g.op("Concat", *(g.cast(x, g.dtype) for x in kept), axis_i=dim % kept[0].rank)


@symbolic("stack")
def stack(g: Graph, tensors: list[Value], dim: int = 0) -> Value:
    dim %= tensors[0].rank + 1
    parts = [g.unsqueeze(g.cast(x, g.dtype), [dim]) for x in tensors]
    return g.op("Concat", *parts, axis_i=dim)


def parts(g: Graph, x: Value, examples: list[Any], dim: int) -> list[Value]:
    """Parts of a tensor, of the sizes that the examples have."""
    dim %= x.rank
    x.static(dim)
    return list(g.split(x, [e.shape[dim] for e in examples], dim))


def _between(g: Graph, x: Value, edges: list[Any], dim: int) -> list[Value]:
    """The parts between places along a dimension, some of which depend on the input."""
    return [g.slice(x, [start], [end], [dim]) for start, end in pairwise(edges)]


def _is_open(x: Value, dim: int) -> bool:
    return x.shape is None or not isinstance(x.shape[dim], int)


@symbolic("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")
def split(
    g: Graph, self: Value, split_size: object = None, dim: int = 0, split_sizes: object = None
) -> list[Value]:
    sizes = split_size if split_sizes is None else split_sizes
    dim %= self.rank
    if isinstance(sizes, list | tuple) and any(isinstance(n, Value) for n in sizes):
        edges: list[Any] = [0]
        for size in sizes:
            both = isinstance(size, int) and isinstance(edges[-1], int)
            edges.append(edges[-1] + size if both else g.op("Add", edges[-1], size))
        return _between(g, self, edges, dim)
    if isinstance(sizes, int) and _is_open(self, dim):  # the last part may be shorter
        count = len(g.result)
        return _between(g, self, [*range(0, count * sizes, sizes), 2**63 - 1], dim)
    return parts(g, self, g.result, dim)


@symbolic("chunk", "unsafe_chunk")
def chunk(g: Graph, self: Value, chunks: int, dim: int = 0) -> list[Value]:
    dim %= self.rank
    if not _is_open(self, dim):
        return parts(g, self, g.result, dim)
    each = g.op("Div", g.op("Add", g.size(self, dim), chunks - 1), chunks)
    edges = [0, each, *(g.op("Mul", each, at) for at in range(2, len(g.result)))]
    return _between(g, self, [*edges[: len(g.result)], 2**63 - 1], dim)


@symbolic("tensor_split")
def tensor_split(
    g: Graph, self: Value, sections: object = None, dim: int = 0, indices: object = None
) -> list[Value]:
    dim %= self.rank
    if not _is_open(self, dim):
        return parts(g, self, g.result, dim)
    places = sections if indices is None else indices
    if isinstance(places, list | tuple):
        return _between(g, self, [0, *places, 2**63 - 1], dim)
    count = need_number(places, "the number of parts")
    size = g.size(self, dim)
    each, more = g.op("Div", size, count), g.op("Mod", size, count)
    edges: list[Any] = []
    for n in range(1, count):  # the first parts have one more
        wide = g.op("Where", g.op("Less", more, n), more, g.constant(n))
        edges.append(g.op("Add", g.op("Mul", each, n), wide))
    return _between(g, self, [0, *edges, 2**63 - 1], dim)


@symbolic("unbind")
def unbind(g: Graph, self: Value, dim: int = 0) -> list[Value]:
    dim %= self.rank
    count = self.static(dim)
    return [g.squeeze(p, [dim]) for p in g.split(self, [1] * count, dim)]


@symbolic("slice")
def slice(
    g: Graph,
    self: Value,
    dim: int = 0,
    start: object = None,
    end: Value | int | None = None,
    step: int = 1,
) -> Value:
    start = 0 if start is None else start
    end = 2**63 - 1 if end is None else end
    if isinstance(start, int) and start == 0 and isinstance(end, int) and end >= 2**63 - 1:
        if step == 1:
            return self
    return g.slice(self, [start], [end], [dim % self.rank], None if step == 1 else [step])


@symbolic("as_strided")
def as_strided(
    g: Graph, self: Value, size: Any, stride: Any, storage_offset: object = None
) -> Value:
    sizes = need_number(size, "a size")
    strides = need_number(stride, "a stride")
    first = need_number(storage_offset, "the first place") or 0
    for d in range(self.rank):
        self.static(d)
    places = fb.arange(1) + first
    for count, step in zip(sizes, strides, strict=True):
        places = places.unsqueeze(-1) + fb.arange(count) * step
    return g.op("Gather", g.reshape(self, [-1]), g.constant(places.squeeze(0)), axis_i=0)


@symbolic("narrow")
def narrow(g: Graph, self: Value, dim: int, start: object, length: object) -> Value:
    start = need_number(start, "the start") if isinstance(start, Value) and start.tensor else start
    dim %= self.rank
    if isinstance(start, int) and isinstance(length, int):
        end = start + length
        if start < 0 and end == 0:
            end = 2**63 - 1
    else:
        end = g.op("Add", g.value(start, fb.int64), g.value(length, fb.int64))
    return g.slice(self, [start], [end], [dim])


@symbolic("select")
def select(g: Graph, self: Value, dim: int, index: Any) -> Value:
    dim %= self.rank
    if isinstance(index, int) and index < 0 and g.opset < 11:
        size = self.static(dim)
        index += size
    return g.op("Gather", self, g.value(index, fb.int64), axis_i=dim)


@symbolic("flip")
def flip(g: Graph, self: Value, dims: list[int]) -> Value:
    g.needs(10, "flip")
    axes = [d % self.rank for d in dims]
    count = len(axes)
    if not count:
        return self
    return g.slice(self, [-1] * count, [-(2**63) + 1] * count, axes, [-1] * count)


@symbolic("roll")
def roll(g: Graph, self: Value, shifts: list[int], dims: Any = ()) -> Value:
    x = self
    shifts = shifts if isinstance(shifts, list | tuple) else [shifts]
    flat = not dims
    if flat:
        x, dims = g.reshape(self, [-1]), [0]
    dims = dims if isinstance(dims, list | tuple) else [dims]
    for shift, dim in zip(shifts, dims, strict=True):
        if shift == 0:
            continue
        axis = dim % len(x.shape or ())
        shape = x.shape
        tail = g.slice(x, [-shift], [2**63 - 1], [axis])
        head = g.slice(x, [0], [-shift], [axis])
        x = g.op("Concat", tail, head, axis_i=axis)
        x.shape = shape
    return g.reshape(x, g.shape_of(self)) if flat else x


@symbolic(
    "contiguous",
    "detach",
    "detach_",
    "alias",
    "clone",
    "requires_grad_",
    "cpu",
    "cuda",
    "positive",
    "lift_fresh",
    "lift_fresh_copy",
    "resolve_conj",
    "resolve_neg",
    "real",
    "data",
)
def identity(g: Graph, self: Value) -> Value:
    return self


@symbolic("to", "type_as", "_cast_Float", "float", "double", "half", "long", "int", "bool")
def to(g: Graph, self: Value, **rest: object) -> Value:
    return g.cast(self, g.dtype)


@symbolic("copy", "copy_")
def copy(g: Graph, self: Value, src: object = None, other: object = None) -> Value:
    return g.value(src if src is not None else other, self.dtype)


@symbolic("pixel_shuffle")
def pixel_shuffle(g: Graph, self: Value, upscale_factor: int) -> Value:
    r = upscale_factor
    channels = self.static(-3) // (r * r)
    if g.opset >= 11 and self.rank == 4:
        return g.op("DepthToSpace", self, blocksize_i=r, mode_s="CRD")
    front = [g.size(self, d) for d in range(self.rank - 3)]
    height, width = g.size(self, -2), g.size(self, -1)
    x = g.reshape(self, [*front, channels, r, r, height, width])
    n = len(front)
    x = g.transpose(x, [*range(n + 1), n + 3, n + 1, n + 4, n + 2])
    return g.reshape(x, [*front, channels, *(times(g, s, r) for s in (height, width))])


def times(g: Graph, size: int | Sequence[int], factor: int) -> Any:
    """A size multiplied."""
    if isinstance(size, int):
        return size * factor
    return g.op("Mul", size, g.constant(factor))


def over(g: Graph, size: int | Sequence[int], factor: int) -> Any:
    """A size divided."""
    return size // factor if isinstance(size, int) else g.op("Div", size, g.constant(factor))


@symbolic("pixel_unshuffle")
def pixel_unshuffle(g: Graph, self: Value, downscale_factor: int) -> Value:
    r = downscale_factor
    front = [g.size(self, d) for d in range(self.rank - 3)]
    channels = self.static(-3)
    height, width = (over(g, g.size(self, d), r) for d in (-2, -1))
    n = len(front)
    x = g.reshape(self, [*front, channels, height, r, width, r])
    x = g.transpose(x, [*range(n + 1), n + 2, n + 4, n + 1, n + 3])
    return g.reshape(x, [*front, channels * r * r, height, width])


@symbolic("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(g: Graph, self: Value, groups: int) -> Value:
    sizes = [g.size(self, d) for d in range(self.rank)]
    channels = self.static(1)
    x = g.reshape(self, [sizes[0], groups, channels // groups, *sizes[2:]])
    x = g.swap(x, 1, 2)
    return g.reshape(x, [sizes[0], channels, *sizes[2:]])


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(g: Graph, x: Value, pad: list[Any], mode: str, value: object) -> Value:
    """A tensor with more elements around it; `pad` begins with the last dimension."""
    rank = x.rank
    before: list[Any] = [0] * rank
    after: list[Any] = [0] * rank
    for at in range(len(pad) // 2):
        before[rank - 1 - at], after[rank - 1 - at] = pad[2 * at], pad[2 * at + 1]
    amounts = [*before, *after]
    if all(n == 0 for n in amounts if isinstance(n, int)) and all(
        isinstance(n, int) for n in amounts
    ):
        return x
    if MODES[mode] == "wrap" and g.opset < 19:
        for axis, (front, back) in enumerate(zip(before, after, strict=True)):
            pieces = [x]
            if front:
                pieces.insert(0, g.slice(x, [-front], [2**63 - 1], [axis]))
            if back:
                pieces.append(g.slice(x, [0], [back], [axis]))
            if len(pieces) > 1:
                x = g.op("Concat", *pieces, axis_i=axis)
                x.shape = (None,) * rank
        return x
    fill = 0.0 if value is None else value
    if g.opset < 11:
        return g.op(
            "Pad",
            x,
            pads_i=need_number(amounts, "the padding"),
            mode_s=MODES[mode],
            value_f=float(need_number(fill, "the padding's value")),
        )
    filling = g.value(fill, x.dtype) if mode == "constant" else None
    return g.op("Pad", x, g.ints(amounts), filling, mode_s=MODES[mode])


@symbolic("pad")
def pad(
    g: Graph, self: Value, pad: list[int], mode: str = "constant", value: object = None
) -> Value:
    return padded(g, self, pad, mode, value)


@symbolic("constant_pad_nd")
def constant_pad(g: Graph, self: Value, pad: list[int], value: object = 0) -> Value:
    return padded(g, self, pad, "constant", value)


@symbolic("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(g: Graph, self: Value, padding: list[int]) -> Value:
    return padded(g, self, padding, "reflect", None)


@symbolic("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(g: Graph, self: Value, padding: list[int]) -> Value:
    return padded(g, self, padding, "replicate", None)


def _triangle(name: str, upper: int) -> None:
    @symbolic(name)
    def write(g: Graph, self: Value, diagonal: int = 0) -> Value:
        if g.opset >= 14:
            shift = g.constant(diagonal) if diagonal else None
            return g.op("Trilu", self, shift, upper_i=upper)
        rows, columns = self.static(-2), self.static(-1)
        ones = fb.ones(rows, columns, dtype=fb.bool)
        mask = ones.triu(diagonal) if upper else ones.tril(diagonal)
        return g.op("Where", g.constant(mask), self, g.constant(0, self.dtype))


_triangle("triu", 1)
_triangle("tril", 0)


@symbolic("unfold")
def unfold(g: Graph, self: Value, dimension: int, size: int, step: int) -> Value:
    axis = dimension % self.rank
    length = self.static(axis)
    windows = [
        g.unsqueeze(g.slice(self, [at], [at + size], [axis]), [axis])
        for at in range(0, length - size + 1, step)
    ]
    made = windows[0] if len(windows) == 1 else g.op("Concat", *windows, axis_i=axis)
    rank = self.rank
    made.shape = (None,) * (rank + 1)
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return g.transpose(made, order)


@symbolic("diagonal")
def diagonal_of(g: Graph, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    rank = self.rank
    one, two = dim1 % rank, dim2 % rank
    rows, columns = self.static(one), self.static(two)
    rest = [d for d in range(rank) if d not in (one, two)]
    x = g.transpose(self, [*rest, one, two])
    x = g.reshape(x, [*(g.size(self, d) for d in rest), rows * columns])
    grid = fb.arange(rows * columns).reshape(rows, columns).diagonal(offset)
    return g.op("Gather", x, g.constant(grid.clone()), axis_i=len(rest))


@symbolic("diag")
def diag(g: Graph, self: Value, diagonal: int = 0) -> Value:
    if self.rank == 2:
        return diagonal_of(g, self, diagonal)
    return diag_embed(g, self, diagonal)


@symbolic("diag_embed")
def diag_embed(g: Graph, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    count, rank = self.static(-1), self.rank + 1
    assert self.shape is not None
    sizes = (*self.shape, count)
    grid = g.constant(fb.eye(count, dtype=fb.bool))
    made = g.op("Where", grid, g.unsqueeze(self, [rank - 1]), g.constant(0, self.dtype))
    made.shape = sizes
    left, top = max(offset, 0), max(-offset, 0)
    made = padded(g, made, [left, top, top, left], "constant", 0)
    made.shape = (*sizes[:-2], count + abs(offset), count + abs(offset))
    order = list(range(rank - 2))
    for place, source in sorted([(dim1 % rank, rank - 2), (dim2 % rank, rank - 1)]):
        order.insert(place, source)
    return g.transpose(made, order)


@symbolic("_shape_as_tensor")
def shape_as_tensor(g: Graph, self: Value) -> Value:
    return g.shape_of(self)


@symbolic("atleast_1d")
def atleast_1d(g: Graph, self: Value) -> Value:
    return g.reshape(self, [1]) if self.rank == 0 else self


@symbolic("broadcast_tensors")
def broadcast_tensors(g: Graph, tensors: list[Value]) -> list[Value]:
    shape = _broadcast_shape(g, tensors)
    return [g.expand(x, shape) for x in tensors]


def _broadcast_shape(g: Graph, tensors: list[Value]) -> Value:
    total = g.filled(g.shape_of(tensors[0]), 0, fb.int64)
    for x in tensors[1:]:
        total = g.op("Add", total, g.filled(g.shape_of(x), 0, fb.int64))
    return g.op("Shape", total)


@symbolic("meshgrid")
def meshgrid(g: Graph, tensors: list[Value], indexing: str = "ij") -> list[Value]:
    count = len(tensors)
    places = list(range(count))
    if indexing == "xy" and count > 1:
        places[0], places[1] = 1, 0
    shaped = []
    for x, place in zip(tensors, places, strict=True):
        sizes = [1] * count
        sizes[place] = -1
        shaped.append(g.reshape(x, sizes))
    shape = _broadcast_shape(g, shaped)
    return [g.expand(x, shape) for x in shaped]
