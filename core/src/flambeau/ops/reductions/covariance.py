"""Covariance and correlation of several variables."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types.dtype import get_default_dtype
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.complexes import complex


@public
@takes_as_annotated
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
        total = float(count)
        mean = table.sum(1, keepdim=True) / total
        centred = table - mean
        weighted = centred
    else:
        kind = table.dtype.to_real() if table.dtype.is_complex else table.dtype
        weights = cast(weights, kind)
        total = weights.sum()
        if bool(total == 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        centred = table - (table * weights).sum(1, keepdim=True) / total
        weighted = centred * weights
    if aweights is None or weights is None or correction == 0:
        factor = total - correction
    else:
        factor = total - correction * (weights * cast(aweights, weights.dtype)).sum() / total
    factor = max(float(factor), 0.0) if not isinstance(factor, Tensor) else factor.clamp(min=0)
    made = centred @ weighted.t().conj() / factor
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
    if not c.dtype.is_complex:
        return _scaled(c, c.diagonal()).clamp(-1, 1)
    found = _scaled(c, c.diagonal().real)
    return complex(found.real.clamp(-1, 1), found.imag.clamp(-1, 1))


def _scaled(c: Tensor, variances: Tensor) -> Tensor:
    spread = variances.sqrt()
    return c / spread.unsqueeze(1) / spread.unsqueeze(0)
