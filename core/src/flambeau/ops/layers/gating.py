"""Gated linear units: one half of a tensor lets the other through."""

from __future__ import annotations

from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import _sigmoid, need_floating, wide
from flambeau.ops.shapes.movement import cat


def _halves(F: Any, a: Any, dim: int) -> tuple[Any, Any]:
    """The first and the second half along `dim`."""
    half = a.shape[dim] // 2
    before = tuple([slice(0, n, 1) for n in a.shape[:dim]])
    return F.slice(a, (*before, slice(0, half, 1))), F.slice(a, (*before, slice(half, 2 * half, 1)))


@composite
def _glu(self: Tensor, dim: int) -> Tensor:
    """The first half times the sigmoid of the second."""
    first, second = wide(self).chunk(2, dim)
    return cast(first * _sigmoid(second), self.dtype)


@_glu.gradient
def _(F, g, self, dim):
    return F.glu_backward(g, self, dim)


@_glu.samples
def _(S):
    return [
        S.Sample((S.Arr((2, 6)), 1), "last", True),
        S.Sample((S.Arr((4, 3)), 0), "first", True),
        S.Sample((S.Arr((2, 2, 3)), 1), "middle", True),
        S.Sample((S.Arr((0, 2)), 1), "empty"),
    ]


@composite
def _glu_backward(grad: Tensor, input: Tensor, dim: int) -> Tensor:
    g, (first, second) = wide(grad), wide(input).chunk(2, dim)
    s = _sigmoid(second)
    return cast(cat([g * s, g * first * (s * (1 - s))], dim), grad.dtype)


@_glu_backward.gradient("grad")
def _(F, g, input, dim):
    (g1, g2), (first, second) = _halves(F, g, dim), _halves(F, input, dim)
    s = F.sigmoid(second)
    return F.add(F.mul(g1, s), F.sigmoid_backward(F.mul(g2, first), s))


@_glu_backward.gradient("input")
def _(F, g, grad, input, dim):
    # Of a·s with s = sigmoid(b): s' = s·(1 - s), s'' = s'·(1 - 2·s)
    (g1, g2), (first, second) = _halves(F, g, dim), _halves(F, input, dim)
    s, one, two = F.sigmoid(second), F.scalar(1, input), F.scalar(2, input)
    bend = F.add(g1, F.mul(F.mul(g2, first), F.sub(one, F.mul(s, two))))
    slope = F.mul(grad, F.mul(s, F.sub(one, s)))
    return F.cat((F.mul(slope, g2), F.mul(slope, bend)), dim)


@_glu_backward.samples
def _(S):
    return [
        S.Sample((S.Arr((2, 3), seed=1), S.Arr((2, 6)), 1), "last", True),
        S.Sample((S.Arr((2, 3), seed=1), S.Arr((4, 3)), 0), "first", True),
        S.Sample((S.Arr((2, 1, 3), seed=1), S.Arr((2, 2, 3)), 1), "middle", True),
        S.Sample((S.Arr((0, 1)), S.Arr((0, 2)), 1), "empty"),
    ]


@public(method=False)
@takes_as_annotated
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a·sigmoid(b), where a and b are the halves of `input` along `dim`.

    Raises:
        RuntimeError: the size along `dim` is odd, or `input` has no dimensions.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.glu(fb.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    x = need_floating(input, "glu", "input")
    rank = x.dim()
    if rank == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    d = dim_of(dim, rank)
    if x.shape[d] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {d} is size {x.shape[d]}"
        )
    return _glu.run(x, d)
