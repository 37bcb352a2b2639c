"""Stretches of a dimension reduced, each to one entry."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Number
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.indices.indexing import _scatter_add
from flambeau.ops.indices.scattering import _scatter_extremum, scatter_reduce
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.reductions.counting import searchsorted
from flambeau.ops.shapes.movement import cat

_EMPTY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -float("inf"), "amin": float("inf")}
"""What a segment without elements has."""

_NAMES = {"max": "amax", "min": "amin"}


class _Segments(NamedTuple):
    """Where segments lie in the rows of data.

    Attributes:
        lengths: how many elements each has, (batches, segments).
        places: the segment of each element in all rows; the number of them all for none.
    """

    lengths: Tensor
    places: Tensor


def _whole(name: str, x: Tensor) -> Tensor:
    if x.dtype not in (D.int32, D.int64):
        raise NotImplementedError(
            f'"_segment_reduce_{name}_cpu_kernel1" not implemented for {x.dtype}'
        )
    return cast(x.detach(), D.int64)


def _bounds(
    x: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool
) -> Tensor:
    """Where segments begin, and where the last ends: (batches, segments + 1), checked."""
    name = "lengths" if offsets is None else "offsets"
    given = lengths if offsets is None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    told = need_tensor(given, "segment_reduce", name)
    if axis != told.dim() - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        )
    if tuple(told.shape[:axis]) != tuple(x.shape[:axis]):
        raise RuntimeError(
            f"segment_reduce(): {name} of shape {list(told.shape)} do not go with data of shape "
            f"{list(x.shape)}: dimensions before {axis} must be equal"
        )
    size = x.shape[axis]
    rows = _whole(name, told).reshape((-1, told.shape[-1]))
    if offsets is None:
        if rows.numel() and bool((rows < 0).any()):
            raise RuntimeError("lengths contains negative value!")
        ends = rows.cumsum(1)
        if not unsafe and not bool((rows.sum(1) == size).all()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to "
                "data.size(lengths.dim()-1) when !unsafe."
            )
        rows = cat([rows.new_zeros((rows.shape[0], 1)), ends], 1)
    elif not rows.shape[1]:
        raise RuntimeError("segment_reduce(): offsets have where the first segment begins at least")
    if rows.numel() and bool(
        (rows[:, 1:] < rows[:, :-1]).any() | (rows < 0).any() | (rows > size).any()
    ):
        raise RuntimeError(
            f"segment_reduce(): the segments of {name} do not lie in a dimension of {size} elements"
        )
    return rows


def _laid(bounds: Tensor, size: int) -> _Segments:
    batches, count = bounds.shape[0], bounds.shape[1] - 1
    place = arange(size, device=bounds.device).expand((batches, size)).contiguous()
    segment = searchsorted(bounds.contiguous(), place, right=True) - 1
    first = arange(batches, device=bounds.device).reshape((-1, 1)) * count
    inside = (segment >= 0) & (segment < count)
    places = where(inside, segment + first, segment.new_full((), batches * count))
    return _Segments(bounds[:, 1:] - bounds[:, :-1], places.reshape(-1))


def _extrema(rows: Tensor, index: Tensor, count: int, kind: str) -> Tensor:
    """The extrema of segments: equal ones share the gradient, NaNs are extrema where they are."""
    none = rows.new_full((count, rows.shape[1]), _EMPTY[kind])
    if not rows.requires_grad:
        return _scatter_extremum(none, 0, index, rows, kind == "amax")
    # NaN equals nothing, and rows that are no more than nothing would share with it.
    nans, zeros = rows.isnan(), none.new_zeros(tuple(none.shape))
    found = _scatter_extremum(none, 0, index, rows.masked_fill(nans, _EMPTY[kind]), kind == "amax")
    with_nan = _scatter_add(zeros, 0, index, cast(nans, rows.dtype)) > 0
    odd = where(with_nan.gather(0, index), nans, rows == _EMPTY[kind])
    many = _scatter_add(zeros, 0, index, cast(odd, rows.dtype))
    mine = _scatter_add(zeros, 0, index, where(odd, rows, rows.new_zeros(())))
    return where((many > 0) & (with_nan | (found == _EMPTY[kind])), mine / many.clamp(1), found)


@public(method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Tensor:
    """Stretches of a dimension, one after another, reduced to one entry each.

    Args:
        data: floating-point numbers.
        reduce: "sum", "mean", "max", "min" or "prod".
        lengths: how many entries each segment has; (segments), or with the dimensions of `data`
            before `axis`, which have segments of their own.
        indices: not taken.
        offsets: where each segment begins, and where the last one ends; comes before `lengths`.
        axis: the dimension, which is the last of `lengths`.
        unsafe: the segments need not take all of the dimension.
        initial: what each reduction begins with.  Without, empty segments have 0, 1 for "prod", an
            infinity for "max" and "min", and NaN for "mean".

    Raises:
        RuntimeError: another reduction, neither lengths nor offsets, or they do not fit.
        NotImplementedError: the data are no floating-point numbers.

    >>> import flambeau as fb
    >>> fb.segment_reduce(fb.tensor([1.0, 2.0, 5.0]), "max", lengths=fb.tensor([2, 1]))
    tensor([2., 5.])
    """
    x = need_tensor(data, "segment_reduce", "data")
    kind = _NAMES.get(reduce, reduce)
    if kind not in _EMPTY:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if indices is not None and lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    d = dim_of(axis, x.dim())
    bounds = _bounds(x, lengths, offsets, d, unsafe)
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"_segment_reduce_cpu" not implemented for {x.dtype}')
    size, shape = x.shape[d], tuple(x.shape)
    found = _laid(bounds, size)
    segments, rest = found.lengths.numel(), shape[d + 1 :]
    rows = x.reshape((found.places.numel(), prod(rest)))
    index = found.places.reshape((-1, 1)).expand(tuple(rows.shape))
    if unsafe or offsets is not None:
        kept = (found.places < segments).nonzero().reshape(-1)
        rows, index = rows.index_select(0, kept), index.index_select(0, kept)
    begin = _EMPTY[kind] if initial is None else initial
    if kind in ("amax", "amin"):
        made = _extrema(rows, index, segments, kind)
        if initial is not None:
            beyond = made < begin if kind == "amax" else made > begin
            beyond = beyond if begin == begin else ~made.isnan()
            made = where(beyond, made.new_full((), begin), made)
    else:
        none = rows.new_full((segments, rows.shape[1]), begin)
        if kind == "prod":
            made = scatter_reduce(none, 0, index, rows, "prod")
        else:
            made = _scatter_add.run(none, 0, index, rows)
    if kind == "mean":
        count = found.lengths.reshape((-1, 1))
        made = made / (count if initial is None else count.clamp(1))
    return made.reshape((*shape[:d], bounds.shape[1] - 1, *rest))
