"""Order statistics: medians, modes, quantiles, and reductions that skip nan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import check_values, dim_of, dims_of, need_tensor
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.finfo import iinfo
from flambeau._types.hints import Ints
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import cat


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


def _entries(name: str, input: Tensor, dim: int) -> tuple[Tensor, int]:
    """The input, a scalar as a vector, and the dimension, which must not be empty."""
    x = need_tensor(input, name, "input")
    d = dim_of(dim, x.dim())
    if x.dim() and x.shape[d] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    return (x if x.dim() else x.reshape(1)), d


def _taken(kind: Any, input: Tensor, d: int, indices: Tensor, keepdim: bool, out: object) -> Any:
    """The result of a reduction that selects: the elements at `indices`, which keep `d` as 1."""
    x = input if input.dim() else input.reshape(1)
    be = x._be
    if out is None and be.strided and not (_dispatch.modes or (x._rg and recording())):
        found, places = be.gather(x._a, d, indices._a), indices._a
        if not (keepdim and input.dim()):
            shape = x._a.shape
            shape = (*shape[:d], *shape[d + 1 :])
            found, places = be.view(found, shape), be.contiguous(places)
            places = be.view(places, shape)
        return kind(wrap(be, found, x.dtype), wrap(be, places, D.int64))
    indices = indices.contiguous()
    values = x.gather(d, indices)
    if not input.dim():
        values, indices = values.reshape(()), indices.reshape(())
    elif not keepdim:
        values, indices = values.squeeze(d), indices.squeeze(d)
    return deliver_all(
        kind(values, indices),
        out,
        input,
        exact=True,
        share="nothing" if kind is kthvalue_return else "anything",
    )


def _order(x: Tensor, d: int) -> tuple[Tensor, Tensor]:
    return OPS["sort"](x.detach(), d, False, True)


@composite(out=D.int64, differentiable=False)
def _kth_place(self: Tensor, k: int, dim: int) -> Tensor:
    """Where the k-th smallest element along `dim` is, from 0: that of a stable order."""
    return OPS["topk"](self, k + 1, dim, False)[1].narrow(dim, k, 1).contiguous()


@composite(out=D.int64, differentiable=False)
def _median_place(self: Tensor, dim: int, ignore_nan: bool) -> Tensor:
    """Where the lower median along `dim` is, or the first nan, unless these are ignored."""
    n = self.shape[dim]
    order = _order(self, dim)[1]
    if not self.dtype.is_floating_point:
        return order.narrow(dim, (n - 1) // 2, 1).contiguous()
    missing = self.isnan().sum(dim, True)
    if ignore_nan:
        return order.gather(dim, ((n - missing - 1) // 2).clamp(0))
    # The first nan is the first of the last `missing` entries.
    first = order.gather(dim, (n - missing).clamp(0, n - 1))
    return where(missing > 0, first, order.narrow(dim, (n - 1) // 2, 1))


@_kth_place.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [
        S.Sample((S.Arr((3, 5), kind="distinct"), 3, 1), "of rows"),
        S.Sample((S.Arr((5, 3), low=0, high=2), 2, 0), "ties in columns"),
        S.Sample((S.Arr((2, 5, 3), low=0, high=2), 4, 1), "the last of the middle"),
        S.Sample((S.Arr((0, 3)), 1, 1), "empty result"),
        *[S.Sample((S.Arr((9, 2), low=0, high=5), k, 0), f"{k} of nine") for k in range(9)],
    ]


@_median_place.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [
        S.Sample((array, dim, ignores), f"{name}, {'without' if ignores else 'with'} nan")
        for ignores in (False, True)
        for array, dim, name in (
            (S.Arr((3, 5), kind="distinct"), 1, "of rows"),
            (S.Arr((6, 3), low=0, high=2), 0, "ties in columns"),
            (S.Arr((9, 7), kind="distinct"), 0, "of columns"),
            (S.Arr((0, 3)), 1, "empty result"),
        )
    ]


def _medians(name: str, kind: Any, input: Tensor, dim: int | None, keepdim: bool, out: Any) -> Any:
    need_tensor(input, name, "input")
    x, d = (input, 0) if dim is None else _entries(name, input, dim)
    if input.dtype.is_complex and input.requires_grad and not input.numel() and dim is None:
        raise RuntimeError(
            f"{name} does not support automatic differentiation for outputs with complex dtype."
        )
    if input.dtype is D.bool_ or input.dtype.is_complex:
        raise NotImplementedError(f'"median_cpu" not implemented for {input.dtype}')
    ignore = name == "nanmedian"
    if dim is None:
        if input.numel() == 0:
            if not input.dtype.is_floating_point:
                return deliver(input.new_full((), _lowest(input)), out, input)
            return deliver(input.sum() * math.nan, out, input)
        return deliver(_median(input.reshape(-1), ignore), out, input)
    indices = _median_place.run(x.detach(), d, ignore)
    return _taken(kind, input, d, indices, keepdim, out)


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
    x, d = _entries("kthvalue", input, dim)
    if not 1 <= k <= x.shape[d]:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {d}: k = {k}, size "
            f"{x.shape[d]}"
        )
    indices = _kth_place.run(x.detach(), k - 1, d)
    return _taken(kthvalue_return, input, d, indices, keepdim, out)


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
    x, d = _entries("mode", input, dim)
    return _taken(mode_return, input, d, _mode_place.run(x.detach(), d), keepdim, out)


@composite(out=D.int64, differentiable=False)
def _mode_place(self: Tensor, dim: int) -> Tensor:
    """Where the last of the most frequent elements along `dim` is, of several the smallest."""
    n, shape = self.shape[dim], tuple(self.shape)
    ordered, order = _order(self, dim)
    starts = cast(ordered.narrow(dim, 1, n - 1) != ordered.narrow(dim, 0, n - 1), D.int64)
    first = ordered.narrow(dim, 0, 1)
    runs = cat([first.new_zeros(tuple(first.shape), dtype=D.int64), starts.cumsum(dim)], dim)
    counts = runs.new_zeros(shape).scatter_add(dim, runs, runs.new_ones(shape))
    longest = counts.argmax(dim, True)
    last = (runs <= longest).sum(dim, True) - 1
    return order.gather(dim, last)


@_mode_place.samples(D.float32, D.float64, D.int32, D.int64)
def _(S):
    return [
        S.Sample((S.Arr((3, 9), low=0, high=3), 1), "of rows"),
        S.Sample((S.Arr((9, 4), low=0, high=3), 0), "of columns"),
        S.Sample((S.Arr((2, 7, 3), low=0, high=2), 1), "of the middle"),
        S.Sample((S.Arr((9, 7), low=0, high=4), 0), "of more columns"),
        S.Sample((S.Arr((0, 3)), 1), "empty result"),
    ]


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
