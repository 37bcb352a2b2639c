"""Reductions: sums, products, extrema, variances and logarithms of sums of exponentials."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from flambeau._dispatch.arguments import dim_of, dims_of, need_input, need_tensor, reduced
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._dispatch.halves import is_half
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import Ints
from flambeau._types.spec import Spec
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite, primitive
from flambeau.ops.pointwise.complexes import real, view_as_real
from flambeau.ops.pointwise.elementwise import binary
from flambeau.ops.shapes.movement import cat

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas
    from flambeau.ops.declaration.table import Op


@named_tuple
class MaxMin(NamedTuple):
    """Extrema and where they are."""

    values: Tensor
    indices: Tensor


class max_return(MaxMin):  # noqa: N801
    """What `max` along a dimension returns."""


class min_return(MaxMin):  # noqa: N801
    """What `min` along a dimension returns."""


def spread(
    F: Formulas, a: Array, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool
) -> Array:
    """A reduced array `a` given back its reduced dimensions with size 1."""
    if keepdim or not shape:
        return a
    return F.reshape(a, tuple(1 if i in dim else n for i, n in enumerate(shape)))


def _need_elements(name: str, self: Tensor, dim: tuple[int, ...]) -> None:
    for d in dim:
        if self.shape[d] == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim {d} to have non-zero size, got shape "
                f"{list(self.shape)}"
            )


def _need_named(name: str, dim: Ints) -> None:
    if isinstance(dim, Sequence) and not dim:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )


def _need_order(name: str, x: Tensor) -> None:
    if x.dtype.is_complex:
        raise NotImplementedError(f"{name}(): complex numbers have no order, got {x.dtype}")


@primitive
def _sum(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Spec:
    return Spec(reduced(self.shape, dim, keepdim), self.dtype)


@_sum.gradient
def _(F, g, self_shape, dim, keepdim):
    if not g.shape:  # all dimensions were summed: expanding adds them in front
        return F.expand(g, self_shape)
    return F.expand(spread(F, g, self_shape, dim, keepdim), self_shape)


@composite(out=D.int64, differentiable=False)
def _count_nonzero(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    return _sum(cast(self != 0, D.int64), dim, keepdim)


@_count_nonzero.samples(D.bool_, D.float32, D.float64, D.int64, D.uint8)
def _(S):
    some = S.Arr((2, 3, 4), low=-1.5, high=1.5)
    return [
        S.Sample((some, (0, 1, 2), False), "all dimensions"),
        S.Sample((some, (1,), True), "middle, kept"),
        S.Sample((some, (0, 2), False), "first and last"),
        S.Sample((S.Arr((2, 0)), (1,), False), "of nothing"),
        S.Sample((S.Arr(()), (), False), "scalar"),
    ]


@composite
def _nansum(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The sum of the elements that are no nan."""
    return _sum(self.masked_fill(self != self, 0), dim, keepdim)


@_nansum.gradient
def _(F, g, self, dim, keepdim):
    whole = F.expand(spread(F, g, self.shape, dim, keepdim), self.shape)
    return F.mul(whole, F.cast_like(F.eq(self, self), g))


@_nansum.samples
def _(S):
    return [
        S.Sample((S.Arr((2, 3, 4)), (0, 1, 2), False), "all dimensions", True),
        S.Sample((S.Arr((2, 3, 4)), (1,), True), "middle, kept", True),
        S.Sample((S.Arr((3, 4)), (0,), False), "columns", True),
        S.Sample((S.Arr((3, 4)), (1,), False), "rows", True),
        S.Sample((S.Arr((2, 0)), (1,), False), "of nothing"),
    ]


@composite
def _mean(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    count = math.prod(self.shape[d] for d in dim)
    return _sum(self, dim, keepdim) / (count or float("nan"))


@_mean.gradient
def _(F, g, self_shape, dim, keepdim):
    count = math.prod(self_shape[d] for d in dim)
    g = F.div(g, F.scalar(builtins.max(count, 1), g))
    return F.expand(spread(F, g, self_shape, dim, keepdim), self_shape)


@primitive
def _prod(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Spec:
    return Spec(reduced(self.shape, dim, keepdim), self.dtype)


@_prod.gradient
def _(F, g, self, result, dim, keepdim):  # `result` only as in PyTorch: writing to it is refused
    g = spread(F, g, self.shape, dim, keepdim)
    return F.mul(g, F.prod_of_others(self, dim))


@composite
def _prod_of_others(self: Tensor, dim: tuple[int, ...]) -> Tensor:
    """The product of all reduced elements but each one; exact also where some are zero."""
    shape = self.shape
    keep = tuple(d for d in range(len(shape)) if d not in dim)
    order = keep + dim
    count = math.prod(shape[d] for d in dim)
    flat = self.permute(order).reshape((*(shape[d] for d in keep), count))
    # products before and after each element
    ones = flat.new_ones((*flat.shape[:-1], 1))
    if count == 0:
        return self
    cumprod = OPS["cumprod"]
    left = cumprod(_cat([ones, flat[..., :-1]]), len(keep))
    right = cumprod(_cat([ones, flat.flip(-1)[..., :-1]]), len(keep)).flip(-1)
    inverse = [0] * len(order)
    for i, d in enumerate(order):
        inverse[d] = i
    return (left * right).reshape(tuple(shape[d] for d in order)).permute(inverse)


def _cat(parts: list[Tensor]) -> Tensor:
    return cat(parts, -1)


@_prod_of_others.gradient
def _(F, g, self, dim):
    # d/dx_j of sum_i g_i prod_{k!=i} x_k: leave element j out, then weight the products of others.
    shape = self.shape
    keep = tuple(d for d in range(len(shape)) if d not in dim)
    order = keep + dim
    count = math.prod(shape[d] for d in dim)
    if not count:
        return F.zeros(shape, g)
    size = (*(shape[d] for d in keep), count)
    x, g = (F.reshape(F.permute(a, order), size) for a in (self, g))
    last = len(keep)
    columns = []
    for j in range(count):
        rest, weights = (
            F.cat([_part(F, a, last, 0, j), _part(F, a, last, j + 1, count)], last) for a in (x, g)
        )
        others = F.prod_of_others(rest, (last,))
        columns.append(F.sum(F.mul(weights, others), (last,), True))
    inverse = [0] * len(order)
    for i, d in enumerate(order):
        inverse[d] = i
    return F.permute(
        F.reshape(F.cat(columns, last), tuple(shape[d] for d in order)), tuple(inverse)
    )


def _part(F: Formulas, a: Array, dim: int, start: int, stop: int) -> Array:
    """Entries `start` to `stop` of one dimension."""
    items = [slice(0, n, 1) for n in a.shape]
    items[dim] = slice(start, stop, 1)
    return F.slice(a, tuple(items))


@primitive
def _amax(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Spec:
    _need_elements("amax", self, dim)
    return Spec(reduced(self.shape, dim, keepdim), self.dtype)


@primitive
def _amin(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Spec:
    _need_elements("amin", self, dim)
    return Spec(reduced(self.shape, dim, keepdim), self.dtype)


def _extremum_gradient(F, g, self, result, dim, keepdim):
    # Equal extrema share the gradient.
    top = spread(F, result, self.shape, dim, keepdim)
    mask = F.cast_like(F.eq(self, top), g)
    share = F.div(mask, F.sum(mask, dim, True)) if dim else mask
    return F.mul(spread(F, g, self.shape, dim, keepdim), share)


_amax.gradient(_extremum_gradient)
_amin.gradient(_extremum_gradient)


@primitive(out=D.int64, differentiable=False)
def _argmax(self: Tensor, dim: int, keepdim: bool) -> Spec:
    _need_elements("argmax", self, (dim,) if self.shape else ())
    return Spec(reduced(self.shape, (dim,), keepdim), D.int64)


@primitive(out=D.int64, differentiable=False)
def _argmin(self: Tensor, dim: int, keepdim: bool) -> Spec:
    _need_elements("argmin", self, (dim,) if self.shape else ())
    return Spec(reduced(self.shape, (dim,), keepdim), D.int64)


@composite(results=2)
def _extremum(self: Tensor, dim: int, keepdim: bool, largest: bool) -> tuple[Tensor, Tensor]:
    """The largest (or smallest) elements along `dim` and their places, the first of equals."""
    ordered = cast(self, D.uint8) if self.dtype is D.bool_ else self
    indices = (_argmax if largest else _argmin)(ordered, dim, True)
    values = OPS["gather"](self, dim, indices)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


@_extremum.gradient
def to_places(F, g, result1, self_shape, dim, keepdim):
    """The gradient of elements that were selected along `dim`, at their places."""
    index, g = (spread(F, a, self_shape, (dim,), keepdim) for a in (result1, g[0]))
    return F.scatter(F.zeros(self_shape, g), dim, index, g)


@primitive(out=D.bool_, differentiable=False)
def _all(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Spec:
    return Spec(reduced(self.shape, dim, keepdim), D.bool_)


@primitive(out=D.bool_, differentiable=False)
def _any(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Spec:
    return Spec(reduced(self.shape, dim, keepdim), D.bool_)


@composite(out=D.bool_, differentiable=False)
def _equal(self: Tensor, other: Tensor) -> Tensor:
    """Whether all elements of two arrays of one shape and dtype are equal."""
    return _all(self == other, tuple(range(self.dim())), False)


@_equal.samples(D.bool_, D.float32, D.float64, D.int64, D.float16)
def _(S):
    some = S.Arr((2, 3), low=-2, high=2)
    nan = S.Arr((2,), kind="literal", literal=(1.0, 0.0))
    return [
        S.Sample((some, some), "equal"),
        S.Sample((some, S.Arr((2, 3), seed=1, low=-2, high=2)), "others"),
        S.Sample((S.Arr((2, 2), low=0, high=1), S.Arr((2, 2), seed=1, low=0, high=1)), "few"),
        S.Sample((S.Arr((0, 3)), S.Arr((0, 3))), "nothing"),
        S.Sample((S.Arr(()), S.Arr(())), "scalars"),
        S.Sample((nan, nan), "literals"),
    ]


@composite(out=None)
def _var(self: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool) -> Tensor:
    count = math.prod(self.shape[d] for d in dim)
    centred = self - _mean(self, dim, True)
    total = _sum(centred * centred, dim, keepdim)
    rest = builtins.max(count - correction, 0)
    return total / rest if rest else total * float("inf") if count else total / 0.0


@_var.gradient
def _(F, g, self, dim, correction, keepdim):
    count = math.prod(self.shape[d] for d in dim)
    rest = builtins.max(count - correction, 0)
    g = spread(F, g, self.shape, dim, keepdim)
    centred = F.sub(self, F.mean(self, dim, True))
    factor = 2.0 / rest if rest else float("nan")
    return F.mul(F.mul(g, F.scalar(factor, g)), centred)


@composite
def _logsumexp(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    if builtins.any(self.shape[d] == 0 for d in dim):
        return _sum(self.exp(), dim, keepdim).log()
    # The logarithm of a complex sum has an angle of its own: what is added to it is real.
    top = _amax(real(self) if self.dtype.is_complex else self, dim, True)
    top = (top.abs() != float("inf")) * 1 * top.masked_fill(top.abs() == float("inf"), 0)
    total = _sum((self - top).exp(), dim, keepdim).log()
    return total + (top if keepdim else top.reshape(total.shape))


@_logsumexp.gradient
def _(F, g, self, result, dim, keepdim):
    top = spread(F, result, self.shape, dim, keepdim)
    return F.mul(spread(F, g, self.shape, dim, keepdim), F.exp(F.sub(self, top)))


def accumulated(x: Tensor, dtype: DType | None, out: Tensor | None = None) -> Tensor:
    """`x` in the dtype in which it is summed: `dtype`, that of `out`, or int64 for integers."""
    if dtype is None:
        dtype = out.dtype if isinstance(out, Tensor) else D.int64
        if out is None and x.dtype.category > 1:
            return x
    return cast(x, dtype)


@public
def sum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum of all elements, or along one or several dimensions.

    Integers and bools are summed in int64; `dtype` casts first.

    >>> import flambeau as fb
    >>> fb.sum(fb.tensor([[1, 2], [3, 4]]), 0)
    tensor([4, 6])
    """
    if type(input) is Tensor and out is None:
        return input.sum(dim, keepdim, dtype=dtype)
    return summed(input, dim, keepdim, dtype, out)


def summed(
    input: Tensor, dim: object, keepdim: bool, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    """`sum` of what the method does not take at once."""
    x = need_input(input, "sum", "input")
    if x.dtype is D.bool_ and out is None and (dtype is None or dtype is D.int64):
        return _count_nonzero.run(x, dims_of(dim, x.dim()), keepdim)
    x = accumulated(x, dtype, out)
    dims = dims_of(dim, x.dim())
    return deliver(_sum(x, dims, keepdim), out, input, exact=True, share="anything")


@public
def mean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The arithmetic mean of all elements, or along dimensions.

    Raises:
        RuntimeError: the dtype is not floating or complex.

    >>> import flambeau as fb
    >>> fb.mean(fb.tensor([1.0, 3.0]))
    tensor(2.)
    """
    if type(input) is Tensor and out is None:
        return input.mean(dim, keepdim, dtype=dtype)
    return averaged(input, dim, keepdim, dtype, out)


def averaged(
    input: Tensor, dim: object, keepdim: bool, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    """`mean` of what the method does not take at once."""
    x = need_input(input, "mean", "input")
    if dtype is not None:
        x = cast(x, dtype)
    if x.dtype.category < 2:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {x.dtype}"
        )
    return deliver(_mean(x, dims_of(dim, x.dim()), keepdim), out, input, share="anything")


@public
def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The product of all elements, or along one dimension.

    >>> import flambeau as fb
    >>> fb.prod(fb.tensor([2, 3]))
    tensor(6)
    """
    x = accumulated(need_input(input, "prod", "input"), dtype, out)
    result = _prod.run(x, dims_of(dim, len(x._a.shape)), keepdim)
    return result if out is None else deliver(result, out, input, exact=True, share="anything")


@public
def amax(
    input: Tensor, dim: Ints = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The largest element along dimensions; equal maxima share the gradient.

    >>> import flambeau as fb
    >>> fb.amax(fb.tensor([[1, 5], [3, 4]]), 1)
    tensor([5, 4])
    """
    x = need_input(input, "amax", "input")
    dims = dims_of(dim, len(x._a.shape))
    if 0 in x._a.shape:
        _need_named("amax", dim)
        _need_elements("amax", x, dims)
    _need_order("amax", x)
    result = _amax.run(x, dims, keepdim)
    return result if out is None else deliver(result, out, input, exact=True, share="anything")


@public
def amin(
    input: Tensor, dim: Ints = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The smallest element along dimensions; equal minima share the gradient.

    >>> import flambeau as fb
    >>> fb.amin(fb.tensor([[1, 5], [3, 4]]), 1)
    tensor([1, 3])
    """
    x = need_input(input, "amin", "input")
    dims = dims_of(dim, len(x._a.shape))
    if 0 in x._a.shape:
        _need_named("amin", dim)
        _need_elements("amin", x, dims)
    _need_order("amin", x)
    result = _amin.run(x, dims, keepdim)
    return result if out is None else deliver(result, out, input, exact=True, share="anything")


def _arg(op: Op, input: Tensor, dim: int | None, keepdim: bool, out: Tensor | None) -> Tensor:
    name = op.name
    x = input if type(input) is Tensor else need_tensor(input, name, "input")
    if x.dtype.is_complex:
        raise RuntimeError(f"{name}(): does not support complex input")
    if x.dtype is D.bool_:
        x = cast(x, D.uint8)
    be, a = x._be, x._a
    rank = len(a.shape)
    if rank != 1 and (dim is None or not rank):
        if dim is None and 0 in a.shape:
            raise _no_elements(name)
        if dim is not None:
            dim_of(dim, rank)
        found = op.run(wrap(be, be.flat(a), x.dtype), 0, False)
        if keepdim and dim is None:
            found = wrap(be, be.reshape(found._a, (1,) * rank), found.dtype)
    elif dim is None:
        if 0 in a.shape:
            raise _no_elements(name)
        found = op.run(x, 0, keepdim)
    else:
        found = op.run(x, dim_of(dim, rank), keepdim)
    return found if out is None else deliver(found, out, input, exact=True, share="anything")


def _no_elements(name: str) -> IndexError:
    return IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")


@public
def argmax(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Index of the largest element (the first of equals; nan is largest), flat or along `dim`.

    >>> import flambeau as fb
    >>> fb.argmax(fb.tensor([3, 7, 7]))
    tensor(1)
    """
    return _arg(_argmax, input, dim, keepdim, out)


@public
def argmin(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Index of the smallest element (the first of equals), flat or along `dim`.

    >>> import flambeau as fb
    >>> fb.argmin(fb.tensor([3, 2, 2]))
    tensor(1)
    """
    return _arg(_argmin, input, dim, keepdim, out)


def extreme(name: str, input: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`max` or `min` of what the method does not take at once."""
    out = kwargs.pop("out", None)
    if "other" in kwargs or (args and isinstance(args[0], Tensor)):
        other = kwargs["other"] if "other" in kwargs else args[0]
        if type(input) is Tensor is type(other) and out is None:
            return input.maximum(other) if name == "max" else input.minimum(other)
        need_input(input, name, "input")
        return deliver(
            binary("maximum" if name == "max" else "minimum", input, other), out, input, other
        )
    x = need_input(input, name, "input")
    reduce = _amax if name == "max" else _amin
    dim = kwargs.pop("dim", args[0] if args else None)
    keepdim = kwargs.pop("keepdim", args[1] if len(args) > 1 else False)
    if kwargs:
        raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(kwargs))!r}")
    shape = x._a.shape
    if dim is None:
        if 0 in shape:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                "the reduction dim with the 'dim' argument."
            )
        _need_order(name, x)
        result = reduce(x, tuple(range(len(shape))), False)
        return result if out is None else deliver(result, out, input, share="anything")
    d = dim_of(dim, len(shape))
    if shape and shape[d] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    if x.dtype.is_complex:
        raise RuntimeError(f"{name}(): does not support complex input; complex has no order")
    if shape:
        values, indices = _extremum.run(x, d, bool(keepdim), name == "max")
    else:
        values, indices = x.clone(), x.new_zeros((), dtype=D.int64)
    found = tuple.__new__(max_return if name == "max" else min_return, (values, indices))
    if out is None:
        return found
    return deliver_all(found, out, input, exact=True, share="anything")


@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(
    input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None
) -> max_return: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@public
def max(input: Tensor, *args: object, **kwargs: object) -> Tensor | max_return:
    """The largest element; ``max(input, dim, keepdim=False)`` gives (values, indices) along `dim`;
    ``max(input, other)`` is `maximum`.

    >>> import flambeau as fb
    >>> fb.max(fb.tensor([[1, 5], [3, 4]]), 1).values
    tensor([5, 4])
    """
    if type(input) is Tensor:
        return input.max(*args, **kwargs)
    return extreme("max", input, args, kwargs)


@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(
    input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None
) -> min_return: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@public
def min(input: Tensor, *args: object, **kwargs: object) -> Tensor | min_return:
    """The smallest element; ``min(input, dim, keepdim=False)`` gives (values, indices) along `dim`;
    ``min(input, other)`` is `minimum`.

    >>> import flambeau as fb
    >>> fb.min(fb.tensor([[1, 5], [3, 4]]), 1).indices
    tensor([0, 0])
    """
    if type(input) is Tensor:
        return input.min(*args, **kwargs)
    return extreme("min", input, args, kwargs)


@public(function_only=())
def all(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Whether all elements are nonzero; True for none.

    >>> import flambeau as fb
    >>> fb.all(fb.tensor([True, False]))
    tensor(False)
    """
    x = input if type(input) is Tensor else need_tensor(input, "all", "input")
    found = _all.run(_are_true(x), dims_of(dim, len(x._a.shape)), keepdim)
    return _truth("all", x, found, out)


@public(function_only=())
def any(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Whether some element is nonzero; False for none.

    >>> import flambeau as fb
    >>> fb.any(fb.tensor([True, False]))
    tensor(True)
    """
    x = input if type(input) is Tensor else need_tensor(input, "any", "input")
    found = _any.run(_are_true(x), dims_of(dim, len(x._a.shape)), keepdim)
    return _truth("any", x, found, out)


def _are_true(x: Tensor) -> Tensor:
    # A comparison takes less than a cast.
    return x != 0 if type(x) is Tensor and x.dtype.fp else cast(x, D.bool_)


def _truth(name: str, x: Tensor, found: Tensor, out: Tensor | None) -> Tensor:
    # Bytes have stood for truth values once: their answer is in bytes, and `out` may be.
    if out is None:
        return cast(found, D.uint8) if x.dtype is D.uint8 else found
    if isinstance(out, Tensor) and out.dtype not in (D.bool_, D.uint8):
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {out.dtype}")
    return deliver(found, out, x, share="anything")


def _correction(unbiased: object, correction: Any) -> float:
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


@public
def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The variance: squared deviations from the mean, summed and divided by n - correction.

    >>> import flambeau as fb
    >>> fb.var(fb.tensor([1.0, 3.0])), fb.var(fb.tensor([1.0, 3.0]), unbiased=False)
    (tensor(2.), tensor(1.))
    """
    x = need_input(input, "var", "input")
    if isinstance(dim, bool):  # the old form var(input, unbiased)
        dim, unbiased = None, dim
    if x.dtype.category < 2:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    dims = dims_of(dim, x.dim())
    if x.dtype.is_complex:  # the squared distance from the mean, hence the sum over both parts
        parts = _var.run(view_as_real(x), dims, _correction(unbiased, correction), keepdim)
        return deliver(parts.sum(-1), out, input, share="anything")
    return deliver(
        _var.run(x, dims, _correction(unbiased, correction), keepdim), out, input, share="anything"
    )


@public
def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation, the square root of `var`.

    >>> import flambeau as fb
    >>> fb.std(fb.tensor([1.0, 3.0]), unbiased=False)
    tensor(1.)
    """
    x = need_tensor(input, "std", "input")
    half = is_half(x.dtype)  # the root is rounded, and not what it is taken from
    wide = cast(x, D.float32) if half else x
    squared = var(wide, dim, unbiased, keepdim, correction=correction)
    if squared.requires_grad:
        zero = squared == 0  # the root has no slope there; PyTorch's gradient is 0
        root = squared.masked_fill(zero, 1).sqrt().masked_fill(zero, 0)
    else:
        root = squared.sqrt()
    return deliver(cast(root, x.dtype) if half else root, out, input, share="anything")


@public(method=False)
def var_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean.

    >>> import flambeau as fb
    >>> fb.var_mean(fb.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


@public(method=False)
def std_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean.

    >>> import flambeau as fb
    >>> fb.std_mean(fb.tensor([1.0, 3.0]), unbiased=False)
    (tensor(1.), tensor(2.))
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


@public
def logsumexp(
    input: Tensor, dim: Ints, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """log(sum(exp(input))) along dimensions, without overflow.

    >>> import flambeau as fb
    >>> fb.logsumexp(fb.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    x = need_input(input, "logsumexp", "input")
    if not x.dtype.fp:
        x = cast(x, D.get_default_dtype())
    return deliver(_logsumexp.run(x, dims_of(dim, x.dim()), keepdim), out, input, share="anything")
