"""Writing by index: whole entries of a dimension, masked elements, flat positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import (
    broadcast_shapes,
    checked,
    dim_of,
    is_within,
    need_tensor,
)
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.promotion import fitting, python_number
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.finfo import iinfo
from flambeau._types.hints import Number
from flambeau._writes.inplace import put_into, written_by
from flambeau._writes.out import deliver
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.indices.indexing import (
    _scatter,
    _scatter_add,
    _scatter_source,
    unravel_index,
    untouched,
    wrapped_index,
)
from flambeau.ops.pointwise.elementwise import times, where
from flambeau.ops.shapes.movement import cat


def _vector(
    name: str,
    x: Tensor,
    d: int,
    index: Tensor,
    error: type[Exception] = IndexError,
    *,
    negative: bool = False,
) -> Tensor:
    """A checked index vector into dimension `d`, one entry if it is a scalar."""
    need_tensor(index, name, "index")
    if index.dim() > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {index.dim()} with size: "
            f"{list(index.shape)}"
        )
    size = x.shape[d] if x.dim() else 1
    flat = index if index._a.shape else index.reshape(-1)
    if flat.dtype is not D.int64:
        flat = cast(flat, D.int64)
    if negative:
        return wrapped_index(flat, size, name, d)
    text = "{}_(): index {index} is out of bounds for dimension {} with size {}"
    return checked(flat, size, error, text, (name, d, size))


def _source(name: str, x: Tensor, d: int, index: Tensor, source: Tensor, wrong: type) -> Tensor:
    """`source` as entries to write, one for each index, in the rank of `x`."""
    if source.dtype is not x.dtype:
        raise RuntimeError(
            f"{name}_(): self and source expected to have the same dtype, but got (self) {x.dtype} "
            f"and (source) {source.dtype}"
        )
    count = source.shape[d] if source.dim() > d else 1
    if count != index.numel():
        raise wrong(
            f"{name}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): "
            f"({count}), for dim: {d}"
        )
    rest = [n for i, n in enumerate(x.shape) if i != d]
    if [n for i, n in enumerate(source.shape) if i != d] != rest:
        raise RuntimeError(
            f"{name}_(): source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {list(x.shape)}, source.shape = {list(source.shape)}"
        )
    return source


def _put(x: Tensor, d: int, index: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    if x.dim() == 0:
        return OPS["index_put"](x.reshape(1), (index,), values.reshape(-1), accumulate).reshape(())
    return put_into(OPS["index_put"], x, (*(None,) * d, index), values, accumulate)


def _row_major(x: Tensor) -> Tensor:
    """`x`, row-major so that the result of a write is, as PyTorch's are that name no layout."""
    return x if x.is_contiguous() else x.contiguous()


@public(inplace="method", names={"tensor": "source"})
@takes_as_annotated
def index_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """A copy with ``alpha * source[..., i, ...]`` added to entry ``index[i]`` of `dim`, for each i.

    An index that occurs several times receives every sum.

    Raises:
        RuntimeError: dtypes or shapes do not fit, or an index into several dimensions is out of
            bounds.
        IndexError: the index is no vector, or one into a vector is out of bounds.

    >>> import flambeau as fb
    >>> fb.zeros(3).index_add(0, fb.tensor([0, 0, 2]), fb.tensor([1.0, 2.0, 3.0]))
    tensor([3., 0., 3.])
    """
    x, s = need_tensor(input, "index_add", "input"), need_tensor(source, "index_add", "source")
    d = dim_of(dim, x.dim())
    if need_tensor(index, "index_add", "index").dtype not in (D.int32, D.int64):
        raise RuntimeError(
            f"index_add_(): Expected dtype int32/int64 for index but got: {index.dtype}"
        )
    i = _vector("index_add", x, d, index, RuntimeError if x.dim() > 1 else IndexError)
    s = _source("index_add", x, d, i, s, RuntimeError)
    return deliver(
        _put(_row_major(x), d, i, times(s, alpha), True),
        out,
        input,
        index,
        source,
        exact=True,
    )


@public(inplace="method", names={"tensor": "source"})
def index_copy(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """A copy with entry ``index[i]`` of `dim` replaced by entry i of `source`.

    Raises:
        RuntimeError: dtypes or shapes do not fit.
        IndexError: the index is no vector, out of bounds, or not as long as `source`, which has
            another number of dimensions.

    >>> import flambeau as fb
    >>> fb.zeros(3).index_copy(0, fb.tensor([2, 0]), fb.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    x, s = need_tensor(input, "index_copy", "input"), need_tensor(source, "index_copy", "source")
    d = dim_of(dim, x.dim())
    if need_tensor(index, "index_copy", "index").dtype is not D.int64:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {index.dtype}"
        )
    if x.dim() and s.dim() and x.dim() != s.dim():
        raise IndexError(
            f"index_copy_(): source has {s.dim()} dimensions and the tensor {x.dim()}; they must "
            "have as many, unless one has none"
        )
    i = _vector("index_copy", x, d, index)
    s = _source("index_copy", x, d, i, s, IndexError)
    return deliver(_put(_row_major(x), d, i, s, False), out, input, index, source, exact=True)


@public(inplace="method", names={"val": "value"})
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """A copy with the entries `index` of `dim` filled with one value, a number or a 0-d tensor.

    Raises:
        RuntimeError: the value has dimensions.
        IndexError: the index is no int64 vector, or out of bounds.

    >>> import flambeau as fb
    >>> fb.zeros(3).index_fill(0, fb.tensor([0, -1]), 7)
    tensor([7., 0., 7.])
    """
    x = need_tensor(input, "index_fill", "input")
    d = dim_of(dim, x.dim())
    if need_tensor(index, "index_fill", "index").dtype is not D.int64:
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, got {index.dtype}.")
    if isinstance(value, Tensor):
        if value.dim():
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.dim()} dimension(s)."
            )
        value = cast(value, x.dtype)
    else:
        value = python_number(value)
        if isinstance(value, complex) and not x.dtype.is_complex:
            raise RuntimeError(
                "index_fill_(): Converting complex Scalar to non-complex type is not supported"
            )
        value = x.new_full((), fitting(value, x.dtype))
    i = _vector("index_fill", x, d, index, negative=True)
    if value.requires_grad:
        i = i.unique()  # a place that is filled twice passes its gradient on once
    return _put(x, d, i, value, False)


@public(inplace="method", names={"tensor": "source"})
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the elements where `mask` holds replaced by those of `source`, in order.

    The mask and the input broadcast; surplus elements of `source` stay unused.

    Raises:
        RuntimeError: the mask is not bool, dtypes differ, or `source` has too few elements.

    >>> import flambeau as fb
    >>> fb.zeros(3).masked_scatter(fb.tensor([True, False, True]), fb.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """
    x = need_tensor(input, "masked_scatter", "input")
    m, s = (
        need_tensor(mask, "masked_scatter", "mask"),
        need_tensor(source, "masked_scatter", "source"),
    )
    if m.dtype not in (D.bool_, D.uint8):
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {m.dtype}"
        )
    if s.dtype is not x.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {x.dtype} and "
            f"{s.dtype}"
        )
    m, shape = cast(m, D.bool_), tuple(x._a.shape)
    if m._a.shape != shape:
        shape = broadcast_shapes(shape, tuple(m.shape))
        x, m = x.expand(shape), m.expand(shape)
    flat = m.reshape(-1)
    text = "Number of elements of source < number of ones in mask: {} < {index}"
    count = flat.sum(0, keepdim=True)
    checked(count, s.numel() + 1, RuntimeError, text, (s.numel(),))
    if s.numel() == 0:
        return untouched(x, s)
    if x is input and x.is_contiguous():
        if (found := written_by("masked_scatter", x, m, s)) is not None:
            return found
    ranks = flat.cumsum(0)
    chosen = s.reshape(-1).index_select(0, (ranks - 1).clamp(0, s.numel() - 1))
    return where(m, chosen.reshape(shape), x)


@public(inplace="method", names={"indices": "index", "tensor": "source"})
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with the values of `source` written (or added) at flat positions `index`.

    Raises:
        RuntimeError: the index is not int64, or dtypes differ.
        IndexError: an index is out of range, or there are not as many indices as values.

    >>> import flambeau as fb
    >>> fb.zeros(2, 2).put(fb.tensor([0, 3]), fb.tensor([5.0, 6.0]))
    tensor([[5., 0.],
            [0., 6.]])
    """
    x, s = need_tensor(input, "put", "input"), need_tensor(source, "put", "source")
    need_tensor(index, "put", "index")
    if index.dtype is not D.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype}")
    if s.dtype is not x.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{x.dtype} and source.dtype = {s.dtype}"
        )
    if index.numel() != s.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {s.numel()}, index.numel() = {index.numel()}"
        )
    if index.numel() and not x.numel():
        raise IndexError("put_(): tried to put elements into an empty tensor")
    i = wrapped_index(index.reshape(-1), x.numel(), "put")
    if x.dim():  # the result keeps the order in memory
        places = (i,) if x.dim() == 1 else tuple(unravel_index(i, tuple(x.shape)))
        return put_into(OPS["index_put"], x, places, s.reshape(-1), bool(accumulate))
    flat = OPS["index_put"](x.reshape(-1), (i,), s.reshape(-1), bool(accumulate))
    return flat.reshape(())


@public(inplace="method")
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """A copy with each element combined with those of `src` whose `index` along `dim` names it.

    `reduce` is "sum", "prod", "mean", "amax" or "amin". With ``include_self=False`` the old value
    takes no part where anything is scattered.

    Raises:
        RuntimeError: another reduction, dtypes that differ, or an index that does not fit.
        NotImplementedError: the extremum of complex numbers.

    >>> import flambeau as fb
    >>> index, values = fb.tensor([0, 0, 1]), fb.tensor([1.0, 5.0, 3.0])
    >>> fb.zeros(3).scatter_reduce(0, index, values, "amax")
    tensor([5., 3., 0.])
    """
    need_tensor(src, "scatter_reduce", "src")
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}."
        )
    x, d, i, s = _scatter_source("scatter_reduce", input, dim, index, src)
    if x.dtype.is_complex and reduce in ("amax", "amin"):
        raise NotImplementedError(f"scatter_reduce(): complex numbers have no {reduce}")
    x, shape = _row_major(x), tuple(x.shape)
    if i.numel() == 0:
        return deliver(untouched(x, s), out, input, index, src, exact=True)
    if 0 in (x.dim(), i.dim(), s.dim()):  # scalars count as vectors
        x, i, s = (t.reshape((-1,)) for t in (x, i, s))
    found = _reduced(x, d, i, s, reduce, bool(include_self))
    found = found if found._a.shape == shape else found.reshape(shape)
    return deliver(found, out, input, index, src, exact=True)


def _reduced(
    x: Tensor, d: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    base = x
    if not include_self:
        one = x.new_ones(tuple(index.shape), dtype=D.bool_)
        touched = _scatter(x.new_zeros(tuple(x.shape), dtype=D.bool_), d, index, one)
        base = x.masked_fill(touched, _NEUTRAL[reduce](x))
    if reduce == "sum":
        return put_into(_scatter_add, base, d, index, src)
    if reduce == "mean":
        total = _scatter_add(base, d, index, src)
        one = x.new_ones(tuple(index.shape), dtype=D.int64)
        counts = x.new_full(tuple(x.shape), int(include_self), dtype=D.int64)
        counts = _scatter_add(counts, d, index, one).clamp(1)
        if x.dtype.fp:
            return total / counts
        return cast(total.div(counts, rounding_mode="floor"), x.dtype)
    taken = src[tuple(slice(0, n) for n in index.shape)]
    if reduce == "prod":
        found = None if is_half(x.dtype) else written_by("scatter_product", base, d, index, taken)
        if found is not None:
            return found
        return _folded(base, d, index, taken, Tensor.mul)
    return put_into(_scatter_extremum, base, d, index, taken, reduce == "amax")


_NEUTRAL: dict[str, Callable[[Tensor], Any]] = {
    "sum": lambda x: 0,
    "mean": lambda x: 0,
    "prod": lambda x: 1,
    "amax": lambda x: _limit(x, False),
    "amin": lambda x: _limit(x, True),
}


def _limit(x: Tensor, top: bool) -> float:
    if x.dtype.fp:
        return float("inf") if top else -float("inf")
    if x.dtype is D.bool_:
        return top
    return iinfo(x.dtype).max if top else iinfo(x.dtype).min


def _folded(
    x: Tensor, d: int, index: Tensor, src: Tensor, combine: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Each element combined with its entries of `src`, of the shape of `index`, in their order.

    By rounds, each of which takes one entry for every place that has one left.
    """
    if not index.numel():
        return x.clone()
    place = _flat_places(x, d, index)
    order = place.argsort(stable=True)
    place = place.index_select(0, order)
    first = place.new_ones((place.numel(),), dtype=D.bool_)
    first[1:] = place[1:] != place[:-1]
    begins, group = first.nonzero().reshape(-1), first.cumsum(0) - 1
    entry = arange(place.numel(), device=place.device)
    turn = entry - begins.index_select(0, group)
    # Places with the most entries first: those of a round are the first of the round before.
    longest = group.bincount().argsort(descending=True, stable=True)
    here = place.index_select(0, begins).index_select(0, longest)
    rank = (turn * here.numel() + longest.argsort().index_select(0, group)).argsort()
    rounds = src.reshape(-1).index_select(0, order.index_select(0, rank))
    result = x.reshape(-1)
    left, done = result.index_select(0, here), []
    for values in rounds.split(turn.bincount().tolist()):
        if values.numel() < left.numel():
            done.append(left[values.numel() :])
            left = left[: values.numel()]
        left = combine(left, values)
    new = cat([left, *reversed(done)])
    return OPS["index_put"](result, (here,), new, False).reshape(tuple(x.shape))


@composite
def _scatter_extremum(self: Tensor, dim: int, index: Tensor, src: Tensor, largest: bool) -> Tensor:
    """The maximum (or minimum) of each element and the entries of `src` whose index names it."""
    return _folded(self, dim, index, src, Tensor.maximum if largest else Tensor.minimum)


@_scatter_extremum.gradient("self", "src")
def _(F, g, self, dim, index, src, result):
    # Equal extrema share the gradient.
    mine = F.cast_like(F.eq(self, result), g)
    its = F.cast_like(F.eq(src, F.gather(result, dim, index)), g)
    share = F.div(g, F.scatter_add(mine, dim, index, its))
    return F.mul(share, mine), F.mul(F.gather(share, dim, index), its)


@_scatter_extremum.gradient("index")
def _(F, g):
    return None


def _flat_places(x: Tensor, d: int, index: Tensor) -> Tensor:
    total = index
    step = 1
    for i in reversed(range(x.dim())):
        if i == d:
            total = total + index * (step - 1)
        else:
            line = arange(index.shape[i], device=x.device) * step
            total = total + line.reshape((-1, *(1,) * (x.dim() - 1 - i)))
        step *= x.shape[i]
    return total.reshape(-1)


@public
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The elements at `indices` along `dim` (`gather` with broadcasting), or at flat positions.

    Along a dimension of n entries indices count modulo n.

    >>> import flambeau as fb
    >>> x = fb.tensor([[3, 1], [2, 4]])
    >>> fb.take_along_dim(x, x.argsort(1), 1)
    tensor([[1, 3],
            [2, 4]])
    """
    x, i = need_tensor(input, "take_along_dim", "input"), need_tensor(indices, "", "indices")
    if i.dtype is not D.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {i.dtype}"
        )
    if dim is None:
        return deliver(
            x.reshape(-1).gather(0, i.reshape(-1)),
            out,
            input,
            indices,
            exact=True,
            share="nothing",
        )
    if x.dim() != i.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {x.dim()} dimensions for input, and {i.dim()} dimensions for indices"
        )
    d = dim_of(dim, x.dim())
    if (n := x.shape[d]) and not is_within(i, n):
        i = i.remainder(n)
    rest, others = ((*t.shape[:d], *t.shape[d + 1 :]) for t in (x, i))
    if rest == others and out is None:
        return x.gather(d, i)
    common = broadcast_shapes(rest, others)
    wide = [(*common[:d], t.shape[d], *common[d:]) for t in (x, i)]
    return deliver(
        x.expand(wide[0]).gather(d, i.expand(wide[1])),
        out,
        input,
        indices,
        exact=True,
        share="nothing",
    )


def _written(x: Tensor, values: list[Any]) -> Tensor:
    for value in values:
        if not hasattr(value, "__float__") and not hasattr(value, "__complex__"):
            raise TypeError(f"must be real number, not {type(value).__name__}")
    return x.copy_(x.new_tensor(values).reshape(tuple(x.shape)))


@public(function=False)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it; slow, and without gradients.

    Raises:
        RuntimeError: the tensor requires a gradient.
        TypeError: the function gives something else than a number.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).apply_(lambda n: n + 1)
    tensor([2, 3])
    """
    x = need_tensor(input, "apply_", "input")
    if x.requires_grad:
        raise RuntimeError(
            "Can't call apply_() on Variable that requires grad. Use detach() first."
        )
    return _written(x, [callable(v) for v in x.reshape(-1).tolist()])


@public(function=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of the other tensor's element.

    Raises:
        RuntimeError: a tensor requires a gradient.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).map_(fb.tensor([3, 4]), lambda a, b: a * b)
    tensor([3, 8])
    """
    x, y = need_tensor(input, "map_", "input"), need_tensor(tensor, "map_", "tensor")
    if x.requires_grad or y.requires_grad:
        raise RuntimeError("Can't call map_() on Variable that requires grad. Use detach() first.")
    others = y.expand(tuple(x.shape)).reshape(-1).tolist()
    pairs = zip(x.reshape(-1).tolist(), others, strict=True)
    return _written(x, [callable(a, b) for a, b in pairs])


@public(function=False)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of the others' elements.

    Raises:
        RuntimeError: a tensor requires a gradient.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).map2_(fb.tensor([3, 4]), fb.tensor([5]), lambda a, b, c: a * b + c)
    tensor([ 8, 13])
    """
    needed = zip((input, x, y), ("input", "x", "y"), strict=True)
    tensors = [need_tensor(t, "map2_", name) for t, name in needed]
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(
            "Can't call map2_() on Variable that requires grad. Use var.detach().map2_() instead."
        )
    shape = tuple(tensors[0].shape)
    columns = [t.expand(shape).reshape(-1).tolist() for t in tensors]
    return _written(tensors[0], [callable(*row) for row in zip(*columns, strict=True)])


@public
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors are the same memory seen with the same shape, strides and offset.

    >>> import flambeau as fb
    >>> x = fb.ones(2)
    >>> x.is_set_to(x.view(2)), x.is_set_to(x.clone())
    (True, False)
    """
    x, y = need_tensor(input, "is_set_to", "input"), need_tensor(tensor, "is_set_to", "tensor")
    if x.device != y.device or x.dtype is not y.dtype:
        return False
    same = x is y or (x._st is not None and x._st is y._st)
    return same and (x.shape, x.stride(), x.storage_offset()) == (
        y.shape,
        y.stride(),
        y.storage_offset(),
    )
