"""Ranges: numbers at even distances or in even ratios."""

from __future__ import annotations

import builtins
import math
import operator
import struct
from collections.abc import Callable
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked_sizes
from flambeau._dispatch.bound import home
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.promotion import fitting, python_number
from flambeau._dispatch.warning import warn
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import DeviceLike
from flambeau._types.layout import layout as Layout
from flambeau._types.spec import Spec
from flambeau.ops.creation.creation import (
    cannot_create,
    device_or,
    dtype_or,
    empty,
    finished,
    need_out,
)
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import primitive

_NUMBERS = {int, float}
_SINGLES, _DOUBLES = struct.Struct("<2f"), struct.Struct("<2d")
_MANY = 1 << 20
_FEW = 32  # numbers that are sooner computed one by one than by four kernels


@primitive(differentiable=False)
def _arange(start: object, step: object, length: int, dtype: DType) -> Spec:
    return Spec((length,), dtype)


@public(method=False)
def arange(
    start: float | None = None,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """start, start + step, ... below `end`; int64 if all three are integers.

    Raises:
        RuntimeError: step is 0, or its sign leads away from `end`.

    >>> import flambeau as fb
    >>> fb.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if end is None:
        start, end = 0, start
    elif start is None:
        start = 0
    if end is None or start is None:
        raise TypeError("arange() needs an end")
    whole = type(start) is type(end) is type(step) is int
    if not whole:
        start, end, step = (
            x.item() if isinstance(x, Tensor) else python_number(x) for x in (start, end, step)
        )
    if dtype is None:
        whole = whole or all(isinstance(x, int) for x in (start, end, step))
        dtype = D.int64 if whole else D.get_default_dtype()
        dtype = dtype if out is None else need_out(out).dtype
    elif type(dtype) is not DType:
        dtype = D.as_dtype(dtype)
    check_range(start, end, step)
    if dtype is D.int64 and not whole:  # counted as the numbers are made, from whole bounds
        start, end, step = bounds_in(dtype, start, end, step)
        check_range(start, end, step)
    try:
        length = math.ceil((end - start) / step)  # type: ignore[operator]
    except OverflowError:  # the quotient is infinite
        raise RuntimeError(
            f"arange(): invalid size, possible overflow: from {start} to {end} by {step}"
        ) from None
    if dtype.category == 1 and not whole:
        start, step = bounds_in(D.int64, start, step)
    be = home(device if out is None else device_or(device, out))
    try:
        checked_sizes((length,))
        native = be.arange(start, step, length, dtype)
    except be.error as error:
        raise cannot_create(f"{length} elements", error, (length,), dtype) from error
    t = wrap(be, native, dtype)
    if out is None:
        return t.requires_grad_() if requires_grad else t
    if out.numel() and out.numel() != length:
        warn(
            f"The number of elements in the out tensor of shape {list(out.shape)} is "
            f"{out.numel()} which does not match the computed number of elements {length}. The "
            "out tensor is resized to a vector of that many elements."
        )
    return finished_range(t, requires_grad, out)


@public(method=False)
def linspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` values evenly spaced from `start` to `end`, both included.

    >>> import flambeau as fb
    >>> fb.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if type(start) in _NUMBERS and type(end) in _NUMBERS and type(steps) is int and out is None:
        made = _in_one(start, end, steps, D.get_default_dtype() if dtype is None else dtype, device)
        if made is not None:
            return made.requires_grad_() if requires_grad else made
    return _linspace(
        start, end, steps, out=out, dtype=dtype, device=device, requires_grad=requires_grad
    )


def _in_one(start: Any, end: Any, n: int, dtype: DType, device: Any) -> Tensor | None:
    """`linspace` of numbers by the kernel that counts from both ends; None if there is none."""
    if not 0 < n <= _MANY or (dtype is not D.float32 and dtype is not D.float64):
        return None
    if dtype is D.float64 and not (float is type(start) is type(end)):
        return None  # what of whole numbers it holds is for the general way
    be = home(device)
    if (kernel := getattr(be.arange, "between", None)) is None:
        return None
    try:
        if n == 1:
            end = start
        numbers = _SINGLES if dtype is D.float32 else _DOUBLES
        start, end = numbers.unpack(numbers.pack(start, end))
        step = (end - start) / (n - 1) if n > 1 else 0.0
        return wrap(be, kernel(start, end, step, n, dtype), dtype)
    except (OverflowError, struct.error):  # for the words of the general way
        return None


@takes_as_annotated
def _linspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    *,
    out: Tensor | None,
    dtype: DType | None,
    device: DeviceLike | None,
    requires_grad: bool,
) -> Tensor:
    if isinstance(start, Tensor):
        start = start.item()
    if isinstance(end, Tensor):
        end = end.item()
    n = operator.index(steps)
    if n < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {n}")
    checked_sizes((n,))
    dtype = dtype_or(dtype, out)
    if n:
        start, end = bounds_in(dtype, start, end if n > 1 else start)
    # Counted from both ends, so that the last value is exactly `end`.
    step = (end - start) / (n - 1) if n > 1 else 0.0
    half = n // 2 or n
    if (dtype is D.float32 or dtype is D.float64) and n:
        be = home(device_or(device, out))
        try:
            if n <= _FEW and be.device.type != "meta":
                counted = builtins.range
                numbers = [start + step * i for i in counted(half)]
                numbers += [end - step * i for i in counted(n - 1 - half, -1, -1)]
                native = be.host_array(numbers, (n,), dtype)
            else:
                first = be.arange(start, step, half, dtype)
                rest = be.flip(be.arange(end, -step, n - half, dtype), (0,))
                native = be.cat((first, rest), 0)
        except be.error as error:
            raise cannot_create(f"{n} elements", error, (n,), dtype) from error
        return finished_range(wrap(be, native, dtype), requires_grad, out)

    if is_half(dtype) and n > 1:
        # As PyTorch counts them: in the dtype itself, which rounds every step.
        (count,) = bounds_in(dtype, n - 1)
        (step,) = bounds_in(dtype, bounds_in(dtype, end - start)[0] / count)
        i = step * arange(n - half, device=device_or(device, out)).to(dtype)
        be = i._be
        native = be.cat(((start + i[:half])._a, (end - i.flip(0))._a), 0)
        return finished_range(wrap(be, native, dtype), requires_grad, out)

    def value(i: int) -> Tensor | float:
        return start + step * i if i < half else end - step * (n - 1 - i)

    return finished_range(_vector(value, n, dtype, device_or(device, out)), requires_grad, out)


@public(method=False)
@takes_as_annotated
def logspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` powers of `base` with exponents evenly spaced from `start` to `end`.

    >>> import flambeau as fb
    >>> fb.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    dtype = dtype_or(dtype, out)
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    if steps > 1:
        start, end = bounds_in(dtype, start, end)
    exponents = linspace(start, end, steps, dtype=D.float64, device=device)
    return finished_range(cast(base**exponents, dtype), requires_grad, out)


@public(method=False)
@takes_as_annotated
def range(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
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
    start, end = (0, start) if end is None else (start, end)
    check_range(start, end, step)
    dtype = dtype_or(dtype, out)
    # Whole for integers of any width; 16-bit floats are computed in float32.
    kinds = {1: D.int64, 2: D.float32 if dtype.itemsize == 2 else D.float64}
    kind = kinds.get(dtype.category, dtype)
    start, end, step = bounds_in(kind, start, end, step)
    check_range(start, end, step)
    (span,) = bounds_in(kind, end - start)  # type: ignore[operator]
    (last,) = bounds_in(kind, span / step)
    count = int(last) + 1
    places = arange(count, dtype=D.int64 if dtype.category < 2 else D.float64, device=device)
    return finished_range(cast(places * step + start, dtype), requires_grad, out)


def finished_range(t: Tensor, requires_grad: bool, out: Tensor | None) -> Tensor:
    """`finished` for a vector, which an `out=` of as many elements takes in its own shape."""
    if out is not None and need_out(out).numel() == t.numel():
        t = t.reshape(tuple(out._a.shape))
    return finished(t, requires_grad, out)


def _vector(value: Callable[[int], Any], count: int, dtype: DType, device: Any) -> Tensor:
    """``value(i)`` for i below `count`; none is computed on ``meta``, nor before there is room."""
    t = empty((count,), dtype=dtype, device=device)
    if t.device.type == "meta":
        return t
    be = t._be
    return wrap(
        be, be.host_array([value(i) for i in builtins.range(count)], (count,), dtype), dtype
    )


def check_range(start: Any, end: Any, step: Any) -> None:
    """Refuse a range that never ends.

    Raises:
        RuntimeError: the step is 0 or leads away from `end`, or a bound is infinite or no number.
    """
    if step == 0:
        raise RuntimeError("step must be nonzero")
    backwards = False
    try:
        float(step)
        finite = math.isfinite(start) and math.isfinite(end)
        backwards = finite and (end - start) * step < 0
    except OverflowError:  # an integer beyond all floats
        finite = False
    if not finite:
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if backwards:
        raise RuntimeError(
            "upper bound and lower bound inconsistent with step sign: "
            f"start={start}, end={end}, step={step}"
        )


def bounds_in(dtype: DType, *numbers: object) -> tuple[Any, ...]:
    """The bounds of a range as its arithmetic takes them: numbers of `dtype`.

    Raises:
        RuntimeError: the dtype does not hold one.
    """
    if dtype is D.float32 and len(numbers) == 2:
        try:
            if type(numbers[0]) in _NUMBERS and type(numbers[1]) in _NUMBERS:
                return _SINGLES.unpack(_SINGLES.pack(*numbers))
        except (OverflowError, struct.error):  # for the words of the general way
            pass
    fitted = [fitting(number, dtype) for number in numbers]
    return tuple(D.unpack(D.pack(fitted, dtype), dtype) if dtype.category in (1, 2) else fitted)
