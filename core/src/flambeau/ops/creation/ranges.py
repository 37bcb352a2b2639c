"""Ranges: numbers at even distances or in even ratios."""

from __future__ import annotations

from typing import Any

from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.warning import warn
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau.ops.creation.creation import (
    arange,
    bounds_in,
    check_range,
    finished_range,
    linspace,
)
from flambeau.ops.declaration.public import public


@public(method=False)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` powers of `base` with exponents evenly spaced from `start` to `end`.

    >>> import flambeau as fb
    >>> fb.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if dtype is None:
        dtype = D.get_default_dtype() if out is None else out.dtype
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    if steps > 1:
        start, end = bounds_in(dtype, start, end)
    exponents = linspace(start, end, steps, dtype=D.float64, device=device)
    return finished_range(cast(base**exponents, dtype), requires_grad, out)


@public(method=False)
def range(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """start, start + step, ... up to `end`, which is included; deprecated, use `arange`.

    Raises:
        RuntimeError: step is 0, or its sign leads away from `end`.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.range(1, 3)
    tensor([1., 2., 3.])
    """
    warn(
        "range is deprecated because its end is included, unlike in Python; use arange, whose "
        "values are in [start, end)"
    )
    if end is None:
        start, end = 0, start
    check_range(start, end, step)
    if dtype is None:
        dtype = D.get_default_dtype() if out is None else out.dtype
    # Whole for integers of any width; 16-bit floats are computed in float32.
    kinds = {1: D.int64, 2: D.float32 if dtype.itemsize == 2 else D.float64}
    kind = kinds.get(dtype.category, dtype)
    start, end, step = bounds_in(kind, start, end, step)
    check_range(start, end, step)
    (span,) = bounds_in(kind, end - start)
    (last,) = bounds_in(kind, span / step)
    count = int(last) + 1
    places = arange(count, dtype=D.int64 if dtype.category < 2 else D.float64, device=device)
    return finished_range(cast(places * step + start, dtype), requires_grad, out)
