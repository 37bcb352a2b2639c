"""Integrals of sampled functions by the trapezoidal rule."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public


def _steps(name: str, y: Tensor, x: Tensor | None, dx: float, dim: int) -> tuple[Tensor, int]:
    """The areas between neighbours along a dimension."""
    y = need_tensor(y, name, "y")
    d = dim_of(dim, y.dim(), scalar_as_vector=False)
    n = y.shape[d]
    if n == 0:
        return y, d
    pairs = y.narrow(d, 1, n - 1) + y.narrow(d, 0, n - 1)
    if x is None:
        return pairs * (dx / 2), d
    x = need_tensor(x, name, "x")
    if x.dim() == 1 and y.dim() > 1:
        if x.shape[0] != n:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point, got {x.shape[0]} for "
                f"{n}"
            )
        x = x.reshape((n, *[1] * (y.dim() - 1 - d)))
    last = d - y.dim() + x.dim()
    m = x.shape[last]
    width = x.narrow(last, 1, m - 1) - x.narrow(last, 0, m - 1)
    return pairs * width / 2.0, d


@public(method=False)
@takes_as_annotated
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along a dimension by the trapezoidal rule, at points `x` or `dx` apart.

    >>> import flambeau as fb
    >>> fb.trapezoid(fb.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    """
    areas, d = _steps("trapezoid", y, x, dx, dim)
    return areas.sum(d)


@public(method=False)
@takes_as_annotated
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """`trapezoid` by its older name.

    >>> import flambeau as fb
    >>> fb.trapz(fb.tensor([1.0, 2.0, 4.0]), dx=2)
    tensor(9.)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


@public(method=False)
@takes_as_annotated
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1
) -> Tensor:
    """The running integral along a dimension by the trapezoidal rule.

    >>> import flambeau as fb
    >>> fb.cumulative_trapezoid(fb.tensor([1.0, 2.0, 4.0]))
    tensor([1.5000, 4.5000])
    """
    areas, d = _steps("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(d)
