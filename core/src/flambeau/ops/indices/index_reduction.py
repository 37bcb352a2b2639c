"""Slices combined with other slices that an index assigns to them."""

from __future__ import annotations

from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.indices.scattering import _source, _vector, scatter_reduce


@public(inplace="method")
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """A copy with entry ``index[i]`` of `dim` combined with entry i of `source`, for each i.

    `reduce` is "prod", "mean", "amax" or "amin".  With ``include_self=False`` the old values take
    no part where anything is written.

    Raises:
        RuntimeError: another reduction, or dtypes or shapes do not fit.
        IndexError: the index is no vector, or out of range.

    >>> import flambeau as fb
    >>> fb.ones(3).index_reduce(0, fb.tensor([0, 0, 2]), fb.tensor([4.0, 3.0, 5.0]), "prod")
    tensor([12.,  1.,  5.])
    """
    x, s = need_tensor(input, "index_reduce", "input"), need_tensor(source, "", "source")
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    d = dim_of(dim, x.dim())
    if need_tensor(index, "index_reduce", "index").dtype not in (D.int32, D.int64):
        raise RuntimeError(
            f"index_reduce_(): Expected dtype int32/int64 for index but got: {index.dtype}"
        )
    i = _vector("index_reduce", x, d, index)
    s = _source("index_reduce", x, d, i, s, RuntimeError)
    shape = tuple(x.shape) or (1,)
    spread = i.reshape((-1, *(1,) * (len(shape) - 1 - d)))
    spread = spread.expand((*shape[:d], i.numel(), *shape[d + 1 :]))
    found = scatter_reduce(
        x if x.dim() else x.reshape(shape),
        d,
        spread,
        s.reshape(tuple(spread.shape)),
        reduce,
        include_self=include_self,
    )
    found = found if x.dim() else found.reshape(())
    return deliver(found, out, input, index, source, exact=True)
