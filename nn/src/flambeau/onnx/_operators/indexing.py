"""Slices, gathers, scatters, selections and orders."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._operators.table import (
    Context,
    UnsupportedError,
    axis_of,
    integers,
    number,
    operator,
    shortest,
)


def _from_front(indices: Tensor, size: int) -> Tensor:
    indices = indices.long()
    return fb.where(indices < 0, indices + size, indices)


@operator("Slice")
def _slice(
    c: Context,
    x: Tensor,
    begin: Tensor | None = None,
    end: Tensor | None = None,
    over: Tensor | None = None,
    steps: Tensor | None = None,
    starts: list[int] | None = None,
    ends: list[int] | None = None,
    axes: list[int] | None = None,
) -> Tensor:
    firsts = integers(begin if starts is None else starts)
    lasts = integers(end if ends is None else ends)
    given = over if axes is None else axes
    dims = integers(given) if given is not None else list(range(len(firsts)))
    strides = integers(steps) if steps is not None else [1] * len(firsts)
    for dim, first, last, step in zip(dims, firsts, lasts, strides, strict=True):
        dim = axis_of(dim, x.dim())
        # An end before the first element is none; Python would count it from the back.
        stop = None if step < 0 and last < -x.shape[dim] else last
        places = range(x.shape[dim])[slice(first, stop, step)]
        if step > 0:
            index = (slice(None),) * dim + (slice(places.start, places.stop, step),)
            x = x[index] if len(places) else x.narrow(dim, 0, 0)
        else:
            x = x.index_select(dim, fb.tensor(list(places), dtype=fb.int64, device=x.device))
    return x


@operator("Gather")
def _gather(c: Context, x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    axis = axis_of(axis, x.dim())
    flat = _from_front(indices, x.shape[axis]).reshape(-1)
    sizes = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
    return x.index_select(axis, flat).reshape(sizes)


@operator("GatherElements")
def _gather_elements(c: Context, x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    return x.gather(axis, _from_front(indices, x.shape[axis]))


@operator("GatherND")
def _gather_nd(c: Context, x: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    if not batch_dims:
        return x[tuple(indices.long().unbind(-1))]
    rows = zip(x.unbind(0), indices.unbind(0), strict=True)
    return fb.stack([_gather_nd(c, a, i, batch_dims - 1) for a, i in rows])


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("ScatterElements", "Scatter")
def _scatter_elements(
    c: Context,
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int = 0,
    reduction: str = "none",
) -> Tensor:
    indices = _from_front(indices, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, indices, updates)
    return x.scatter_reduce(axis, indices, updates, _REDUCTIONS[reduction], include_self=True)


@operator("ScatterND")
def _scatter_nd(
    c: Context, x: Tensor, indices: Tensor, updates: Tensor, reduction: str = "none"
) -> Tensor:
    depth = indices.shape[-1]
    places = tuple(
        _from_front(i, n) for i, n in zip(indices.unbind(-1), x.shape[:depth], strict=True)
    )
    if reduction in ("none", "add"):
        return x.index_put(places, updates, accumulate=reduction == "add")
    flat = fb.zeros_like(places[0])
    for place, size in zip(places, x.shape[:depth], strict=True):
        flat = flat * size + place
    rows = x.reshape(-1, *x.shape[depth:])
    flat = flat.reshape(-1)
    new = updates.reshape(-1, *x.shape[depth:])
    index = flat.reshape(-1, *[1] * (rows.dim() - 1)).expand(new.shape)
    made = rows.scatter_reduce(0, index, new, _REDUCTIONS[reduction], include_self=True)
    return made.reshape(x.shape)


@operator("TensorScatter")
def _tensor_scatter(
    c: Context,
    past: Tensor,
    update: Tensor,
    write_indices: Tensor | None = None,
    axis: int = -2,
    mode: str = "linear",
) -> Tensor:
    axis = axis_of(axis, past.dim())
    count, size = update.shape[axis], past.shape[axis]
    starts = [0] * past.shape[0] if write_indices is None else integers(write_indices)
    rows = []
    for row, new, start in zip(past.unbind(0), update.unbind(0), starts, strict=True):
        places = [start + i for i in range(count)]
        if mode == "circular":
            places = [p % size for p in places]
        rows.append(row.index_copy(axis - 1, fb.tensor(places, dtype=fb.int64), new))
    return fb.stack(rows)


@operator("NonZero")
def _non_zero(c: Context, x: Tensor) -> Tensor:
    return x.nonzero().t().contiguous()


@operator("Compress")
def _compress(c: Context, x: Tensor, condition: Tensor, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x.index_select(axis, condition.nonzero().reshape(-1))


@operator("TopK")
def _top_k(
    c: Context,
    x: Tensor,
    count: Tensor | None = None,
    axis: int = -1,
    k: int | None = None,
    largest: int = 1,
    sorted: int = 1,
) -> tuple[Tensor, Tensor]:
    wanted = int(number(count if k is None else k))
    # Of equals the first ones, which a stable sort gives and a selection need not.
    values, places = x.sort(dim=axis, descending=bool(largest), stable=True)
    return values.narrow(axis, 0, wanted), places.narrow(axis, 0, wanted)


@operator("Unique")
def _unique(
    c: Context, x: Tensor, axis: int | None = None, sorted: int = 1
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows = x.reshape(-1) if axis is None else x.movedim(axis, 0)
    found, inverse, counts = fb.unique(rows, return_inverse=True, return_counts=True, dim=0)
    inverse = inverse.reshape(-1)
    last = inverse.numel()
    order = fb.arange(last)
    first = fb.full((found.shape[0],), last, dtype=fb.int64)
    first = first.scatter_reduce(0, inverse, order, "amin", include_self=True)
    if not sorted:
        by_first = first.argsort()
        new_place = fb.empty_like(by_first).scatter(0, by_first, fb.arange(by_first.numel()))
        found, first, counts = found[by_first], first[by_first], counts[by_first]
        inverse = new_place[inverse]
    if axis is not None:
        found = found.movedim(0, axis)
    return found, first, inverse, counts


@operator("ReverseSequence")
def _reverse_sequence(
    c: Context, x: Tensor, lengths: Tensor, batch_axis: int = 1, time_axis: int = 0
) -> Tensor:
    x = x.movedim((batch_axis, time_axis), (0, 1))
    places = fb.arange(x.shape[1])
    ends = lengths.long().unsqueeze(1)
    order = fb.where(places < ends, ends - 1 - places, places)
    index = order.reshape([*order.shape, *[1] * (x.dim() - 2)]).expand(x.shape)
    return x.gather(1, index).movedim((0, 1), (batch_axis, time_axis))


@operator("NonMaxSuppression")
def _non_max_suppression(
    c: Context,
    boxes: Tensor,
    scores: Tensor,
    most: Tensor | None = None,
    overlap: Tensor | None = None,
    threshold: Tensor | None = None,
    center_point_box: int = 0,
) -> Tensor:
    limit = 0 if most is None else int(number(most))
    largest = 0.0 if overlap is None else float(number(overlap))
    least = None if threshold is None else float(number(threshold))
    chosen: list[list[int]] = []
    for batch in range(boxes.shape[0]):
        corners = [_corners(b, center_point_box) for b in boxes[batch].tolist()]
        for kind in range(scores.shape[1]):
            values = scores[batch, kind].tolist()
            order = sorted(range(len(values)), key=lambda i: -values[i])
            kept: list[int] = []
            for i in order:
                if len(kept) >= limit or (least is not None and values[i] <= least):
                    break
                if all(_overlap(corners[i], corners[j]) <= largest for j in kept):
                    kept.append(i)
            chosen += [[batch, kind, i] for i in kept]
    return fb.tensor(chosen, dtype=fb.int64).reshape(-1, 3)


def _corners(box: list[float], center: int) -> tuple[float, float, float, float]:
    if center:
        x, y, w, h = box
        return x - w / 2, y - h / 2, x + w / 2, y + h / 2
    a, b, c, d = box
    return min(a, c), min(b, d), max(a, c), max(b, d)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """The shared area of two boxes as a part of what they cover together."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0.0) * max(height, 0.0)
    together = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / together if together > 0 else 0.0


@operator("Upsample")
def _upsample(c: Context, x: Tensor, given: Tensor | None = None, **attributes: Any) -> Tensor:
    from flambeau.onnx._operators.resampling import interpolated, resized

    mode = attributes.get("mode", "nearest")
    scales: list[float]
    if given is not None:
        scales = given.tolist()
    elif "scales" in attributes:
        scales = attributes["scales"]
    else:
        scales = [1.0, 1.0, attributes["height_scale"], attributes["width_scale"]]
    if mode not in ("nearest", "linear", "bilinear"):
        raise UnsupportedError(f"Upsample: mode {mode!r}")
    if mode == "nearest":
        made = interpolated(x, [shortest(each) for each in scales], None, "nearest", None)
        if made is not None:
            return made
    return resized(
        x,
        list(range(x.dim())),
        scales=scales,
        mode="nearest" if mode == "nearest" else "linear",
        coordinates="asymmetric",
        nearest="floor",
    )
