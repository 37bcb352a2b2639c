"""Counting and searching: histograms, unique elements, places in ascending sequences."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, overload

from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, is_within, need_tensor
from flambeau._dispatch.dispatch import cast, out_of_memory, wrap
from flambeau._dispatch.promotion import result_type
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Number
from flambeau._writes.out import deliver
from flambeau.ops.creation.creation import filled, tensor
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.namespace import TENSORS
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.pointwise.elementwise import eq, ne, where

_MOST = (1 << 63) // 8 - 1
"""Counts of which memory can be asked for."""

_ALL_PAIRS = 1 << 14
"""Comparisons up to which `isin` makes them all, which is faster than sorting."""

_FEW = 8
"""Elements of the second operand of `isin`, each of which is compared with the whole first."""


@public
@takes_as_annotated
def histc(
    input: Tensor,
    bins: int = 100,
    min: float = 0,
    max: float = 0,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """How many elements fall into each of `bins` equal intervals of [min, max].

    With min = max the range is that of the elements.

    Raises:
        RuntimeError: `bins` is not positive, or the range is not finite or reversed.

    >>> import flambeau as fb
    >>> fb.histc(fb.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    x = need_tensor(input, "histc", "input").detach()
    if bins <= 0:
        raise RuntimeError(f"torch.histc: bins must be > 0, but got {bins}")
    if min > max:
        raise RuntimeError(f"torch.histc: max must be larger than min, got [{min}, {max}]")
    if x.dtype is D.uint8 and min < 0:
        raise RuntimeError(f"value {min} cannot be converted to type {x.dtype} without overflow")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"histogram_cpu" not implemented for {x.dtype}')
    low, high = min, max
    if low == high and x.numel():
        low, high = x.amin().item(), x.amax().item()
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
    found = _histogram.run(x.reshape(-1), bins, float(low), float(high))
    return deliver(found, out, input, exact=True, share="anything")


@composite(differentiable=False)
def _histogram(self: Tensor, bins: int, low: float, high: float) -> Tensor:
    """How many elements of a vector fall into each of `bins` equal parts of [low, high]."""
    inside = self.masked_select((self >= low) & (self <= high))
    place = cast((inside - low) / (high - low) * bins, D.int64).clamp(0, bins - 1)
    counts = self.new_zeros((bins,), dtype=D.int64)
    return cast(counts.scatter_add(0, place, place * 0 + 1), self.dtype)


@_histogram.samples(D.float32, D.float64)
def _(S):
    return [
        S.Sample((S.Arr((50,), low=-2, high=2), 7, -1.5, 1.75), "some outside"),
        S.Sample((S.Arr((8,), low=0, high=1), 1, 0.0, 1.0), "one bin"),
        S.Sample((S.Arr((40,), low=-1, high=3), 5, -0.75, 2.5), "other limits"),
        S.Sample((S.Arr((0,)), 3, 0.0, 1.0), "none"),
    ]


@public
@takes_as_annotated
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number 0, 1, ... occurs in a vector, or the sums of their weights.

    Raises:
        RuntimeError: the input is no vector of non-negative integers, or the weights do not fit.

    >>> import flambeau as fb
    >>> fb.bincount(fb.tensor([1, 0, 1]))
    tensor([1, 2])
    """
    x = need_tensor(input, "bincount", "input")
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    if x.dtype.category != 1:
        raise NotImplementedError(f'"bincount_cpu" not implemented for {x.dtype}')
    x = cast(x, D.int64)
    shape, item = x._a.shape, x._be.backend.item
    n, size = math.prod(shape), 0
    if n and len(shape) == 1:
        size = int(item(OPS["amax"].run(x, (0,), False)._a)) + 1
    if (most := max(size, minlength)) > _MOST:
        raise out_of_memory("bincount", MemoryError(), (x, most))
    if len(shape) != 1 or (
        n and not is_within(x, size) and item(OPS["amin"].run(x, (0,), False)._a) < 0
    ):
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs, got {x.dim()} dimensions"
        )
    if weights is not None and need_tensor(weights, "bincount", "weights").shape != x.shape:
        raise RuntimeError(
            "weights should be 1-d and have the same length as input, got shapes "
            f"{list(weights.shape)} and {list(x.shape)}"
        )
    size = max(size, operator.index(minlength))
    if weights is None or not n:  # without elements PyTorch does not look at the weights
        return _bincount.run(x, size)
    values = weights.detach()
    values = values if values.dtype is D.float32 else cast(values, D.float64)
    counts = filled((size,), 0, values.dtype, values._be)
    return OPS["scatter_add"].run(counts, 0, x, values)


@composite(out=D.int64, differentiable=False)
def _bincount(self: Tensor, size: int) -> Tensor:
    """How often each of `size` numbers occurs in a vector, which has no others."""
    counts, one = self.new_zeros((size,)), self.new_ones(tuple(self.shape))
    return OPS["scatter_add"](counts, 0, self, one)


@composite(out=D.int64, differentiable=False)
def _one_hot(self: Tensor, classes: int) -> Tensor:
    """A one at the place of each number along a new last dimension; the numbers are in range."""
    return cast(self.unsqueeze(-1) == arange(classes, device=self.device), D.int64)


@_bincount.samples(D.int64)
def _(S):
    return [
        S.Sample((S.Arr((9,), D.int64, low=0, high=4), 5), "of nine"),
        S.Sample((S.Arr((0,), D.int64), 2), "of none"),
    ]


@_one_hot.samples(D.int64)
def _(S):
    return [
        S.Sample((S.Arr((7,), D.int64, low=0, high=4), 5), "of a vector"),
        S.Sample((S.Arr((2, 3), D.int64, low=0, high=2), 3), "of a matrix"),
        S.Sample((S.Arr((0, 2), D.int64), 3), "of none"),
    ]


def _runs(
    F: Any, rows: Any, ones: tuple[Any, Any], order: Any, inverse: bool, counted: bool
) -> list[Any]:
    """The first of each run of equal entries, and what else is asked for.

    `ones` are a vector True and one of the number of entries, both empty where there are none;
    `order` says where the rows were before they were sorted, or is None.
    """
    n = rows.shape[0]
    rest = tuple([slice(0, m, 1) for m in rows.shape[1:]])
    before, after = slice(0, max(n - 1, 0), 1), slice(min(n, 1), n, 1)
    changed = F.ne(F.slice(rows, (after, *rest)), F.slice(rows, (before, *rest)))
    if rest:
        changed = F.any(changed, (1,), False)
    starts = F.nonzero(F.cat([ones[0], changed], 0))
    count = starts.shape[0]
    starts = F.reshape(starts, (count,))
    results = [F.index(rows, (starts,))]
    counts = None
    if inverse or counted:
        ends = F.cat([F.slice(starts, (slice(min(count, 1), count, 1),)), ones[1]], 0)
        counts = F.sub(ends, starts)
    if inverse:
        runs = F.repeat_places(counts, n)
        results.append(runs if order is None else F.scatter(runs, 0, order, runs))
    if counted:
        results.append(counts)
    return results


def _lexicographic(rows: Tensor) -> Tensor:
    count, columns = rows.shape
    order, width = arange(count, device=rows.device), 1
    while columns:  # the first columns decide, unless rows are alike in these
        order = arange(count, device=rows.device)
        for column in reversed(range(min(width, columns))):
            keys = rows.select(1, column).index_select(0, order)
            order = order.index_select(0, OPS["sort"](keys, 0, False, True)[1])
        if width >= columns:
            break
        first = rows.narrow(1, 0, width).index_select(0, order)
        one, other = first[: count - 1], first[1:]
        differ = (one != other) & ((one == one) | (other == other))  # in an order nan are alike
        if differ.any(1).all().item():
            break
        width *= 8
    return order


def _unique(
    name: str, input: Tensor, ordered: bool, inverse: bool, counted: bool, dim: int | None
) -> tuple[Tensor, ...] | Tensor:
    x = need_tensor(input, name, "input").detach()
    rest: tuple[int, ...] = ()
    if dim is None:
        d, rows, shape = 0, x.reshape(-1), tuple(x.shape)
    else:
        d = dim_of(dim, x.dim(), scalar_as_vector=False)
        if 0 in x.shape and x.shape[d] != 0:
            raise RuntimeError(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be "
                f"applied: shape {list(x.shape)}, dim {d}"
            )
        moved = x.movedim(d, 0)
        shape, rest = (x.shape[d],), tuple(moved.shape[1:])
        rows = moved.reshape((*shape, math.prod(rest)))
    order = None
    if ordered and dim is None:
        rows, order = OPS["sort"].run(rows, 0, False, True)
    elif ordered:
        order = _lexicographic(rows)
        rows = rows.index_select(0, order)
    be, n = x._be, rows._a.shape[0]
    some = (min(n, 1),)
    ones = be.full(some, True, D.bool_), be.full(some, n, D.int64)
    results: list[Any] = []
    if not _dispatch.modes:  # which see what is done with tensors
        where_from = None if order is None else order._a
        try:
            found = _runs(be, rows._a, ones, where_from, inverse, counted)
        except Exception:  # a kernel's own words, which the ops below have better ones for
            found = []
        results = [wrap(be, r, D.int64 if i else x.dtype) for i, r in enumerate(found)]
    if not results:
        given = wrap(be, ones[0], D.bool_), wrap(be, ones[1], D.int64)
        results = _runs(TENSORS, rows, given, order, inverse, counted)
    if dim is not None:
        results[0] = results[0].reshape((results[0]._a.shape[0], *rest)).movedim(0, d)
    if inverse and len(shape) != 1:
        results[1] = results[1].reshape(shape)
    return tuple(results) if len(results) > 1 else results[0]


@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[False] = False,
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any: ...
@public
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or entries of `dim` in lexicographic order.

    Optionally with them: for each element the index of its value, and how often each value occurs.
    Every nan is distinct.

    Raises:
        RuntimeError: another dimension than `dim` is empty.

    >>> import flambeau as fb
    >>> fb.unique(fb.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return _unique("unique", input, True, return_inverse, return_counts, dim)


@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any: ...
@public
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or entries of `dim`, without those that equal the one before.

    Optionally with them: for each element the index of its run, and how long each run is.

    >>> import flambeau as fb
    >>> fb.unique_consecutive(fb.tensor([3, 3, 1, 3]))
    tensor([3, 1, 3])
    """
    return _unique("unique_consecutive", input, False, return_inverse, return_counts, dim)


@public(method=False)
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Which elements occur among `test_elements`, or do not with ``invert=True``.

    >>> import flambeau as fb
    >>> fb.isin(fb.tensor([1, 2, 3]), fb.tensor([2, 5]))
    tensor([False,  True, False])
    """
    if isinstance(elements, Tensor):
        if not isinstance(test_elements, Tensor):
            return (ne if invert else eq)(elements, test_elements)
    elif isinstance(test_elements, Tensor):
        dtype = result_type(test_elements, elements)
        elements = tensor(elements, dtype=dtype, device=test_elements.device)
    else:
        raise TypeError("isin(): at least one of elements and test_elements must be a Tensor")
    dtype = D.promote_types(elements.dtype, test_elements.dtype)
    x, y = cast(elements.detach(), dtype), cast(test_elements.detach(), dtype).reshape(-1)
    if 0 < y.numel() <= _FEW:
        found, *more = [
            x == value for value in (y.unbind(0) if y.numel() > 1 else (y.reshape(()),))
        ]
        for each in more:
            found = found | each
        return ~found if invert else found
    if x.numel() * y.numel() <= _ALL_PAIRS:
        found = (x.unsqueeze(-1) == y).any(-1)
        return ~found if invert else found
    if dtype.is_floating_point:
        y = y.masked_select(y == y)  # nan equals nothing
    n = y.numel()
    if n == 0:
        found = x.new_zeros(tuple(x.shape), dtype=D.bool_)
    else:
        y = OPS["sort"](y, 0, False, True)[0]
        place = searchsorted(y, x.reshape(-1)).clamp(0, n - 1)
        found = y.index_select(0, place).reshape(tuple(x.shape)) == x
    return ~found if invert else found


@public(method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Where values belong in ascending sequences: before equal elements, or after them (`right`).

    Shapes: a sequence (n,) for values of any shape, or (..., n) with values (..., m). A `sorter` is
    the index that sorts an unsorted sequence.

    Raises:
        RuntimeError: shapes do not fit, `side` contradicts `right`, or dtypes differ.

    >>> import flambeau as fb
    >>> fb.searchsorted(fb.tensor([1, 3, 5]), fb.tensor([3, 6]))
    tensor([1, 3])
    """
    if (
        type(sorted_sequence) is Tensor
        and type(input) is Tensor
        and len(sorted_sequence._a.shape) == 1 == len(input._a.shape)
        and sorted_sequence.dtype is input.dtype
        and sorter is side is out is None
        and not out_int32
    ):
        return _searchsorted.run(sorted_sequence, input, right)
    edges = need_tensor(sorted_sequence, "searchsorted", "sorted_sequence")
    edges = edges.detach() if edges._rg else edges
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    right = right or side == "right"
    if not isinstance(input, Tensor):
        if edges.dim() != 1:
            raise RuntimeError(
                "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
                f"dimension is 1, but we got boundaries tensor dim({edges.dim()})"
            )
        input = tensor(input, dtype=edges.dtype if edges.dtype.fp else None, device=edges.device)
    dtype = D.promote_types(edges.dtype, input.dtype)
    edges, x = cast(edges, dtype), cast(input.detach() if input._rg else input, dtype)
    if sorter is not None:
        if need_tensor(sorter, "searchsorted", "sorter").shape != edges.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                f"{list(edges.shape)} and {list(sorter.shape)}"
            )
        edges = edges.gather(-1, sorter)
    if edges.dim() == 0 or (
        edges.dim() > 1 and (x.dim() != edges.dim() or x.shape[:-1] != edges.shape[:-1])
    ):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(edges.shape)} and input value tensor {list(x.shape)}"
        )
    is_flat = edges.dim() > 1 or x.dim() == 1
    found = _searchsorted.run(edges, x if is_flat else x.reshape(-1), right)
    if not is_flat:
        found = found.reshape(x._a.shape)
    return deliver(
        cast(found, D.int32) if out_int32 else found,
        out,
        sorted_sequence,
        input,
        exact=True,
        share="anything",
    )


@composite(differentiable=False, out=D.int64)
def _searchsorted(edges: Tensor, x: Tensor, right: bool) -> Tensor:
    """Binary search of all values at once: log₂ n rounds of one comparison each."""
    n = edges.shape[-1]
    low = x.new_zeros(tuple(x.shape), dtype=D.int64)
    high = low + n
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        at = edges.gather(-1, middle.clamp(0, n - 1))
        # Whether the element at `middle` stands before the value; negated, so that nan stands last.
        before = ~(at > x) if right else ~(at >= x)
        before = before & (low < high)
        low = where(before, middle + 1, low)
        high = where(before, high, middle)
    return low


@_searchsorted.samples(D.float32, D.float64, D.int64, D.int32)
def _(S):
    edges, rows = S.Arr((7,), kind="distinct"), S.Arr((2, 5), kind="distinct")
    return [
        S.Sample((edges, S.Arr((6,)), False), "before equal ones"),
        S.Sample((edges, S.Arr((6,)), True), "after equal ones"),
        S.Sample((rows, S.Arr((2, 3)), True), "of rows"),
        S.Sample((S.Arr((0,)), S.Arr((6,)), False), "of nothing"),
    ]


@public(method=False)
def bucketize(
    input: Tensor | Number,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The bucket of each value among ascending `boundaries`: the number of boundaries below it.

    A value that equals a boundary stays below it, or with `right` goes above.

    Raises:
        RuntimeError: the boundaries are no vector.

    >>> import flambeau as fb
    >>> fb.bucketize(fb.tensor([3, 6]), fb.tensor([1, 3, 5]))
    tensor([1, 3])
    """
    if need_tensor(boundaries, "bucketize", "boundaries").dim() != 1:
        raise RuntimeError(
            f"bucketize: boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
