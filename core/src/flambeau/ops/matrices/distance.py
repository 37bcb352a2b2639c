"""Distances and similarities of vectors."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import broadcast_shapes, need_tensor
from flambeau._dispatch.dispatch import common, result_type
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.declaration.public import public
from flambeau.ops.indices.diagonals import triu_indices
from flambeau.ops.reductions.norms import norm


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
    shape = broadcast_shapes(tuple(x.shape), tuple(y.shape))
    x, y = x.expand(shape), y.expand(shape)
    return (x / _length(x, dim, eps) * (y / _length(y, dim, eps))).sum(dim)


def _length(x: Tensor, dim: int, eps: float) -> Tensor:
    """The norm, but not below `eps`; its gradient is that of the norm everywhere, as PyTorch's."""
    length = norm(x, 2, dim, True)
    missing = (eps - length.detach()).clamp(min=0)
    return length + missing


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
