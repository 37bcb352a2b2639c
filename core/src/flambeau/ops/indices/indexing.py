"""Indexing: gathering and scattering by index tensors, sorting, and searching for nonzeros."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from flambeau._autograd.modes import no_grad, recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import (
    broadcast_shapes,
    checked,
    dim_of,
    dims_of,
    is_within,
    need_tensor,
)
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._dispatch.keywords import documented
from flambeau._dispatch.promotion import fitting, python_number
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints, Number
from flambeau._types.spec import Spec
from flambeau._writes.inplace import put_into
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.creation.creation import ones
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite, primitive

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


def indexed_shape(shape: Any, indices: Any) -> tuple[int, ...]:
    """The shape of ``x[indices]`` for index tensors, None for whole dimensions."""
    # NumPy's rule: index dimensions take the place of adjacent indexed ones, else they come first.
    given = [i for i, x in enumerate(indices) if x is not None]
    common = broadcast_shapes(*[tuple(indices[i].shape) for i in given])
    rest = [n for i, n in enumerate(shape) if i >= len(indices) or indices[i] is None]
    if given and given == list(range(given[0], given[-1] + 1)):
        return (*rest[: given[0]], *common, *rest[given[0] :])
    return (*common, *rest)


@primitive
def _index(self: Tensor, indices: tuple[Tensor, ...]) -> Spec:
    return Spec(indexed_shape(self.shape, indices), self.dtype)


@_index.gradient("self")
def _(F, g, self_shape, indices):
    return F.index_put(F.zeros(self_shape, g), indices, g, True)


@_index.gradient("indices")
def _(F, g, indices):
    return [None] * len(indices)


@primitive
def _index_put(
    self: Tensor, indices: tuple[Tensor, ...], values: Tensor, accumulate: bool
) -> Tensor:
    shape = indexed_shape(self.shape, indices)
    if not _broadcasts_to(values.shape, shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            f"indexing result of shape {list(shape)}"
        )
    return self


def _broadcasts_to(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) <= len(wanted) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(wanted), strict=False)
    )


@_index_put.gradient("self")
def _(F, g, indices, accumulate, values_shape):
    return g if accumulate else F.index_put(g, indices, F.zeros((), g), False)


@_index_put.gradient("values")
def _(F, g, indices, values_shape):
    return F.sum_to(F.index(g, indices), values_shape)


@_index_put.gradient("indices")
def _(F, g, indices):
    return [None] * len(indices)


def _check_index_dims(name: str, self: Any, dim: int, index: Any) -> None:
    if len(index.shape) != len(self.shape):
        raise RuntimeError(
            f"{name}(): Index tensor must have the same number of dimensions as self tensor: got "
            f"{len(index.shape)} and {len(self.shape)}"
        )
    for d, (n, m) in enumerate(zip(self.shape, index.shape, strict=True)):
        if d != dim and m > n:
            raise RuntimeError(
                f"{name}(): Size does not match at dimension {d}: expected index "
                f"{list(index.shape)} to be no larger than self {list(self.shape)} apart from "
                f"dimension {dim}"
            )


@primitive
def _gather(self: Tensor, dim: int, index: Tensor) -> Spec:
    _check_index_dims("gather", self, dim, index)
    return Spec(tuple(index.shape), self.dtype)


@_gather.gradient("self")
def _(F, g, self_shape, dim, index):
    return F.scatter_add(F.zeros(self_shape, g), dim, index, g)


@_gather.gradient("index")
def _(F, g):
    return None


@primitive
def _scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    _check_index_dims("scatter", self, dim, index)
    return self


@_scatter.gradient("self")
def _(F, g, dim, index, src_shape):
    return F.scatter(g, dim, index, F.zeros(src_shape, g))


@_scatter.gradient("src")
def _(F, g, dim, index, src_shape):
    return padded(F, F.gather(g, dim, index), src_shape)


@_scatter.gradient("index")
def _(F, g):
    return None


@primitive
def _scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    _check_index_dims("scatter_add", self, dim, index)
    return self


@_scatter_add.gradient("self")
def _(F, g):
    return g


@_scatter_add.gradient("src")
def _(F, g, dim, index, src_shape):
    return padded(F, F.gather(g, dim, index), src_shape)


@_scatter_add.gradient("index")
def _(F, g):
    return None


def untouched(x: Tensor, src: Tensor) -> Tensor:
    """A copy of `x`, what writing `src` at no place leaves; with a history if `src` has one."""
    if not src.requires_grad:
        return x.clone()
    nowhere = x.new_zeros((0,), dtype=D.int64)
    return _scatter_add(x.reshape((-1,)), 0, nowhere, src.reshape((-1,))).reshape(tuple(x.shape))


def padded(F: Formulas, g: Array, shape: tuple[int, ...]) -> Array:
    """`g` with zeros after it up to `shape`: entries of src that no index used."""
    if tuple(g.shape) == tuple(shape):
        return g
    return F.slice_backward(g, shape, tuple(builtins.slice(0, n, 1) for n in g.shape))


@primitive(out=D.int64, differentiable=False)
def _nonzero(self: Tensor) -> Spec:
    raise NotImplementedError("nonzero(): the number of results depends on data, which meta lacks")


@primitive(results=2)
def _sort(self: Tensor, dim: int, descending: bool, stable: bool) -> Any:
    return Spec(self.shape, self.dtype), Spec(self.shape, D.int64)


@_sort.gradient
def _(F, g, result1, dim, self_shape):
    if not self_shape:
        return g[0]
    return F.scatter(F.zeros(self_shape, g[0]), dim, result1, g[0])


@composite(results=2)
def _topk(self: Tensor, k: int, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    values, indices = _sort(self, dim, largest, True)
    return values.narrow(dim, 0, k).contiguous(), indices.narrow(dim, 0, k).contiguous()


@_topk.gradient
def _(F, g, result1, dim, self_shape):
    return F.scatter(F.zeros(self_shape, g[0]), dim, result1, g[0])


def checked_index(
    index: Tensor,
    size: int,
    name: str,
    error: type[Exception] = RuntimeError,
    text: str = "{}(): index {index} is out of bounds for dimension with size {}",
) -> Tensor:
    """An index tensor as non-negative int64.

    Raises:
        RuntimeError: wrong dtype.
        error: an entry is out of range.
    """
    if index.dtype is not D.int64:
        if index.dtype is not D.int32:
            raise RuntimeError(f"{name}(): Expected dtype int64 for index, got {index.dtype}")
        index = cast(index, D.int64)
    return checked(index, size, error, text, (name, size))


def _places(name: str, x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The checked index of `gather` and `scatter`, of any dtype if it has no elements."""
    if 0 in index._a.shape:
        index = cast(index, D.int64)
    shape = x._a.shape
    return checked_index(index, shape[dim] if shape else 1, name)


def _check_index_rank(name: str, x: Tensor, dim: int, index: Tensor) -> None:
    # Before the kernel, which may broadcast what PyTorch refuses.  A scalar counts as a vector.
    shape, wanted = x._a.shape, index._a.shape
    if len(shape) == len(wanted):
        for d, n in enumerate(shape):
            if wanted[d] > n and d != dim:
                break
        else:
            return
    if index.numel():
        vectors = [Spec(tuple(t._a.shape) or (1,), t.dtype) for t in (x, index)]
        _check_index_dims(name, vectors[0], dim, vectors[1])


@public
def gather(
    input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None
) -> Tensor:
    """The elements of `input` whose position along `dim` is `index`, elsewhere their own.

    With `sparse_grad` a leaf `input` gets a sparse gradient.

    Raises:
        RuntimeError: the index has the wrong dtype or rank, or is out of bounds.

    >>> import flambeau as fb
    >>> fb.gather(fb.tensor([[1, 2], [3, 4]]), 1, fb.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    x = input if type(input) is Tensor else need_tensor(input, "gather", "input")
    shape = x._a.shape
    rank = len(shape)
    d = dim_of(dim, rank)
    i = index if type(index) is Tensor else need_tensor(index, "gather", "index")
    if i._a.shape != shape:
        _check_index_rank("gather", x, d, i)
    if not (rank and i.dtype is D.int64 and is_within(i, shape[d])):
        i = _places("gather", x, d, i)
    if not rank or not i._a.shape:
        flat = _gather.run(x.reshape((-1,)), 0, i.reshape((-1,)))
        return deliver(
            flat.reshape(tuple(i._a.shape)), out, input, index, exact=True, share="nothing"
        )
    if sparse_grad and out is None and x.requires_grad:
        return _gather_sparsely(x, d, i)
    result = _gather.run(x, d, i)
    if out is None:
        return result
    return deliver(result, out, input, index, exact=True, share="nothing")


def _gather_sparsely(x: Tensor, dim: int, index: Tensor) -> Tensor:
    from flambeau.sparse._gradient import record_selection

    with no_grad():
        where = ones(tuple(index._a.shape), device=x.device).nonzero().t().contiguous()
        where[dim] = index.reshape((-1,))
        taken = _gather(x, dim, index)
    return record_selection(taken, x, where)


def _scatter_source(
    name: str, input: Tensor, dim: int, index: Tensor, src: object
) -> tuple[Any, ...]:
    x = need_tensor(input, name, "input")
    d = dim_of(dim, x.dim())
    _check_index_rank(name, x, d, need_tensor(index, name, "index"))
    i = _places(name, x, d, index)
    if not isinstance(src, Tensor):
        src = x.new_full(tuple(i._a.shape), fitting(python_number(src), x.dtype))
    if src.dtype is not x.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if i.numel() and max(1, i.dim()) != max(1, src.dim()):
        error = IndexError if 0 < src.dim() < i.dim() else RuntimeError
        raise error(
            f"{name}(): Index tensor must have the same number of dimensions as src tensor: got "
            f"{i.dim()} and {src.dim()}"
        )
    shapes = i._a.shape or (1,), src._a.shape or (1,)
    for a, (m, n) in enumerate(zip(*shapes, strict=False)):
        if m > n:
            raise RuntimeError(
                f"{name}(): Expected index {list(i._a.shape)} to be no larger than src "
                f"{list(src._a.shape)} at dimension {a}"
            )
    return x, d, i, src


@public(inplace="method", names={"source": "src"})
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of `input` with `src` (or a number) written to positions `index` along `dim`.

    Where an index occurs twice, one of the values stays.

    >>> import flambeau as fb
    >>> fb.zeros(3).scatter(0, fb.tensor([0, 2]), fb.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """
    given = value if src is None else src
    x, d, i, source = _scatter_source("scatter", input, dim, index, given)
    if i.numel() == 0:
        return deliver(untouched(x, source), out, input, index, source, exact=True)
    if reduce == "add":
        return deliver(
            put_into(_scatter_add, x, d, i, source), out, input, index, source, exact=True
        )
    if reduce == "multiply":
        from flambeau.ops.indices.scattering import scatter_reduce  # uses `scatter`

        return scatter_reduce(x, d, i, source, "prod", out=out)
    if reduce is not None:
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce!r}")
    if x.dim() == 0:
        return deliver(
            _scatter.run(x.reshape((1,)), 0, i.reshape((-1,)), source.reshape((-1,))).reshape(()),
            out,
            input,
            index,
            source,
            exact=True,
        )
    return deliver(put_into(_scatter, x, d, i, source), out, input, index, source, exact=True)


@public(inplace="method", names={"source": "src", "other": "src"})
def scatter_add(
    input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """A copy of `input` with entries of `src` added at positions `index` along `dim`.

    >>> import flambeau as fb
    >>> fb.zeros(2).scatter_add(0, fb.tensor([0, 0]), fb.tensor([5.0, 6.0]))
    tensor([11.,  0.])
    """
    x, d, i, src = _scatter_source("scatter_add", input, dim, index, src)
    if i.numel() == 0:
        return deliver(untouched(x, src), out, input, index, src, exact=True)
    if x.dim() == 0:
        return deliver(
            _scatter_add.run(x.reshape((1,)), 0, i.reshape((-1,)), src.reshape((-1,))).reshape(()),
            out,
            input,
            index,
            src,
            exact=True,
        )
    return deliver(put_into(_scatter_add, x, d, i, src), out, input, index, src, exact=True)


@overload
def nonzero(
    input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@public
def nonzero(
    input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The indices of nonzero elements, a row each; as a tuple, a vector per dimension.

    Raises:
        RuntimeError: `out` together with `as_tuple`.

    >>> import flambeau as fb
    >>> fb.nonzero(fb.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    x = input if type(input) is Tensor else need_tensor(input, "nonzero", "input")
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        x = x if x._a.shape else x.reshape((1,))
        return tuple(_nonzero.run(x).unbind(1))
    found = _nonzero.run(x)
    return found if out is None else deliver(found, out, input, exact=True, share="nothing")


def places_of_true(mask: Tensor, rank: int) -> tuple[Tensor, ...]:
    """Where a mask holds: a vector of indices for each of its dimensions."""
    found = _nonzero.run(mask)
    be, a = found._be, found._a
    count = slice(0, a.shape[0], 1)
    if rank == 1:
        return (wrap(be, be.part(a, (count, 0)), D.int64),)
    return tuple([wrap(be, be.part(a, (count, i)), D.int64) for i in range(rank)])


def flat_selection(x: Tensor, mask: Tensor) -> Tensor | None:
    """What a mask of the first dimensions selects, these seen as one; None where they are not.

    They are where both are row-major, there is no history to be kept, and nobody looks on.
    """
    be, a, m = x._be, x._a, mask._a
    if not be.strided or _dispatch.modes or (x._rg and recording() and x.requires_grad):
        return None
    is_contiguous = be.backend.is_contiguous
    if not (is_contiguous(a) and is_contiguous(m)):
        return None
    count = prod(m.shape)
    flat = wrap(be, be.view(a, (count, *a.shape[len(m.shape) :])), x.dtype)
    return _index.run(flat, places_of_true(wrap(be, be.view(m, (count,)), D.bool_), 1))


@public
def nonzero_static(
    input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None
) -> Tensor:
    """The indices of the first `size` nonzero elements, a row each; `fill_value` where none is.

    Raises:
        RuntimeError: `size` is negative.

    >>> import flambeau as fb
    >>> fb.nonzero_static(fb.tensor([0, 3]), size=2)
    tensor([[ 1],
            [-1]])
    """
    found = _nonzero.run(need_tensor(input, "nonzero_static", "input"))
    count = operator.index(size)
    if count < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be a non-negative integer, got {count}")
    rows = found.new_full((count, found.shape[1]), fill_value)
    known = min(count, found.shape[0])
    rows[:known] = found[:known]
    return deliver(rows, out, input, exact=True, share="nothing")


@public
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The entries `index` (a vector) of dimension `dim`, copied.

    Raises:
        IndexError: the index has several dimensions or is out of range.

    >>> import flambeau as fb
    >>> fb.index_select(fb.tensor([10, 20, 30]), 0, fb.tensor([2, 0]))
    tensor([30, 10])
    """
    x = input if type(input) is Tensor else need_tensor(input, "index_select", "input")
    shape = x._a.shape
    d = dim_of(dim, len(shape))
    i = index if type(index) is Tensor else need_tensor(index, "index_select", "index")
    rank = len(i._a.shape)
    if rank > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    size = shape[d] if shape else 1
    if i.dtype is not D.int64 or not is_within(i, size):
        i = checked_index(i, size, "index_select", IndexError, "index out of range in self")
    i = i if rank else i.reshape((-1,))
    if shape:
        result = _index.run(x, (*(None,) * d, i) if d else (i,))
        be = result._be
        if be.strided and not be.backend.is_contiguous(result._a):
            result = result.contiguous()
    else:
        result = _index.run(x.reshape((1,)), (i,)).reshape(())
    if out is None:
        return result
    return deliver(result, out, input, index, exact=True, share="nothing")


@public
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where `mask` holds, as a vector; both broadcast.

    >>> import flambeau as fb
    >>> fb.masked_select(fb.tensor([1, 2, 3]), fb.tensor([True, False, True]))
    tensor([1, 3])
    """
    need_tensor(input, "masked_select", "input")
    need_tensor(mask, "masked_select", "mask")
    if (
        out is None
        and mask.dtype is D.bool_
        and mask._be is input._be
        and (form := mask._a.shape)
        and form == input._a.shape
    ):
        if len(form) == 1:
            return _index.run(input, places_of_true(mask, 1))
        if (found := flat_selection(input, mask)) is not None:
            return found
    if mask.dtype not in (D.bool_, D.uint8):
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {mask.dtype}")
    shape = broadcast_shapes(tuple(input._a.shape), tuple(mask._a.shape))
    x, m = input.expand(shape), mask.expand(shape)
    if not shape:
        x, m = x.reshape((1,)), m.reshape((1,))
    return deliver(
        _index.run(x, tuple(_nonzero.run(m).unbind(1))),
        out,
        input,
        mask,
        exact=True,
        share="nothing",
    )


@public(names={"indices": "index"})
@documented({"indices": "index"})
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at flat positions `index`, in the index's shape.

    >>> import flambeau as fb
    >>> fb.take(fb.tensor([[1, 2], [3, 4]]), fb.tensor([0, 3]))
    tensor([1, 4])
    """
    need_tensor(index, "take", "index")
    x = need_tensor(input, "take", "input")
    flat = x if len(x._a.shape) == 1 else x.reshape((-1,))
    if index.dtype is not D.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    n = flat.numel()
    if index.numel() and n == 0:
        raise IndexError("take(): tried to take from an empty tensor")
    i = wrapped_index(index, n, "take")
    if i._a.shape:
        found = _index.run(flat, (i,))
    else:
        found = _index.run(flat, (i.reshape((-1,)),)).reshape(())
    return deliver(
        found,
        out,
        input,
        index,
        exact=True,
        share="nothing",
    )


def wrapped_index(index: Tensor, size: int, name: str, dim: int = 0) -> Tensor:
    """An index tensor with negative entries counted from the end.

    Raises:
        IndexError: an entry is out of range.
    """
    if index.dtype is D.int64 and is_within(index, size):
        return index
    text = "index {index} is out of bounds for dimension {} with size {}"
    if not size:
        text = "index {index} is out of bounds for dimension with size 0: it is dimension {}"
    return checked(cast(index, D.int64), size, IndexError, text, (dim, size), wrap=True)


@named_tuple
class sort_return(NamedTuple):  # noqa: N801
    """What `sort` returns."""

    values: Tensor
    indices: Tensor


@named_tuple
class topk_return(NamedTuple):  # noqa: N801
    """What `topk` returns."""

    values: Tensor
    indices: Tensor


@public
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = False,
    out: Sequence[Tensor] | None = None,
) -> sort_return:
    """The elements along `dim` in order, and where they were; nan counts as largest.

    >>> import flambeau as fb
    >>> fb.sort(fb.tensor([3, 1, 2])).values
    tensor([1, 2, 3])
    """
    x = need_tensor(input, "sort", "input")
    d = dim_of(dim, x.dim())
    if x.dtype.is_complex:
        raise RuntimeError(f"Sort does not support complex dtypes, got {x.dtype}; sort its abs()")
    if x.dim() == 0:
        return deliver_all(
            sort_return(x.clone(), x.new_zeros((), dtype=D.int64)), out, input, exact=True
        )
    return deliver_all(
        sort_return(*_sort.run(x, d, bool(descending), True)), out, input, exact=True
    )


@public
def argsort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The indices that sort `input` along `dim`.

    >>> import flambeau as fb
    >>> fb.argsort(fb.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return deliver(sort(input, dim, descending).indices, out, input)


@public
@takes_as_annotated
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> topk_return:
    """The `k` largest (or smallest) elements along `dim`, in order, and where they were.

    Raises:
        RuntimeError: `k` exceeds the size.

    >>> import flambeau as fb
    >>> fb.topk(fb.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    x = input if type(input) is Tensor else need_tensor(input, "topk", "input")
    if isinstance(dim, bool):  # `largest`, given one place too early
        raise TypeError("topk(): argument 'dim' must be int, not bool")
    shape = x._a.shape
    d = dim_of(dim, len(shape))
    if x.dtype.category in (0, 3):
        raise RuntimeError(f"topk does not support {x.dtype}; cast the input first")
    if not 0 <= k <= (shape[d] if shape else 1):
        raise RuntimeError("selected index k out of range")
    if shape:
        found = tuple.__new__(topk_return, _topk.run(x, operator.index(k), d, bool(largest)))
    else:
        found = topk_return(*sort(x, d, largest))
    return found if out is None else deliver_all(found, out, input, exact=True, share="anything")


@public(inplace="method", names={"k": "diagonal"})
def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The elements on and below a diagonal of the last two dimensions, zeros above.

    >>> import flambeau as fb
    >>> fb.tril(fb.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return deliver(
        put_into(_tril, _matrix("tril", input), diagonal), out, input, exact=True, share="anything"
    )


@public(inplace="method", names={"k": "diagonal"})
def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The elements on and above a diagonal of the last two dimensions, zeros below.

    >>> import flambeau as fb
    >>> fb.triu(fb.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return deliver(
        put_into(_triu, _matrix("triu", input), diagonal), out, input, exact=True, share="anything"
    )


def _matrix(name: str, input: Tensor) -> Tensor:
    x = need_tensor(input, name, "input")
    if x.dim() < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return x


def _triangle(self: Tensor, diagonal: int, lower: bool) -> Tensor:
    rows, columns = self.shape[-2:]
    i = arange(rows, device=self.device).unsqueeze(1)
    j = arange(columns, device=self.device)
    mask = (j - i <= diagonal) if lower else (j - i >= diagonal)
    return self.masked_fill(mask.logical_not(), 0)


@composite
def _tril(self: Tensor, diagonal: int) -> Tensor:
    return _triangle(self, diagonal, True)


@_tril.gradient
def _(F, g, diagonal):
    return F.tril(g, diagonal)


@composite
def _triu(self: Tensor, diagonal: int) -> Tensor:
    return _triangle(self, diagonal, False)


@_triu.gradient
def _(F, g, diagonal):
    return F.triu(g, diagonal)


@public
@takes_as_annotated
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A vector as the diagonal of a square matrix, or the diagonal of a matrix as a vector.

    >>> import flambeau as fb
    >>> fb.diag(fb.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = need_tensor(input, "diag", "input")
    if x.dim() == 2:
        return deliver(x.diagonal(diagonal).clone(), out, input, exact=True, share="anything")
    if x.dim() != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.dim()}D")
    n = x.numel() + builtins.abs(diagonal)
    rows = x.new_zeros((n, n))

    return deliver(
        OPS["diagonal_backward"](x, tuple(rows._a.shape), diagonal, 0, 1),
        out,
        input,
        exact=True,
        share="anything",
    )


@public
def count_nonzero(input: Tensor, dim: Ints | None = None) -> Tensor:
    """How many elements are nonzero.

    >>> import flambeau as fb
    >>> fb.count_nonzero(fb.tensor([0, 1, 2]))
    tensor(2)
    """
    x = need_tensor(input, "count_nonzero", "input")
    if not x._be.strided:  # a level of a transform, whose rule is that of constants
        x = x.detach()
    return OPS["count_nonzero"].run(x, dims_of(dim, len(x._a.shape)), False)


@public(inplace="both", saves_self=False, names={"value": "values"})
def index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """A copy of `input` with `values` written (or added) where ``input[indices]`` points.

    >>> import flambeau as fb
    >>> fb.index_put(fb.zeros(3), (fb.tensor([1, 1]),), fb.tensor([1.0, 1.0]), True)
    tensor([0., 2., 0.])
    """
    need_tensor(input, "index_put", "input")
    need_tensor(values, "index_put", "values")
    from flambeau.ops.indices.subscripts import check_put_dtype, resolved  # index with these ops

    x = need_tensor(input, "index_put", "input")
    check_put_dtype(x, values)
    return put_into(_index_put, x, resolved(x, tuple(indices)), values, bool(accumulate))


@public(method=False)
def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import flambeau as fb
    >>> fb.numel(fb.zeros(2, 3))
    6
    """
    return math.prod(need_tensor(input, "numel", "input")._a.shape)


@public
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, one per row.

    >>> import flambeau as fb
    >>> fb.argwhere(fb.tensor([0, 7, 8]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)


@public
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in ascending order along the first dimension.

    >>> import flambeau as fb
    >>> fb.msort(fb.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return deliver(sort(input, 0).values, out, input, exact=True)


@public(method=False)
@takes_as_annotated
def unravel_index(indices: Tensor, shape: Ints) -> tuple[Tensor, ...]:
    """The coordinates, as int64, of flat indices into a row-major tensor of `shape`.

    Raises:
        TypeError: the indices are no integers.
        ValueError: a size is negative.

    >>> import flambeau as fb
    >>> fb.unravel_index(fb.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    i = need_tensor(indices, "unravel_index", "indices")
    if i.dtype.category != 1 or i.dtype is D.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {i.dtype}")
    size = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in size):
        raise ValueError(f"'shape' cannot have negative values, but got {size}")
    i = cast(i, D.int64)  # a small dtype does not hold the sizes
    found, step = [], prod(size)
    for n in size:
        step = step // n if n else 0
        found.append(i // step % n if step else i * 0)
    return tuple(found)
