"""Running extrema and sums, integrals, and statistics of several variables."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import get_default_dtype
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.creation.creation import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.pointwise.pairs import logaddexp
from flambeau.ops.shapes.movement import cat, stack


class _Running(NamedTuple):
    values: Tensor
    indices: Tensor
    __repr__ = named_tuple


class cummax_return(_Running):  # noqa: N801
    """What `cummax` returns."""


class cummin_return(_Running):  # noqa: N801
    """What `cummin` returns."""


@public
def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The largest element so far along a dimension, and where it is: the last of equal ones.

    From a nan on the result is nan.

    >>> import flambeau as fb
    >>> fb.cummax(fb.tensor([1, 3, 2, 3]), 0).indices
    tensor([0, 1, 1, 3])
    """
    found = _extrema(need_tensor(input, "cummax", "input"), dim, True)
    return cummax_return(*deliver_all(found, out, input, exact=True, share="anything"))


@public
def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The smallest element so far along a dimension, and where it is: the last of equal ones.

    From a nan on the result is nan.

    >>> import flambeau as fb
    >>> fb.cummin(fb.tensor([2, 3, 1]), 0).values
    tensor([2, 2, 1])
    """
    found = _extrema(need_tensor(input, "cummin", "input"), dim, False)
    return cummin_return(*deliver_all(found, out, input, exact=True, share="anything"))


def _extrema(x: Tensor, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    d = dim_of(dim, x.dim())
    if not x.dim():
        return x.clone(), x.new_zeros((), dtype=D.int64)
    n = x.shape[d]
    best = x.detach()
    line = [1] * x.dim()
    line[d] = n
    place = arange(n, device=x.device).reshape(line).expand(tuple(x.shape)).contiguous()
    # Windows that double in length: each step joins two that touch.
    step = 1
    while step < n:
        early, late = best.narrow(d, 0, n - step), best.narrow(d, step, n - step)
        better = (late >= early if largest else late <= early) | (late != late)
        better = better & ((early == early) | (late != late))
        best = cat([best.narrow(d, 0, step), where(better, late, early)], d)
        there = place.narrow(d, step, n - step)
        chosen = where(better, there, place.narrow(d, 0, n - step))
        place = cat([place.narrow(d, 0, step), chosen], d)
        step *= 2
    return x.gather(d, place), place


@public
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of exponentials along a dimension.

    >>> import flambeau as fb
    >>> fb.logcumsumexp(fb.zeros(3), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    x = need_tensor(input, "logcumsumexp", "input")
    d = dim_of(dim, x.dim())
    if x.dim():
        n, step = x.shape[d], 1
        while step < n:
            joined = logaddexp(x.narrow(d, step, n - step), x.narrow(d, 0, n - step))
            x = cat([x.narrow(d, 0, step), joined], d)
            step *= 2
    return deliver(x.clone() if x is input else x, out, input, exact=True)


@public
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sums of products over the last dimension of both; a scaled tensor if one is 0-d.

    Raises:
        RuntimeError: the last dimensions differ.

    >>> import flambeau as fb
    >>> fb.inner(fb.tensor([1, 2]), fb.tensor([[3, 4], [5, 6]]))
    tensor([11, 17])
    """
    x, y = need_tensor(input, "inner", "input"), need_tensor(other, "inner", "other")
    if not x.dim() or not y.dim():
        return deliver(x * y, out, input, other, exact=True, share="anything")
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(x.shape)} and {list(y.shape)}"
        )
    n = x.shape[-1]
    product = x.reshape((-1, n)) @ y.reshape((-1, n)).t() if n else None
    shape = (*x.shape[:-1], *y.shape[:-1])
    made = x.new_zeros(shape) if product is None else product.reshape(shape)
    return deliver(made, out, input, other, exact=True, share="anything")


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
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along a dimension by the trapezoidal rule, at points `x` or `dx` apart.

    >>> import flambeau as fb
    >>> fb.trapezoid(fb.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    """
    areas, d = _steps("trapezoid", y, x, dx, dim)
    return areas.sum(d)


@public(method=False)
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """`trapezoid` by its older name.

    >>> import flambeau as fb
    >>> fb.trapz(fb.tensor([1.0, 2.0, 4.0]), dx=2)
    tensor(9.)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


@public(method=False)
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


@public(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix: powers of the elements of a vector as columns, highest first.

    Raises:
        RuntimeError: `x` is no vector, or `N` is negative.

    >>> import flambeau as fb
    >>> fb.vander(fb.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    x = need_tensor(x, "vander", "x")
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    if x.dtype is D.bool_:
        x = cast(x, D.int64)
    result = x.new_empty((x.shape[0], n))  # refuses what has no room, before the columns are made
    if not n:
        return result
    if not x.shape[0]:
        return x.unsqueeze(1).expand(0, n).clone()
    columns = [x.new_ones(tuple(x.shape))]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    columns = columns[:n] if increasing else columns[:n][::-1]
    return stack(columns, 1)


@public
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables, which are rows; columns are observations.

    Args:
        correction: what is taken from the number of observations, 1 for the unbiased estimate.
        fweights: how often each observation counts, integers.
        aweights: weight of each observation.

    Raises:
        RuntimeError: more than two dimensions, or weights that do not fit.

    >>> import flambeau as fb
    >>> fb.cov(fb.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = need_tensor(input, "cov", "input")
    if x.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {x.dim()}"
            " dimensions"
        )
    if not x.dtype.fp:
        x = cast(x, get_default_dtype())
    table = x.reshape((1, -1)) if x.dim() < 2 else x
    count = table.shape[1]
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        given = need_tensor(given, "cov", name)
        if given.dim() > 1 or given.numel() != count:
            raise RuntimeError(
                f"cov(): expected {name} to be one-dimensional with {count} elements, one for each "
                f"observation, but got shape {list(given.shape)}"
            )
        if (given < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")
        if name == "fweights" and given.dtype.category != 1:
            raise RuntimeError(
                f"cov(): expected fweights to have integral dtype, got {given.dtype}"
            )
        weights = given if weights is None else weights * given
    if weights is None:
        total: Any = float(count)
        mean = table.sum(1, keepdim=True) / total
        centred = table - mean
        weighted = centred
    else:
        weights = cast(weights, table.dtype)
        total = weights.sum()
        if bool(total == 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        centred = table - (table * weights).sum(1, keepdim=True) / total
        weighted = centred * weights
    if aweights is None or weights is None or correction == 0:
        factor = total - correction
    else:
        factor = total - correction * (weights * cast(aweights, table.dtype)).sum() / total
    factor = max(float(factor), 0.0) if not isinstance(factor, Tensor) else factor.clamp(min=0)
    made = centred @ weighted.t() / factor
    return made.reshape(()) if made.numel() == 1 else made


@public
def corrcoef(input: Tensor) -> Tensor:
    """The matrix of Pearson's correlation coefficients of variables, which are rows.

    Raises:
        RuntimeError: more than two dimensions.

    >>> import flambeau as fb
    >>> fb.corrcoef(fb.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    c = cov(input)
    if not c.dim():
        return c / c
    spread = c.diagonal().sqrt()
    return (c / spread.unsqueeze(1) / spread.unsqueeze(0)).clamp(-1, 1)
