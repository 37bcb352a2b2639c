"""Repetition: tensors side by side with themselves, and elements repeated in place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import (
    dim_of,
    is_within,
    need_input,
    need_list,
    need_tensor,
    sizes,
)
from flambeau._dispatch.dispatch import cast, kernel_error, recording, wrap
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau._types.memory_format import contiguous_format
from flambeau.ops.creation.creation import tensor
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.reductions.counting import searchsorted
from flambeau.ops.shapes.movement import _titled, as_root, reshape
from flambeau.ops.spatial.resampling import _resample

_MOST = (1 << 63) - 1  # that an int64 may be
_SHORT = 1 << 12  # entries of a dimension that are read at their places, which are kept


@public(variadic="dims")
def tile(input: Tensor, dims: Sequence[int]) -> Tensor:
    """Copies of the tensor side by side; missing leading counts are 1.

    >>> import flambeau as fb
    >>> fb.tile(fb.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    x = need_tensor(input, "tile", "input")
    dims = need_list(dims, "tile", "dims")
    return x.repeat((*(1,) * (x.dim() - len(dims)), *dims))


@public
@takes_as_annotated
def repeat_interleave(
    input: Tensor,
    repeats: Tensor | int | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Each element (or entry of `dim`) repeated in place, a number of times or `repeats[i]` times.

    With one argument, `input` is the counts, and the result holds the index of each, so repeated.

    Raises:
        RuntimeError: counts are negative or not as many as entries.
        NotImplementedError: counts are no int32 or int64.

    >>> import flambeau as fb
    >>> fb.repeat_interleave(fb.tensor([1, 2]), fb.tensor([2, 1]))
    tensor([1, 1, 2])
    """
    x = input if type(input) is Tensor else need_tensor(input, "repeat_interleave", "input")
    if repeats is None:
        return _interleaved(x, output_size)
    rank = len(x._a.shape)
    if dim is None:
        x, d = x if rank == 1 else x.reshape(-1), 0
    else:
        d = dim_of(dim, rank)
        x = x if rank else x.reshape(1)
    n = x._a.shape[d]
    if isinstance(repeats, (list, tuple)):
        repeats = tensor(list(repeats), dtype=D.int64, device=x.device)
    if not isinstance(repeats, Tensor):
        (repeats,) = sizes((repeats,), "repeats")
        if repeats < 0:
            raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
        if 0 < n * repeats <= _SHORT and repeats > 1:
            return _resample.run(x.contiguous(), d, _each_repeated(n, repeats), None)
        shape = (*x.shape[: d + 1], repeats, *x.shape[d + 1 :])
        merged = (*x.shape[:d], n * repeats, *x.shape[d + 1 :])
        # A copy also where one view would do: of a single entry, or repeated once.
        repeated = x.unsqueeze(d + 1).expand(shape)
        return repeated.clone(memory_format=contiguous_format).reshape(merged)
    shape = repeats._a.shape
    if shape != (n,):
        if len(shape) > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if repeats.numel() != 1:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{repeats.numel()} and input.size({d}) = {n}"
            )
        repeats = repeats.reshape(-1).expand(n)
    places = _interleaved(repeats, output_size)
    if len(x._a.shape) > 1 or places.dtype is not D.int64 or places._be is not x._be:
        return x.index_select(d, places)
    return OPS["index"].run(x, (places,))  # they are in range


@lru_cache(maxsize=64)
def _each_repeated(n: int, repeats: int) -> tuple[tuple[int, ...]]:
    return (tuple([i for i in range(n) for _ in range(repeats)]),)


def _interleaved(counts: Tensor, output_size: int | None) -> Tensor:
    if counts.dim() != 1:
        raise RuntimeError(
            f"repeat_interleave only accepts 1D vector as repeat, got {counts.dim()} dimensions"
        )
    if counts.dtype not in (D.int32, D.int64):
        raise NotImplementedError(
            f"repeat_interleave: counts of dtype {counts.dtype} are not implemented; use int64 or "
            "int32"
        )
    be = counts._be
    alone = getattr(be.repeat_places, "alone", None)
    if alone is not None and not _dispatch.modes and (found := alone(counts._a)) is not None:
        _need_size(output_size, found.shape[0])
        return wrap(be, found, D.int64)
    if counts.numel() == 0:
        return cast(counts, counts.dtype)
    are_counts = counts.dtype is D.int64 and is_within(counts, _MOST)
    if not are_counts and int(counts.amin().item()) < 0:
        raise RuntimeError("repeats can not be negative")
    total = int(counts.sum().item())
    _need_size(output_size, total)
    return cast(_repeat_places.run(cast(counts, D.int64), total), counts.dtype)


def _need_size(wanted: int | None, total: int) -> None:
    if wanted is not None and wanted != total:
        raise RuntimeError(f"allocated size does not match required size: {wanted} != {total}")


@composite(out=D.int64, differentiable=False)
def _repeat_places(counts: Tensor, total: int) -> Tensor:
    """Each place i as often as counts[i] says, `total` in all."""
    places = arange(total, device=counts.device)
    return searchsorted(counts.cumsum(0), places, right=True)


@_repeat_places.samples(D.int64)
def _(S):
    # Counts are alike, for other layouts repeat them, and add up to the number beside them.
    counts = S.Arr((4,), D.int64, kind="literal", literal=(3,))
    nothing = S.Arr((2,), D.int64, kind="literal", literal=(0,))
    return [S.Sample((counts, 12), "some"), S.Sample((nothing, 0), "none")]


@public(variadic="repeats")
def repeat(input: Tensor, repeats: Ints, *more: int) -> Tensor:
    """The tensor tiled `repeats` times along each dimension, copied.

    Raises:
        RuntimeError: fewer repeats than dimensions.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if more or type(repeats) is int:
        repeats = (repeats, *more)  # type: ignore[assignment]
    times = sizes((need_list(repeats, "repeat", "repeats"),), "repeats")
    x = need_input(input, "repeat", "input")
    shape = tuple(x._a.shape)
    if len(times) < len(shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            f"tensor: got {list(times)} for {list(shape)}"
        )
    for n in times:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension: repeat{list(times)}"
            )
    shape = (1,) * (len(times) - len(shape)) + shape
    pairs = list(zip(times, shape, strict=True))
    seen = tuple([n for _, size in pairs for n in (1, size)])
    paired = tuple([n for pair in pairs for n in pair])
    whole = tuple([a * b for a, b in pairs])
    if x._rg and recording():
        tiled = OPS["contiguous"](reshape(x, seen).expand(paired))
        return as_root(_titled(tiled, "view", (whole,), "Repeat"))
    be = x._be
    try:
        a = be.fresh(be.contiguous(be.expand(be.reshape(x._a, seen), paired)))
        return wrap(be, be.view(a, whole), x.dtype)
    except be.error as error:
        raise kernel_error("repeat", error, (x, tuple(times))) from error
