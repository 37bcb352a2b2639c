"""Order statistics: medians, modes, quantiles, and reductions that skip nan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import check_values, dim_of, dims_of, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.finfo import iinfo
from flambeau._types.hints import Ints
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.reductions.reduction import to_places
from flambeau.ops.shapes.movement import cat

if TYPE_CHECKING:
    from flambeau.ops.declaration.table import Op


@named_tuple
class _Found(NamedTuple):
    values: Tensor
    indices: Tensor


class median_return(_Found):  # noqa: N801
    """What `median` along a dimension returns."""


class nanmedian_return(_Found):  # noqa: N801
    """What `nanmedian` along a dimension returns."""


class mode_return(_Found):  # noqa: N801
    """What `mode` returns."""


class kthvalue_return(_Found):  # noqa: N801
    """What `kthvalue` returns."""


@named_tuple
class aminmax_return(NamedTuple):  # noqa: N801
    """What `aminmax` returns."""

    min: Tensor
    max: Tensor


@composite
def _median(self: Tensor, ignore_nan: bool) -> Tensor:
    """The lower median of a vector: nan if there is one, or the median of the others."""
    n = self.numel()
    ordered = OPS["sort"](self, 0, False, True)[0]
    if not self.dtype.is_floating_point:
        return ordered[(n - 1) // 2].clone()
    missing = cast(self != self, D.int64).sum()
    if ignore_nan:
        place = ((n - missing - 1) // 2).clamp(0)
        return ordered.gather(0, place.reshape(1)).reshape(())
    return where(missing > 0, ordered[n - 1], ordered[(n - 1) // 2])


@_median.gradient
def _(F, g, self, result):
    # Equal elements share the gradient, and so do the nan if the median is one.
    equal = F.eq(self, result)
    missing = F.bitwise_and(F.ne(self, self), F.ne(result, result))
    mask = F.cast_like(F.bitwise_or(equal, missing), g)
    return F.mul(g, F.div(mask, F.sum(mask, (0,), False)))


def _along(name: str, input: Tensor, dim: Any) -> int:
    """The dimension `dim` of the input, which must not be empty."""
    shape = (input if type(input) is Tensor else need_tensor(input, name, "input"))._a.shape
    d = dim_of(dim, len(shape))
    if shape and shape[d] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    return d


def _selected(op: Op, kind: Any, x: Tensor, d: int, keepdim: bool, out: Any, *rest: Any) -> Any:
    """The result of a reduction that selects: elements along a dimension and their places."""
    if x._a.shape:
        found = tuple.__new__(kind, op.run(x, d, bool(keepdim), *rest))
    else:
        found = kind(*op.run(x.reshape(1), 0, False, *rest))
    if out is None:
        return found
    share = "nothing" if kind is kthvalue_return else "anything"
    return deliver_all(found, out, x, exact=True, share=share)


def _order(x: Tensor, d: int) -> tuple[Tensor, Tensor]:
    return OPS["sort"](x.detach(), d, False, True)


def _taken(self: Tensor, dim: int, keepdim: bool, places: Tensor) -> tuple[Tensor, Tensor]:
    """The elements at `places`, which keep `dim` as 1, and these."""
    values, places = OPS["gather"](self, dim, places), places.contiguous()
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


@composite(results=2)
def _kthvalue(self: Tensor, dim: int, keepdim: bool, k: int) -> tuple[Tensor, Tensor]:
    """The k-th smallest elements along `dim`, from 1, and where a stable order has them."""
    return _taken(self, dim, keepdim, OPS["topk"](self, k, dim, False)[1].narrow(dim, k - 1, 1))


@composite(results=2, title="MedianBackward1")
def _median_along(self: Tensor, dim: int, keepdim: bool, ignore_nan: bool) -> tuple[Tensor, Tensor]:
    """The lower medians along `dim` and their places; the first nan, unless these are ignored."""
    n = self.shape[dim]
    order = _order(self, dim)[1]
    places = order.narrow(dim, (n - 1) // 2, 1)
    if self.dtype.is_floating_point:
        missing = self.isnan().sum(dim, True)
        if ignore_nan:
            places = order.gather(dim, ((n - missing - 1) // 2).clamp(0))
        else:  # the first nan is the first of the last `missing` entries
            first = order.gather(dim, (n - missing).clamp(0, n - 1))
            places = where(missing > 0, first, places)
    return _taken(self, dim, keepdim, places)


@composite(results=2)
def _mode(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The most frequent elements along `dim`, of several the smallest, and their last places."""
    n, shape = self.shape[dim], tuple(self.shape)
    ordered, order = _order(self, dim)
    starts = cast(ordered.narrow(dim, 1, n - 1) != ordered.narrow(dim, 0, n - 1), D.int64)
    first = ordered.narrow(dim, 0, 1)
    runs = cat([first.new_zeros(tuple(first.shape), dtype=D.int64), starts.cumsum(dim)], dim)
    counts = runs.new_zeros(shape).scatter_add(dim, runs, runs.new_ones(shape))
    longest = counts.argmax(dim, True)
    last = (runs <= longest).sum(dim, True) - 1
    return _taken(self, dim, keepdim, order.gather(dim, last))


_kthvalue.gradient(to_places)
_median_along.gradient(to_places)
_mode.gradient(to_places)


@_kthvalue.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [
        S.Sample((S.Arr((3, 5), kind="distinct"), 1, False, 4), "of rows", True),
        S.Sample((S.Arr((5, 3), low=0, high=2), 0, False, 3), "ties in columns"),
        S.Sample((S.Arr((2, 5, 3), low=0, high=2), 1, True, 5), "the last of the middle"),
        S.Sample((S.Arr((0, 3)), 1, False, 2), "empty result"),
        S.Sample((S.Arr((3, 2), kind="distinct"), 0, True, 1), "the least, kept", True),
        *[
            S.Sample((S.Arr((9, 2), low=0, high=5), 0, k % 2 == 0, k + 1), f"{k} of nine")
            for k in range(9)
        ],
    ]


@_median_along.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [
        S.Sample((array, dim, keeps, ignores), f"{name}, {'without' if ignores else 'with'} nan", g)
        for ignores in (False, True)
        for array, dim, keeps, name, g in (
            (S.Arr((3, 5), kind="distinct"), 1, False, "of rows", True),
            (S.Arr((6, 3), low=0, high=2), 0, False, "ties in columns", False),
            (S.Arr((9, 7), kind="distinct"), 0, True, "of columns", True),
            (S.Arr((0, 3)), 1, False, "empty result", False),
        )
    ]


@_mode.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [
        S.Sample((S.Arr((3, 9), low=0, high=3), 1, False), "of rows"),
        S.Sample((S.Arr((9, 4), low=0, high=3), 0, True), "of columns"),
        S.Sample((S.Arr((2, 7, 3), low=0, high=2), 1, False), "of the middle"),
        S.Sample((S.Arr((9, 7), low=0, high=4), 0, False), "of more columns"),
        S.Sample((S.Arr((40, 3), low=0, high=9), 0, False), "of long columns"),
        S.Sample((S.Arr((3, 4), kind="distinct"), 1, True), "of distinct elements", True),
        S.Sample((S.Arr((0, 3)), 1, False), "empty result"),
    ]


# What earlier backends offer: where what the three ops above select is, kept as 1.
@composite(out=D.int64, differentiable=False)
def _kth_place(self: Tensor, k: int, dim: int) -> Tensor:
    return _kthvalue(self, dim, True, k + 1)[1]


@composite(out=D.int64, differentiable=False)
def _median_place(self: Tensor, dim: int, ignore_nan: bool) -> Tensor:
    return _median_along(self, dim, True, ignore_nan)[1]


@composite(out=D.int64, differentiable=False)
def _mode_place(self: Tensor, dim: int) -> Tensor:
    return _mode(self, dim, True)[1]


@_kth_place.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [S.Sample((S.Arr((3, 5), kind="distinct"), 3, 1), "of rows")]


@_median_place.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [S.Sample((S.Arr((9, 7), kind="distinct"), 0, False), "of columns")]


@_mode_place.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [S.Sample((S.Arr((9, 4), low=0, high=3), 0), "of columns")]


def _medians(name: str, kind: Any, input: Tensor, dim: int | None, keepdim: bool, out: Any) -> Any:
    need_tensor(input, name, "input")
    d = 0 if dim is None else _along(name, input, dim)
    if dim is not None and input.dtype.category in (1, 2):
        return _selected(_median_along, kind, input, d, keepdim, out, name == "nanmedian")
    if input.dtype.is_complex and input.requires_grad and not input.numel() and dim is None:
        raise RuntimeError(
            f"{name} does not support automatic differentiation for outputs with complex dtype."
        )
    if input.dtype is D.bool_ or input.dtype.is_complex:
        raise NotImplementedError(f'"median_cpu" not implemented for {input.dtype}')
    if input.numel() == 0:
        if not input.dtype.is_floating_point:
            return deliver(input.new_full((), _lowest(input)), out, input)
        return deliver(input.sum() * math.nan, out, input)
    flat = input if len(input._a.shape) == 1 else input.reshape(-1)
    found = _median.run(flat, name == "nanmedian")
    return found if out is None else deliver(found, out, input)


def _lowest(x: Tensor) -> int:
    return iinfo(x.dtype).min


@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(
    input: Tensor,
    dim: int,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
    values: Tensor | None = None,
    indices: Tensor | None = None,
) -> median_return: ...
@public(function_only=("out", "values", "indices"))
def median(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
    values: Tensor | None = None,
    indices: Tensor | None = None,
) -> Tensor | median_return:
    """The lower median of all elements, or along `dim` with its index; nan if there is a nan.

    Raises:
        IndexError: the dimension is empty or out of range.

    >>> import flambeau as fb
    >>> fb.median(fb.tensor([4, 1, 3, 2]))
    tensor(2)
    >>> fb.median(fb.tensor([[3, 1, 2]]), 1).indices
    tensor([2])
    """
    if values is not None and indices is not None:
        out = values, indices
    return _medians("median", median_return, input, dim, keepdim, out)


@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(
    input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None
) -> nanmedian_return: ...
@public
def nanmedian(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> Tensor | nanmedian_return:
    """The lower median of the elements that are no nan, of all or along `dim` with its index.

    >>> import flambeau as fb
    >>> fb.nanmedian(fb.tensor([1.0, float("nan"), 3.0, 2.0]))
    tensor(2.)
    """
    return _medians("nanmedian", nanmedian_return, input, dim, keepdim, out)


@public
@takes_as_annotated
def kthvalue(
    input: Tensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> kthvalue_return:
    """The k-th smallest element along `dim`, counted from 1, and its index; nan counts as largest.

    Raises:
        RuntimeError: `k` is not between 1 and the size.

    >>> import flambeau as fb
    >>> fb.kthvalue(fb.tensor([30, 10, 20]), 2).values
    tensor(20)
    """
    d = _along("kthvalue", input, dim)
    size = (input._a.shape or (1,))[d]
    if not 1 <= k <= size:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {d}: k = {k}, size {size}"
        )
    return _selected(_kthvalue, kthvalue_return, input, d, keepdim, out, k)


@public(function_only=("out", "values", "indices"))
def mode(
    input: Tensor,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
    values: Tensor | None = None,
    indices: Tensor | None = None,
) -> mode_return:
    """The most frequent element along `dim`, of several the smallest, and its last index.

    Raises:
        IndexError: the dimension is empty or out of range.

    >>> import flambeau as fb
    >>> fb.mode(fb.tensor([3, 1, 2, 1])).values
    tensor(1)
    """
    if values is not None and indices is not None:
        out = values, indices
    return _selected(_mode, mode_return, input, _along("mode", input, dim), keepdim, out)


@public
@takes_as_annotated
def quantile(
    input: Tensor,
    q: Tensor | float | Sequence[float],
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The q-quantiles, of all elements or along `dim`; nan if there is a nan.

    `q` is a number in [0, 1], or a vector of them, which becomes the first dimension of the result.
    Between two elements decides `interpolation`: "linear", "lower", "higher", "nearest" or
    "midpoint".

    Raises:
        RuntimeError: a wrong dtype, `q` outside of [0, 1], no elements, or another interpolation.

    >>> import flambeau as fb
    >>> fb.quantile(fb.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out)


@public
@takes_as_annotated
def nanquantile(
    input: Tensor,
    q: Tensor | float | Sequence[float],
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """`quantile` of the elements that are no nan; nan where there are no others.

    >>> import flambeau as fb
    >>> fb.nanquantile(fb.tensor([float("nan"), 1.0, 2.0]), 0.5)
    tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out)


def _quantile(
    name: str,
    input: Tensor,
    q: Any,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    out: Tensor | None,
) -> Tensor:
    ignore_nan, is_number = name == "nanquantile", False
    x = need_tensor(input, name, "input")
    if x.dtype not in (D.float32, D.float64):
        raise RuntimeError(
            f"{name}() input tensor must be either float or double dtype, got {x.dtype}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        is_number, q = True, x.new_tensor(q)
    elif q.dtype is not x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input, got {q.dtype}")
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, got {q.dim()}D")
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if not is_number:
        check_values(q.detach(), 0.0, 1.0, f"{name}() q values must be in the range [0, 1]")
    if x.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    shape = tuple(x.shape)
    d = 0 if dim is None else dim_of(dim, x.dim())
    flat = x.reshape(-1) if dim is None or not x.dim() else x.movedim(d, -1)
    ordered = OPS["sort"](flat, flat.dim() - 1, False, True)[0]
    n = ordered.shape[-1]
    if ignore_nan:  # they come last, and a row of nothing else has its first for an answer
        count = cast(~flat.isnan(), x.dtype).sum(-1, True)
        places = q.reshape(-1) * (count - 1).clamp_min(0)
    else:
        places = q.reshape(-1) * (n - 1)
        missing = ordered.detach().narrow(-1, n - 1, 1).isnan()  # they come last
        places = where(missing, places.new_full((), n - 1), places)
    if interpolation == "nearest":
        places = places.round()
    low, high = places.floor(), places.ceil()
    if interpolation == "higher":
        low = high
    result = ordered.gather(-1, cast(low, D.int64))
    if interpolation in ("linear", "midpoint"):
        weight = 0.5 * cast(high > low, x.dtype) if interpolation == "midpoint" else places - low
        result = result + weight * (ordered.gather(-1, cast(high, D.int64)) - result)
    result = result.movedim(-1, 0)
    if keepdim:
        kept = tuple(1 if dim is None or i == d else n for i, n in enumerate(shape))
        result = result.reshape((result.shape[0], *kept))
    return deliver(
        result.squeeze(0) if q.dim() == 0 else result, out, input, exact=True, share="anything"
    )


@public
def nansum(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, dtype: D.dtype | None = None
) -> Tensor:
    """The sum of the elements that are no nan, of all or along dimensions.

    >>> import flambeau as fb
    >>> fb.nansum(fb.tensor([1.0, float("nan")]))
    tensor(1.)
    """
    x = need_tensor(input, "nansum", "input")
    if not x.dtype.is_floating_point:
        return x.sum(dim, keepdim, dtype=dtype)
    if dtype is None or (type(dtype) is D.dtype and dtype.is_floating_point):
        x = x if dtype is None else cast(x, dtype)
        return OPS["nansum"].run(x, dims_of(dim, x.dim()), keepdim)
    return x.masked_fill(x.isnan(), 0).sum(dim, keepdim, dtype=dtype)


@public
def nanmean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: D.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that are no nan, of all or along dimensions.

    >>> import flambeau as fb
    >>> fb.nanmean(fb.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    x = need_tensor(input, "nanmean", "input")
    if not x.dtype.fp:
        raise RuntimeError(f"nanmean(): expected input to be floating point, but got {x.dtype}")
    count = (x == x).sum(dim, keepdim)
    return deliver(nansum(x, dim, keepdim, dtype=dtype) / count, out, input, share="anything")


@public
def aminmax(
    input: Tensor,
    *,
    dim: int | None = None,
    keepdim: bool = False,
    out: Sequence[Tensor] | None = None,
) -> aminmax_return:
    """The smallest and the largest element, of all or along `dim`.

    >>> import flambeau as fb
    >>> fb.aminmax(fb.tensor([3, 1, 2])).max
    tensor(3)
    """
    x = need_tensor(input, "aminmax", "input")
    dims = () if dim is None else dim
    return deliver_all(
        aminmax_return(x.amin(dims, keepdim), x.amax(dims, keepdim)),
        out,
        input,
        exact=True,
        share="anything",
    )
