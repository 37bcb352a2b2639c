"""Rows of a table in bags: their sums, means or maxima."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau._autograd.modes import is_grad_enabled
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import full, zeros
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _index
from flambeau.ops.indices.scattering import index_add, scatter_reduce
from flambeau.ops.layers.embedding import by_frequency, checked_rows, looked_up, operands
from flambeau.ops.layers.gradient_rules import check_shape
from flambeau.ops.pointwise.elementwise import isnan, where
from flambeau.ops.reductions.counting import searchsorted

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


@public(method=False)
@takes_as_annotated
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The sum (`mode` 0), mean (1) or maximum (2) of the rows of each bag; empty bags give 0.

    Bag b begins at ``offsets[b]`` and ends before the next one; with `include_last_offset` the
    last offset only ends the last bag.  Entries equal to `padding_idx` do not count.  `sparse` as
    for `embedding`.

    Shapes: weight (V, D), indices and per_sample_weights (N), offsets (B) or (B + 1).

    Returns:
        The result (B, D), the bag of each index (N), the number of indices that count in each bag
        (B), and for `mode` 2 the index that each maximum comes from (B, D), else an empty tensor.

    Raises:
        RuntimeError: dtypes or offsets do not fit, or an index is not in [0, V).
        RuntimeError: in backward, `sparse` and `scale_grad_by_freq` both hold.

    >>> import flambeau as fb
    >>> table = fb.tensor([[1.0], [2.0], [4.0]])
    >>> fb.embedding_bag(table, fb.tensor([0, 1, 2]), fb.tensor([0, 2]))[0]
    tensor([[3.],
            [4.]])
    """
    w, i = operands("embedding_bag", weight, indices)
    count = i.shape[0]
    starts = _starts(offsets, count, include_last_offset)
    bags = starts.shape[0]
    padding = -1 if padding_idx is None else padding_idx + w.shape[0] * (padding_idx < 0)
    text = "embedding_bag: an index of input is not in the valid range [0, {})"
    i = checked_rows(w, i, RuntimeError, text)
    if per_sample_weights is not None and per_sample_weights.dtype is not w.dtype:
        raise RuntimeError(
            f"embedding_bag: expected per_sample_weights to have the dtype {w.dtype} of weight, "
            f"got {per_sample_weights.dtype}"
        )
    if not bags:
        nothing = zeros(0, dtype=D.int64, device=w.device)
        empty = zeros((0, w.shape[1]), dtype=w.dtype, device=w.device)
        return empty, zeros(count, dtype=D.int64, device=w.device), nothing, nothing
    factors = per_sample_weights
    if not (sparse and w.requires_grad and is_grad_enabled()):
        return _embedding_bag.run(w, i, starts, factors, mode, padding, scale_grad_by_freq)
    # The rows that are looked up are a table of their own, of which each place is taken once.
    rows = looked_up(w, i, padding, scale_grad_by_freq, sparse)
    places = arange(count, device=w.device)
    if padding >= 0:
        padding, places = count, places.masked_fill(i == padding, count)
    result, bag, sizes, winners = _embedding_bag.run(
        rows, places, starts, factors, mode, padding, False
    )
    return result, bag, sizes, _index.run(i, (winners,)) if winners.numel() and count else winners


@composite(results=4)
def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    starts: Tensor,
    factors: Tensor | None,
    mode: int,
    padding: int,
    scale_grad_by_freq: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The sum (`mode` 0), mean (1) or maximum (2) of the rows ``weight[indices]`` of each bag.

    Bag b begins at ``starts[b]``, the first at 0, and ends before the next one; `factors` multiply
    the rows of a sum.  Entries equal to `padding` do not count.  A maximum is a NaN only where the
    first entry of its bag is.  With `scale_grad_by_freq` the gradient of a row is divided by the
    number of its occurrences.

    Returns the result, the bag of each index, the number of indices that count in each bag, and
    for `mode` 2 the index that each maximum comes from, 0 in empty bags, else an empty tensor.
    """
    count, bags, width = indices.shape[0], starts.shape[0], weight.shape[1]
    text = "embedding_bag: offsets have to ascend, but one is {index} after the one before it"
    checked(starts[1:] - starts[:-1], count + 1, RuntimeError, text, ())
    places = arange(count, device=weight.device)
    # The first bag begins at 0: nothing is before it.
    bag = searchsorted(starts[1:], places, right=True)
    counts = indices != padding
    sizes = index_add(starts * 0, 0, bag, cast(counts, D.int64))
    # What does not count may be no row.
    rows = _index(weight, (indices.masked_fill(~counts, 0),))
    if mode == 2:
        result, winners = _largest(rows, indices, bag, counts, sizes)
        return result, bag, sizes, winners
    if factors is not None:
        rows = rows * factors.unsqueeze(1)
    rows = rows.masked_fill(~counts.unsqueeze(1), 0)
    total = index_add(weight.new_zeros((bags, width)), 0, bag, rows)
    if mode == 1:
        total = total / cast(sizes.clamp(1), weight.dtype).unsqueeze(1)
    return total, bag, sizes, sizes.new_zeros(0)


@_embedding_bag.gradient("weight")
def _(
    F,
    g,
    weight_shape,
    indices,
    factors,
    mode,
    padding,
    scale_grad_by_freq,
    result1,
    result2,
    result3,
):
    g = g[0]
    if g is None:
        return None
    if mode == 2:
        size = F.reshape(F.ne(result2, F.scalar(0, result2)), (*result2.shape, 1))
        return F.scatter_add(F.zeros(weight_shape, g), 0, result3, F.where(size, g, F.scalar(0, g)))
    if mode == 1:
        g = _shared(F, g, result2)
    rows = F.index(g, (result1,))
    if factors is not None:
        rows = F.mul(rows, F.reshape(factors, (*indices.shape, 1)))
    if scale_grad_by_freq:
        rows = by_frequency(F, rows, indices, weight_shape)
    if padding >= 0:
        counts = F.ne(indices, F.scalar(padding, indices))
        rows = F.where(F.reshape(counts, (*indices.shape, 1)), rows, F.scalar(0, rows))
        indices = F.where(counts, indices, F.scalar(0, indices))
    return F.embedding_backward(rows, indices, weight_shape[0])


def _shared(F: Formulas, g: Array, sizes: Array) -> Array:
    """The gradient of sums from that of means."""
    size = F.maximum(sizes, F.scalar(1, sizes))
    return F.div(g, F.reshape(F.cast_like(size, g), (*sizes.shape, 1)))


@_embedding_bag.gradient("factors")
def _(F, g, weight, indices, padding, result1):
    g = g[0]
    if g is None:
        return None
    counts = F.ne(indices, F.scalar(padding, indices))
    indices = F.where(counts, indices, F.scalar(0, indices))
    share = F.sum(F.mul(F.index(g, (result1,)), F.index(weight, (indices,))), (1,), False)
    return F.where(counts, share, F.scalar(0, share))


@_embedding_bag.gradient("indices", "starts")
def _(F, g):
    return None


@_embedding_bag.demand
def _(
    weight: Tensor,
    indices: Tensor,
    starts: Tensor,
    factors: Tensor | None,
    mode: int,
    padding: int,
    scale_grad_by_freq: bool,
) -> None:
    operands("embedding_bag", weight, indices)
    if indices.dim() != 1 or starts.dim() != 1 or not starts.numel():
        raise RuntimeError(
            "embedding_bag: indices and starts have one dimension, and there is a bag; got shapes "
            f"{list(indices.shape)} and {list(starts.shape)}"
        )
    check_shape("embedding_bag", "factors", factors, tuple(indices.shape))


@_embedding_bag.samples
def _(S):
    table, starts = S.Arr((5, 3)), S.Arr((4,), D.int64, kind="literal", literal=(0, 2, 2, 5))
    places = S.Arr((6,), D.int64, kind="literal", literal=(1, 3, 3, 0, 4, 1))
    factors, nobody = S.Arr((6,)), S.Arr((0,), D.int64)
    none = S.Arr((3,), D.int64, kind="literal", literal=(0,))
    others = S.Arr((3,), D.int64, kind="literal", literal=(3, 1, 0))
    return [
        S.Sample((table, places, starts, None, 0, -1, False), "sums", True),
        S.Sample((table, places, starts, factors, 0, 3, False), "weighted, padded", True),
        S.Sample((table, places, starts, None, 1, 1, False), "means", True),
        S.Sample((table, others, none, None, 0, 1, True), "scaled", True),
        S.Sample((table, places, starts, None, 2, -1, False), "maxima", True),
        S.Sample((table, places, starts, None, 2, 3, False), "maxima, a bag of padding"),
        S.Sample((table, nobody, none, None, 1, -1, False), "of nothing"),
    ]


def _largest(
    rows: Tensor, indices: Tensor, bag: Tensor, counts: Tensor, sizes: Tensor
) -> tuple[Tensor, Tensor]:
    """The maximum of each bag and column, from its first occurrence, and whose row it was."""
    count, width = rows.shape
    shape = (sizes.shape[0], width)
    if not count:
        nobody = zeros(shape, dtype=D.int64, device=rows.device)
        return cast(nobody, rows.dtype), nobody
    whose = bag.unsqueeze(1).expand((count, width))
    column = counts.unsqueeze(1)
    values = rows.masked_fill(~column | isnan(rows), float("-inf"))
    top = scatter_reduce(rows.new_full(shape, float("-inf")), 0, whose, values, "amax")
    is_top = (_index(top, (bag,)) == values) & column
    places = arange(count, device=rows.device).unsqueeze(1).expand((count, width))
    nowhere = full(shape, count, dtype=D.int64, device=rows.device)
    first = scatter_reduce(nowhere, 0, whose, places.masked_fill(~column, count), "amin")
    winner = scatter_reduce(nowhere, 0, whose, places.masked_fill(~is_top, count), "amin")
    nobody = (sizes == 0).unsqueeze(1)
    first, winner = first.clamp(max=count - 1), winner.clamp(max=count - 1)
    winner = where(isnan(rows.gather(0, first)), first, winner)
    winners = _index(indices, (winner,)).masked_fill(nobody, 0)
    return rows.gather(0, winner).masked_fill(nobody, 0), winners


def _starts(offsets: Tensor, count: int, include_last_offset: bool) -> Tensor:
    """Where bags begin, as int64, after the checks."""
    o = need_tensor(offsets, "embedding_bag", "offsets")
    if o.dtype not in (D.int32, D.int64):
        raise RuntimeError(
            f"embedding_bag: expected offsets of int32 or int64, got {o.dtype}; convert them"
        )
    o = cast(o, D.int64)
    if include_last_offset and not o.numel():
        raise RuntimeError("include_last_offset: number of offsets should be at least 1")
    first = (
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
        "position 0. However, got {index}"
    )
    checked(o[:1], 1, RuntimeError, first, ())
    last = (
        "offsets[-1] can not be negative or greater than input's length {} but got offsets[-1] of "
        "{index}"
    )
    checked(o[-1:], count + 1, RuntimeError, last, (count,))
    return o[:-1] if include_last_offset else o
