"""Rows of a table by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau._autograd.modes import is_grad_enabled, no_grad
from flambeau._dispatch.arguments import checked, is_within, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _index, _index_put
from flambeau.ops.indices.scattering import index_copy
from flambeau.ops.reductions.counting import unique
from flambeau.ops.reductions.norms import norm

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


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
        g = by_frequency(F, g, indices, weight_shape)
    return F.embedding_backward(g, indices, weight_shape[0])


def by_frequency(F: Formulas, g: Array, indices: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of rows, divided by how often each is taken."""
    one = F.add(F.zeros((), g), F.scalar(1, g))
    seen = F.index_put(F.zeros(shape[:1], g), (indices,), one, True)
    return F.div(g, F.reshape(F.index(seen, (indices,)), (*indices.shape, 1)))


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
    w, i = operands("embedding", weight, indices)
    if not is_within(i, w._a.shape[0]):
        i = checked_rows(w, i, IndexError, "index out of range in self: embedding has {} rows")
    return looked_up(w, i, padding_idx, scale_grad_by_freq, sparse)


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
    w, i = operands("embedding_renorm_", weight, indices)
    if not i.numel() or i.device.type == "meta":
        return w
    i = checked_rows(w, i, IndexError, "index out of range in self: embedding_renorm_ of {} rows")
    with no_grad():
        rows = unique(i.reshape(-1))
        chosen = _index.run(w, (rows,))
        length = norm(chosen, norm_type, 1, True)
        factor = (max_norm / (length + 1e-7)).masked_fill(length <= max_norm, 1)
        w.copy_(index_copy(w.detach(), 0, rows, chosen * factor))
    return w


def looked_up(w: Tensor, i: Tensor, padding: int, by_frequency: bool, sparse: bool) -> Tensor:
    """The rows `i`, recorded with a dense or a sparse gradient."""
    if not (sparse and w.requires_grad and is_grad_enabled()):
        return _embedding.run(w, i, padding, by_frequency)
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


def operands(name: str, weight: object, indices: object) -> tuple[Tensor, Tensor]:
    """A table and int64 indices, once they may be."""
    w, i = need_tensor(weight, name, "weight"), need_tensor(indices, name, "indices")
    if len(w._a.shape) != 2:
        raise RuntimeError(f"{name}: 'weight' must be 2-D, got shape {list(w.shape)}")
    if i.dtype is D.int64:
        return w, i
    if i.dtype not in (D.int32, D.int64):
        raise RuntimeError(f"{name}: expected indices of int32 or int64, got {i.dtype}")
    return w, cast(i, D.int64)


def checked_rows(w: Tensor, i: Tensor, error: type[Exception], text: str) -> Tensor:
    """Indices of rows, once it is known, or will be, that there are such rows."""
    size = w._a.shape[0]
    return checked(i, size, error, text, (size,))
