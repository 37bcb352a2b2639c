"""Functions of single elements, and of pairs of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.array_api._dtypes import SIGNED, UNSIGNED, promoted, with_number

_UNARY = {
    name: name
    for name in """abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor imag
    isfinite isinf isnan log log10 log1p log2 logical_not real reciprocal round signbit sin sinh
    sqrt square tan tanh trunc""".split()
} | {
    "bitwise_invert": "bitwise_not",
    "conj": "conj_physical",
    "negative": "neg",
    "positive": "positive",
    "sign": "sgn",
}
_BINARY = {
    name: name
    for name in """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift
    bitwise_xor copysign divide floor_divide greater greater_equal hypot less less_equal logaddexp
    logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder
    subtract""".split()
} | {"equal": "eq"}

__all__ = ["clip", *_BINARY, *_UNARY]


def pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands, of which one may be a number, as tensors of the dtype of both."""
    if not isinstance(x1, Tensor):
        dtype = with_number(x2.dtype, x1)
        return fb.full((), x1, dtype=dtype, device=x2.device), x2.to(dtype)
    if not isinstance(x2, Tensor):
        dtype = with_number(x1.dtype, x2)
        return x1.to(dtype), fb.full((), x2, dtype=dtype, device=x1.device)
    dtype = promoted(x1.dtype, x2.dtype)
    return x1.to(dtype), x2.to(dtype)


def _unary(name: str, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    @wraps(function, assigned=())
    def of_elements(x: Tensor, /) -> Tensor:
        return function(x)

    return _named(of_elements, name, f"``{function.__name__.strip('_')}`` of each element.")


def _binary(name: str, function: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    @wraps(function, assigned=())
    def of_pairs(x1: object, x2: object, /) -> Tensor:
        return function(*pair(x1, x2))

    return _named(
        of_pairs, name, f"``{function.__name__.strip('_')}`` of pairs, in the dtype of both."
    )


def _named(function: Any, name: str, said: str) -> Callable[..., Any]:
    del function.__wrapped__  # its signature is the standard's
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = __name__, said
    return function


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    if not x1.dtype.is_floating_point:
        return fb.floor_divide(x1, x2)
    limit = fb.isinf(x1) | fb.isinf(x2)  # nan in PyTorch's function
    return fb.where(limit, fb.floor(x1 / x2), fb.floor_divide(x1, x2))


def _remainder(x1: Tensor, x2: Tensor) -> Tensor:
    found = fb.remainder(x1, x2)
    if not x1.dtype.is_floating_point:
        return found
    return fb.where(found == 0, fb.copysign(found, x2), found)  # the sign of the divisor


def _sign(x: Tensor) -> Tensor:
    return fb.where(fb.isnan(x), x, fb.sgn(x))


globals().update({n: _unary(n, getattr(fb, f)) for n, f in _UNARY.items()})
globals().update({n: _binary(n, getattr(fb, f)) for n, f in _BINARY.items()})


floor_divide = _binary("floor_divide", _floor_divide)
remainder = _binary("remainder", _remainder)
sign = _unary("sign", _sign)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of complex elements."""
    if not x.dtype.is_complex:
        raise TypeError(f"imag(): needs complex elements, not {x.dtype}")
    return fb.imag(x).clone()


def real(x: Tensor, /) -> Tensor:
    """The real part of each element."""
    return fb.real(x).clone() if x.dtype.is_complex else x


def clip(x: Tensor, /, min: object = None, max: object = None) -> Tensor:
    """Each element, moved to the nearest bound if it is beyond it; bounds broadcast.

    >>> import flambeau as fb
    >>> fb.array_api.clip(fb.tensor([1, 5, 9]), 2, 7)
    tensor([2, 5, 7])
    """
    bounds = [b for b in (min, max) if b is not None]
    shapes = [tuple(b.shape) for b in bounds if isinstance(b, Tensor)]
    out = fb.broadcast_to(x, fb.broadcast_shapes(tuple(x.shape), *shapes)).clone()
    for bound, choose in ((min, fb.maximum), (max, fb.minimum)):
        if bound is not None:
            out = choose(out, _bound(x, bound))
    return out


def _bound(x: Tensor, bound: Any) -> Tensor:
    # A bound beyond all integers of the dtype bounds nothing.
    if x.dtype.is_floating_point or x.dtype is fb.bool:
        if isinstance(bound, Tensor):
            return bound.to(x.device, x.dtype)
        return fb.full((), bound, dtype=x.dtype, device=x.device)
    low, high = fb.iinfo(x.dtype).min, fb.iinfo(x.dtype).max
    if not isinstance(bound, Tensor):
        return fb.full((), min(max(bound, low), high), dtype=x.dtype, device=x.device)
    if bound.dtype in SIGNED + UNSIGNED:
        own = fb.iinfo(bound.dtype)
        bound = bound.clamp(max(low, own.min), min(high, own.max))
    return bound.to(x.device, x.dtype)


all_take_as_annotated(globals())
