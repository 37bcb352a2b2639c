"""Distances and similarities of vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import broadcast_shapes, dim_of, need_tensor
from flambeau._dispatch.dispatch import common, result_type
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.diagonals import triu_indices
from flambeau.ops.layers import gradient_rules as _rules
from flambeau.ops.reductions.norms import norm

if TYPE_CHECKING:
    from types import ModuleType

    from flambeau.testing.sample_arrays import Sample


def _samples(S: ModuleType) -> list[Sample]:
    rows, others = S.Arr((3, 2)), S.Arr((5, 2), seed=1)
    return [
        *(S.Sample((rows, others, p), f"order {p}", True) for p in (1.0, 2.0, math.inf)),
        S.Sample((S.Arr((2, 3, 2)), S.Arr((2, 1, 2), seed=1), 2.0), "batches", True),
        S.Sample((S.Arr((2, 0, 2)), S.Arr((2, 3, 2)), 2.0), "no rows"),
        S.Sample((S.Arr((3, 2)), S.Arr((0, 2)), 1.0), "no others"),
    ]


@public(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Σ x1·x2 / (max(‖x1‖, `eps`)·max(‖x2‖, `eps`)) along `dim`; the operands are broadcast.

    Raises:
        RuntimeError: the shapes do not broadcast, or the common dtype is not floating.
        IndexError: `dim` is out of range.

    >>> import flambeau as fb
    >>> fb.cosine_similarity(fb.tensor([[1.0, 0.0]]), fb.tensor([[3.0, 4.0]]))
    tensor([0.6000])
    """
    x, y = _pair("cosine_similarity", x1, x2)
    if x._a.shape != y._a.shape:
        shape = broadcast_shapes(tuple(x.shape), tuple(y.shape))
        d = dim_of(dim, len(shape))
        # Lengths are of whole vectors; along other dimensions they are repeated with their product.
        x, y = _spread(x, shape, d), _spread(y, shape, d)
    return (x / _length(x, dim, eps) * (y / _length(y, dim, eps))).sum(dim)


def _spread(x: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """`x` with as many dimensions as `shape`, and expanded along `dim`."""
    own = (*(1,) * (len(shape) - x.dim()), *x.shape)
    return x.expand((*own[:dim], shape[dim], *own[dim + 1 :]))


def _length(x: Tensor, dim: int, eps: float) -> Tensor:
    """The norm, but not below `eps`; its gradient is that of the norm everywhere, as PyTorch's."""
    length = norm(x, 2, dim, True)
    if length.requires_grad:
        length = length.clone()
    length.detach().clamp_min_(eps)
    return length


@public(method=False)
@takes_as_annotated
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The `p`-norm of x1 - x2 + `eps` along the last dimension; the operands are broadcast.

    Raises:
        RuntimeError: the shapes do not broadcast, or both operands are bool.

    >>> import flambeau as fb
    >>> fb.pairwise_distance(fb.tensor([[3.0, 4.0]]), fb.zeros(1, 2))
    tensor([5.0000])
    """
    x, y = (need_tensor(t, "pairwise_distance", n) for t, n in ((x1, "x1"), (x2, "x2")))
    return norm(x - y + float(eps), p, -1, keepdim)


@composite
def _cdist(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    """The norm of the difference of every row of `x1` (*, P, M) and every row of `x2` (*, R, M).

    M is not 0, and `p` 1, 2 or infinity; the result is (*, P, R).
    """
    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@_cdist.demand
def _(x1: Tensor, x2: Tensor, p: float) -> None:
    _need_rows("cdist", x1, x2)


def _need_rows(name: str, x1: Tensor, x2: Tensor) -> None:
    one, other = tuple(x1.shape), tuple(x2.shape)
    if len(one) < 2 or one[:-2] != other[:-2] or one[-1:] != other[-1:]:
        raise RuntimeError(
            f"{name}: expected rows of one length in one batch, got {one} and {other}"
        )


def _turned(F, t):
    rank = len(t.shape)
    return F.permute(t, (*range(rank - 2), rank - 1, rank - 2))


@_cdist.gradient("x1")
def _(F, g, x1, x2, result, p):
    return F.cdist_backward(g, x1, x2, result, p)


@_cdist.gradient("x2")
def _(F, g, x1, x2, result, p):
    return F.cdist_backward(_turned(F, g), x2, x1, _turned(F, result), p)


_cdist.samples(D.float32, D.float64)(_samples)


@composite
def _cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor, p: float) -> Tensor:
    """The gradient of `cdist` in x1: 0 where rows are equal, whole at each greatest one."""
    difference, share = x1.unsqueeze(-2) - x2.unsqueeze(-3), grad
    if p == 2:
        none = result == 0
        share = (grad / result.masked_fill(none, 1)).masked_fill(none, 0)
    else:
        difference, size = difference.sign(), difference.abs()
        if p != 1:
            difference = difference.masked_fill(size != result.unsqueeze(-1), 0)
    return (share.unsqueeze(-1) * difference).sum(-2)


@_cdist_backward.demand
def _(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor, p: float) -> None:
    _need_rows("cdist_backward", x1, x2)
    wanted = (*x1.shape[:-1], x2.shape[-2])
    _rules.check_shape("cdist_backward", "grad", grad, wanted)
    _rules.check_shape("cdist_backward", "result", result, wanted)


def _slopes(F, x1, x2, result, p):
    """What moves a distance (*, P, R, M); and the distances (*, P, R, 1), 1 instead of 0."""
    *lead, rows, columns = x1.shape
    others = x2.shape[-2]
    one = F.reshape(x1, (*lead, rows, 1, columns))
    difference = F.sub(one, F.reshape(x2, (*lead, 1, others, columns)))
    length, zero = F.reshape(result, (*lead, rows, others, 1)), F.scalar(0, result)
    none = F.eq(length, zero)
    length = F.where(none, F.scalar(1, result), length)
    if p == 2:
        return F.where(none, zero, F.div(difference, length)), length
    slope = F.sign(difference)
    if p == 1:
        return slope, length
    return F.where(F.eq(F.abs(difference), length), slope, zero), length


@_cdist_backward.gradient
def _(F, g, grad, x1, x2, result, p):
    slope, length = _slopes(F, x1, x2, result, p)
    *lead, rows, columns = x1.shape
    last = len(x1.shape)
    wide = F.reshape(g, (*lead, rows, 1, columns))
    along = F.sum(F.mul(wide, slope), (last,), False)
    if p != 2:
        return along, None, None, None
    share = F.div(F.reshape(grad, tuple(length.shape)), length)
    none = F.eq(result, F.scalar(0, result))
    share = F.where(F.reshape(none, tuple(length.shape)), F.scalar(0, share), share)
    pulled = F.mul(wide, share)
    over_result = F.neg(F.mul(along, F.reshape(share, tuple(along.shape))))
    return (
        *(along, F.sum(pulled, (last - 1,), False)),
        *(F.neg(F.sum(pulled, (last - 2,), False)), over_result),
    )


@_cdist_backward.samples(D.float32, D.float64)
def _(S):
    grad, result = S.Arr((3, 5)), S.Arr((3, 5), low=0.5, high=2)
    rows, others = S.Arr((3, 2)), S.Arr((5, 2), seed=1)
    return [
        S.Sample((grad, rows, others, result, p), f"order {p}", True) for p in (1.0, 2.0, math.inf)
    ]


@public(method=False)
@takes_as_annotated
def cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: str | None = None) -> Tensor:
    """The `p`-norm of the difference of every row of `x1` and every row of `x2`.

    `p` = 0 counts differences, infinity takes the largest.  `compute_mode` is PyTorch's choice of
    an algorithm for p = 2; all of them give the same numbers here, without cancellation.

    Shapes: x1 (*, P, M), x2 (*, R, M), the leading dimensions broadcast; result (*, P, R).

    Raises:
        RuntimeError: shapes or dtypes do not fit, or `p` is negative.
        ValueError: an unknown `compute_mode`.

    >>> import flambeau as fb
    >>> fb.cdist(fb.tensor([[0.0, 0.0], [3.0, 0.0]]), fb.tensor([[3.0, 4.0]]))
    tensor([[5.],
            [4.]])
    """
    x, y = need_tensor(x1, "cdist", "x1"), need_tensor(x2, "cdist", "x2")
    if compute_mode not in (None, *_MODES):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode: one of {_MODES}")
    for name, t in (("X1", x), ("X2", y)):
        if t.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {t.dim()}D")
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x.shape[-1]} X2: {y.shape[-1]}"
        )
    _check_order("cdist", p, x, y)
    if p in (1, 2, math.inf) and x.shape[-1] and x.dtype in (D.float32, D.float64):
        lead = broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
        x, y = (t.expand((*lead, *t.shape[-2:])) for t in (x, y))
        return _cdist.run(x, y, float(p))
    return _between(x.unsqueeze(-2), y.unsqueeze(-3), p)


_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@public(method=False)
@takes_as_annotated
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The `p`-norm of the difference of every two rows: of 0 and 1, 0 and 2, ..., 1 and 2, ...

    Shapes: input (N, M), result (N·(N - 1) / 2).

    Raises:
        RuntimeError: another number of dimensions, no floating dtype, or `p` is negative.

    >>> import flambeau as fb
    >>> fb.pdist(fb.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    x = need_tensor(input, "pdist", "input")
    if x.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.dim()}D")
    _check_order("pdist", p, x)
    pairs = triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    return _between(x.index_select(0, pairs[0]), x.index_select(0, pairs[1]), p)


def _between(x: Tensor, y: Tensor, p: float) -> Tensor:
    """The `p`-norm of x - y along the last dimension, with the gradient 0 where it is 0."""
    difference = x - y
    if difference.shape[-1] == 0:
        return difference.sum(-1)
    if p == 0:  # constant but for jumps
        return norm(difference.detach(), 0, -1) + difference.sum(-1) * 0
    if p in (1, 2, float("inf")):
        return norm(difference, p, -1)
    # Powers and roots may have an infinite slope at 0: 1 takes its place, and 0 that of the result.
    equal = difference == 0
    same = equal.all(-1)
    powers = (difference.abs().masked_fill(equal, 1) ** p).masked_fill(equal, 0).sum(-1)
    return (powers.masked_fill(same, 1) ** (1 / p)).masked_fill(same, 0)


def _pair(name: str, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    x, y = need_tensor(x1, name, "x1"), need_tensor(x2, name, "x2")
    dtype = result_type(x, y)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: expected a floating point common dtype, got {dtype}")
    x, y = common(name, (x, y), dtype)
    return x, y


def _check_order(name: str, p: float, *operands: Tensor) -> None:
    for t in operands:
        if t.dtype not in (D.float16, D.bfloat16, D.float32, D.float64):
            raise RuntimeError(f"{name} only supports floating-point dtypes, got: {t.dtype}")
    if len({t.dtype for t in operands}) > 1:
        raise RuntimeError(f"{name}: expected operands of one dtype, got different ones")
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values, got {p}")
