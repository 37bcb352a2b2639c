"""Rows of a table by number, one by one (`embedding`) or in bags (`embedding_bag`)."""

from __future__ import annotations

from flambeau._autograd.modes import is_grad_enabled, no_grad
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import full, zeros
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _index, _index_put
from flambeau.ops.indices.scattering import index_add, index_copy, scatter_reduce
from flambeau.ops.reductions.counting import searchsorted, unique
from flambeau.ops.reductions.norms import norm


@composite
def _embedding(
    weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """Row ``indices[i]`` of weight for each i.

    The row `padding_idx` receives no gradient (-1: all do); with `scale_grad_by_freq` the gradient
    of a row is divided by the number of its occurrences.
    """
    return _index(weight, (indices,))


@_embedding.gradient("weight")
def _(F, g, weight_shape, indices, padding_idx, scale_grad_by_freq):
    column = (*indices.shape, 1)
    if padding_idx >= 0:
        counts = F.reshape(F.ne(indices, F.scalar(padding_idx, indices)), column)
        g = F.where(counts, g, F.scalar(0, g))
    if scale_grad_by_freq:
        one = F.add(F.zeros((), g), F.scalar(1, g))
        seen = F.index_put(F.zeros(weight_shape[:1], g), (indices,), one, True)
        g = F.div(g, F.reshape(F.index(seen, (indices,)), column))
    return F.embedding_backward(g, indices, weight_shape[0])


@_embedding.gradient("indices")
def _(F, g):
    return None


@composite(title="EmbeddingDenseBackwardBackward0")
def _embedding_backward(grad: Tensor, indices: Tensor, rows: int) -> Tensor:
    """`rows` rows, each the sum of the rows ``grad[i]`` for which ``indices[i]`` is its number."""
    return _index_put(grad.new_zeros((rows, grad.shape[-1])), (indices,), grad, True)


@_embedding_backward.gradient("grad")
def _(F, g, indices):
    return F.index(g, (indices,))


@_embedding_backward.gradient("indices")
def _(F, g):
    return None


@public(method=False)
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Row ``indices[i]`` of `weight` for each i.

    The row `padding_idx` receives no gradient (-1: every row does); with `scale_grad_by_freq` the
    gradient of a row is divided by the number of its occurrences.  With `sparse` a leaf `weight`
    receives a sparse gradient, which holds only the rows that were looked up.

    Shapes: weight (V, D), indices (*) of int32 or int64; result (*, D).

    Raises:
        RuntimeError: `weight` is no matrix, or `indices` of another dtype.
        IndexError: an index is not in [0, V).
        RuntimeError: in backward, `sparse` and `scale_grad_by_freq` both hold.

    >>> import flambeau as fb
    >>> fb.embedding(fb.tensor([[1.0, 2.0], [3.0, 4.0]]), fb.tensor([1, 0, 1]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    w, i = _operands("embedding", weight, indices)
    i = _rows_of(w, i, IndexError, "index out of range in self: embedding has {} rows")
    return _rows(w, i, padding_idx, scale_grad_by_freq, sparse)


@public(method=False)
def embedding_renorm_(
    weight: Tensor, indices: Tensor, max_norm: float, norm_type: float = 2.0
) -> Tensor:
    """Shorten, in place, the rows that `indices` name and whose norm is above `max_norm`.

    Such a row is multiplied by `max_norm` / (norm + 1e-7).  Not recorded.

    Raises:
        RuntimeError: `weight` is no matrix, or `indices` neither int32 nor int64.
        IndexError: an index is not in [0, V).

    >>> import flambeau as fb
    >>> fb.embedding_renorm_(fb.tensor([[3.0, 4.0], [6.0, 8.0]]), fb.tensor([0]), 1.0)
    tensor([[0.6000, 0.8000],
            [6.0000, 8.0000]])
    """
    w, i = _operands("embedding_renorm_", weight, indices)
    if not i.numel() or i.device.type == "meta":
        return w
    i = _rows_of(w, i, IndexError, "index out of range in self: embedding_renorm_ of {} rows")
    with no_grad():
        rows = unique(i.reshape(-1))
        chosen = _index(w, (rows,))
        length = norm(chosen, norm_type, 1, True)
        factor = (max_norm / (length + 1e-7)).masked_fill(length <= max_norm, 1)
        w.copy_(index_copy(w.detach(), 0, rows, chosen * factor))
    return w


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
    w, i = _operands("embedding_bag", weight, indices)
    count = i.shape[0]
    starts = _starts(offsets, count, include_last_offset)
    bags = starts.shape[0]
    padding = -1 if padding_idx is None else padding_idx + w.shape[0] * (padding_idx < 0)
    text = "embedding_bag: an index of input is not in the valid range [0, {})"
    i = _rows_of(w, i, RuntimeError, text)
    if per_sample_weights is not None and per_sample_weights.dtype is not w.dtype:
        raise RuntimeError(
            f"embedding_bag: expected per_sample_weights to have the dtype {w.dtype} of weight, "
            f"got {per_sample_weights.dtype}"
        )
    places = arange(count, device=w.device)
    if not bags:
        nothing = zeros(0, dtype=D.int64, device=w.device)
        return zeros((0, w.shape[1]), dtype=w.dtype, device=w.device), places, nothing, nothing
    # The first bag begins at 0, or that will be raised: nothing is before it.
    bag = searchsorted(starts[1:], places, right=True)
    counts = i != padding
    sizes = index_add(zeros(bags, dtype=D.int64, device=w.device), 0, bag, cast(counts, D.int64))
    rows = _rows(w, i, padding, scale_grad_by_freq, sparse)
    if mode == 2:
        result, winners = _largest(rows, i, bag, counts, sizes)
        return result, bag, sizes, winners
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    rows = rows.masked_fill(~counts.unsqueeze(1), 0)
    total = index_add(zeros((bags, w.shape[1]), dtype=w.dtype, device=w.device), 0, bag, rows)
    if mode == 1:
        total = total / cast(sizes.clamp(1), w.dtype).unsqueeze(1)
    return total, bag, sizes, zeros(0, dtype=D.int64, device=w.device)


def _rows(w: Tensor, i: Tensor, padding: int, by_frequency: bool, sparse: bool) -> Tensor:
    """The rows `i`, recorded with a dense or a sparse gradient."""
    if not (sparse and w.requires_grad and is_grad_enabled()):
        return _embedding(w, i, padding, by_frequency)
    from flambeau.sparse._gradient import record_selection

    with no_grad():
        rows = _index(w, (i,))
        where, kept = i.reshape((-1,)).clone(), None  # `i` may be written to before backward
        if padding >= 0:
            kept = (where != padding).nonzero().reshape((-1,))
            where = _index(where, (kept,))
    result = record_selection(rows, w, where.unsqueeze(0), kept)
    if by_frequency:
        result.register_hook(_refuse_by_frequency)
    return result


def _refuse_by_frequency(grad: Tensor) -> None:
    raise RuntimeError(
        "embedding_backward: scale_grad_by_freq not supported with sparse gradients; "
        "set sparse or scale_grad_by_freq to False"
    )


def _largest(
    rows: Tensor, indices: Tensor, bag: Tensor, counts: Tensor, sizes: Tensor
) -> tuple[Tensor, Tensor]:
    """The maximum of each bag and column, from its first occurrence only, and whose row it was."""
    count, width = rows.shape
    if not count:
        shape = (sizes.shape[0], width)
        return (
            zeros(shape, dtype=rows.dtype, device=rows.device) + rows.sum(),
            zeros(shape, dtype=D.int64, device=rows.device),
        )
    with no_grad():
        where = bag.unsqueeze(1).expand((count, width))
        empty = full((sizes.shape[0], width), float("-inf"), dtype=rows.dtype, device=rows.device)
        values = rows.detach().masked_fill(~counts.unsqueeze(1), float("-inf"))
        top = scatter_reduce(empty, 0, where, values, "amax")
        is_top = (_index(top, (bag,)) == values) & counts.unsqueeze(1)
        places = arange(count, device=rows.device).unsqueeze(1).expand((count, width))
        places = places.masked_fill(~is_top, count)
        last = full(empty.shape, count, dtype=D.int64, device=rows.device)
        first = scatter_reduce(last, 0, where, places, "amin").clamp(max=count - 1)
        nobody = (sizes == 0).unsqueeze(1)
        winners = _index(indices, (first,)).masked_fill(nobody, 0)
    return rows.gather(0, first).masked_fill(nobody, 0), winners


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


def _operands(name: str, weight: object, indices: object) -> tuple[Tensor, Tensor]:
    w, i = need_tensor(weight, name, "weight"), need_tensor(indices, name, "indices")
    if w.dim() != 2:
        raise RuntimeError(f"{name}: 'weight' must be 2-D, got shape {list(w.shape)}")
    if i.dtype not in (D.int32, D.int64):
        raise RuntimeError(f"{name}: expected indices of int32 or int64, got {i.dtype}")
    return w, cast(i, D.int64)


def _rows_of(w: Tensor, i: Tensor, error: type[Exception], text: str) -> Tensor:
    """Indices of rows, once it is known, or will be, that there are such rows."""
    size = w._a.shape[0]
    return checked(i, size, error, text, (size,))
