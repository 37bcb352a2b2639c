"""Packed sequences: ONNX has padded ones, with lengths beside them."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.table import symbolic


def _counted(g: Graph, count: Any) -> Value:
    """0, 1, 2, … up to a number."""
    g.needs(11, "a packed sequence")
    made = g.op("Range", g.constant(0), g.value(count, fb.int64), g.constant(1))
    made.shape, made.dtype = (None,), fb.int64
    return made


def _scalar(g: Graph, x: Value) -> Value:
    made = g.reshape(x, [])
    made.shape, made.dtype = (), fb.int64
    return made


def _present(g: Graph, lengths: Value, steps: Any) -> Value:
    """Which sequences (B) reach which steps (T), as a mask (T, B)."""
    rows = g.unsqueeze(_counted(g, steps), [1])
    made = g.op("Less", rows, g.unsqueeze(lengths, [0]))
    made.shape, made.dtype = (None, None), fb.bool
    return made


def _longest(g: Graph, lengths: Value) -> Value:
    made = g.reduce("ReduceMax", lengths, [0], False)
    made.shape, made.dtype = (), fb.int64
    return made


def packed(g: Graph, x: Value, lengths: Value) -> Value:
    """The elements of ``x`` (T, B, *) that are no padding, step by step."""
    sizes = g.op("Shape", x)
    sizes.shape, sizes.dtype = (x.rank,), fb.int64
    rows = g.slice(sizes, [2], [x.rank], [0])
    flat = g.op("Reshape", x, g.op("Concat", g.ints([-1]), rows, axis_i=0))
    flat.shape, flat.dtype = (None,) * (x.rank - 1), x.dtype
    here = g.reshape(_present(g, lengths, g.size(x, 0)), [-1])
    made = g.op("Compress", flat, here, axis_i=0)
    made.shape, made.dtype = (None,) * (x.rank - 1), x.dtype
    made.packed = (x, lengths)
    return made


def padded(g: Graph, data: Value, batch_sizes: Value | None) -> tuple[Value, Value]:
    """What was packed (T, B, *), time first, and the lengths of the sequences."""
    if data.packed is not None:
        return data.packed
    assert batch_sizes is not None
    sizes = g.cast(batch_sizes, fb.int64)
    batch = _longest(g, sizes)
    here = g.op("Less", g.unsqueeze(_counted(g, batch), [0]), g.unsqueeze(sizes, [1]))
    here.shape, here.dtype = (None, None), fb.bool
    lengths = g.reduce("ReduceSum", g.cast(here, fb.int64), [0], False)
    lengths.shape, lengths.dtype = (None,), fb.int64
    places = g.op("NonZero", here)
    places.shape, places.dtype = (2, None), fb.int64
    whole = g.op("Shape", data)
    whole.shape, whole.dtype = (data.rank,), fb.int64
    rest = g.slice(whole, [1], [data.rank], [0])
    shape = g.op("Concat", g.op("Shape", here), rest, axis_i=0)
    shape.shape, shape.dtype = (data.rank + 1,), fb.int64
    empty = g.filled(shape, 0, data.dtype or fb.float32)
    made = g.op("ScatterND", empty, g.transpose(places, [1, 0]), data)
    made.shape, made.dtype = (None,) * (data.rank + 1), data.dtype
    return made, lengths


@symbolic("_pack_padded_sequence", since=11)
def pack(g: Graph, input: Value, lengths: Value, batch_first: bool) -> tuple[Value, ...]:
    x = g.swap(input, 0, 1) if batch_first else input
    lengths = g.cast(lengths, fb.int64)
    present = _present(g, lengths, _longest(g, lengths))
    sizes = g.reduce("ReduceSum", g.cast(present, fb.int64), [1], False)
    return packed(g, x, lengths), sizes


@symbolic("_pad_packed_sequence", since=11)
def unpack(
    g: Graph,
    data: Value,
    batch_sizes: Value,
    batch_first: bool,
    padding_value: float,
    total_length: Any,
) -> tuple[Value, ...]:
    """As many steps as the longest sequence has, or `total_length` of them."""
    x, lengths = padded(g, data, batch_sizes)
    rest = x.rank - 1
    steps = _longest(g, lengths)
    if isinstance(total_length, Value) or total_length > 0:
        steps = g.value(total_length, fb.int64)
        before = g.ints([0] * (rest + 1))
        more = g.op("Max", g.op("Sub", steps, g.value(g.size(x, 0), fb.int64)), g.constant(0))
        more.shape, more.dtype = (), fb.int64
        after = g.op("Concat", g.unsqueeze(more, [0]), g.ints([0] * rest), axis_i=0)
        x = g.op("Pad", x, g.op("Concat", before, after, axis_i=0))
        x.shape, x.dtype = (None,) * (rest + 1), data.dtype
    x = g.slice(x, [0], [steps], [0])
    x.dtype = data.dtype
    if padding_value != 0 or data.packed is not None:
        # What was padded when it was packed, a program may have filled with anything.
        here = g.unsqueeze(_present(g, lengths, steps), [*range(2, rest + 1)])
        x = g.op("Where", here, x, g.constant(padding_value, data.dtype))
        x.shape, x.dtype = (None,) * (rest + 1), data.dtype
    return g.swap(x, 0, 1) if batch_first else x, lengths
