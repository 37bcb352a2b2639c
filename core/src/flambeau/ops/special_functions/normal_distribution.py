"""The normal distribution function and its relatives, and entropies: ``flambeau.special`` only.

The formulas compute in float64 and are differentiable by their parts.  Source: Abramowitz & Stegun,
Handbook of Mathematical Functions, chapters 7 and 26.
"""

from __future__ import annotations

import math
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast, slow_unary
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import binary, exp, isnan, log, log1p, where
from flambeau.ops.special_functions.special import erfc, erfinv

_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def _wide(name: str, input: Tensor) -> tuple[Tensor, Any]:
    x = need_tensor(input, name, "input")
    dtype = x.dtype if x.dtype.fp else D.get_default_dtype()
    return cast(x, D.float64), dtype


def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The probability that a standard normal variable is smaller: erfc(-x/√2) / 2.

    >>> import flambeau as fb
    >>> fb.special.ndtr(fb.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """
    x, dtype = _wide("ndtr", input)
    return deliver(cast(erfc(x * -_ROOT_HALF) * 0.5, dtype), out, input, share="anything")


def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `ndtr`; infinite at 0 and 1, nan outside.

    >>> import flambeau as fb
    >>> fb.special.ndtri(fb.tensor([0.5, 0.8413]))
    tensor([0.0000, 0.9998])
    """
    return deliver(slow_unary("ndtri", need_tensor(input, "ndtri", "input")), out, input)


@composite(
    promotes="float",
    refuses_complex='"ndtri" is not implemented for complex numbers',
    title="SpecialNdtriBackward0",
)
def _ndtri(self: Tensor) -> Tensor:
    return cast(_quantile(cast(self, D.float64)), self.dtype)


@_ndtri.gradient
def _(F, g, result):
    density = F.exp(F.mul(F.mul(result, result), F.scalar(0.5, result)))
    return F.mul(g, F.mul(density, F.scalar(math.sqrt(2 * math.pi), result)))


def _quantile(p: Tensor) -> Tensor:
    # Where 2p - 1 has lost digits, two Newton steps on log Φ find them again.
    upper = p > 0.5
    tail = where(upper, 1 - p, p)
    low = (tail > 0) & (tail < 1e-3)
    near = erfinv(where(low, 0.5, 2 * tail - 1)) * math.sqrt(2)
    size = (-2 * log(where(low, tail, 1e-4))).sqrt()
    far = -(size - (log(size) + _LOG_ROOT_2PI) / size)
    for _ in range(5):
        value = _log_lower(far)
        far = far - (value - log(where(low, tail, 1e-4))) * exp(
            value + far * far * 0.5 + _LOG_ROOT_2PI
        )
    found = where(low, far, near)
    return where(upper, -found, found)


def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x²)·erfc(x), which decays as 1/x where erfc underflows.

    >>> import flambeau as fb
    >>> fb.special.erfcx(fb.tensor([0.0, 10.0]))
    tensor([1.0000, 0.0561])
    """
    return deliver(slow_unary("erfcx", need_tensor(input, "erfcx", "input")), out, input)


@composite(
    promotes="float",
    refuses_complex='"erfcx" is not implemented for complex numbers',
    title="SpecialErfcxBackward0",
)
def _erfcx(self: Tensor) -> Tensor:
    return cast(_scaled_tail(cast(self, D.float64)), self.dtype)


@_erfcx.gradient
def _(F, g, self, result):
    twice = F.mul(F.mul(self, result), F.scalar(2, self))
    return F.mul(g, F.sub(twice, F.scalar(2 / math.sqrt(math.pi), self)))


def _scaled_tail(x: Tensor) -> Tensor:
    near = where(x < 5, x, 0.0)
    small = exp(near * near) * erfc(near)
    # The continued fraction of A&S 7.1.14, from its far end.
    far = where(x < 5, 5.0, x)
    fraction = far
    for k in range(60, 0, -1):
        fraction = far + (0.5 * k) / fraction
    large = (1 / math.sqrt(math.pi)) / fraction
    return where(isnan(x), x, where(x < 5, small, large))


def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log of `ndtr`, also where that underflows.

    >>> import flambeau as fb
    >>> fb.special.log_ndtr(fb.tensor([-40.0, 0.0]))
    tensor([-8.0461e+02, -6.9315e-01])
    """
    return deliver(slow_unary("log_ndtr", need_tensor(input, "log_ndtr", "input")), out, input)


@composite(
    promotes="float",
    refuses_complex='"log_ndtr" is not implemented for complex numbers',
    title="SpecialLogNdtrBackward0",
)
def _log_ndtr(self: Tensor) -> Tensor:
    return cast(_log_lower(cast(self, D.float64)), self.dtype)


@_log_ndtr.gradient
def _(F, g, self):
    scaled = F.erfcx(F.mul(self, F.scalar(-_ROOT_HALF, self)))
    return F.mul(g, F.div(F.scalar(math.sqrt(2 / math.pi), self), scaled))


@_ndtri.samples
def _(S):
    return S.pointwise(S.Arr((2, 3), low=0.05, high=0.95))


@_erfcx.samples
@_log_ndtr.samples
def _(S):
    return S.pointwise(S.Arr((2, 3)))


def _log_lower(x: Tensor) -> Tensor:
    low = x < -1
    near = log1p(-0.5 * erfc(where(low, 0.0, x) * _ROOT_HALF))
    far = where(low, x, -1.0)
    return where(low, log(_scaled_tail(far * -_ROOT_HALF) * 0.5) - far * far * 0.5, near)


def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x·log(x): 0 at 0, -inf below.

    >>> import flambeau as fb
    >>> fb.special.entr(fb.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """
    x, dtype = _wide("entr", input)
    inside = where(x > 0, x, 1.0)
    found = where(x > 0, -x * log(inside), where(x < 0, -math.inf, 0.0 * x))
    return deliver(cast(where(isnan(x), x, found), dtype), out, input)


def xlog1py(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """input·log1p(other), 0 where `input` is 0 and `other` is not nan.

    >>> import flambeau as fb
    >>> fb.special.xlog1py(fb.tensor([0.0, 2.0]), fb.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """
    y = (
        other
        if isinstance(other, Tensor)
        else need_tensor(input, "xlog1py", "input").new_full((), other)
    )
    if not y.dtype.fp:
        y = cast(y, D.get_default_dtype())
    x = input if isinstance(input, Tensor) else y.new_full((), input)
    # As in `xlogy`.
    nothing = x == 0
    infinite = nothing & ((y <= -1) | (y == math.inf))
    product = where(infinite, 0.0, binary("mul", x, log1p(where(infinite, 0.0, y))))
    return deliver(where(nothing, product + 0.0, product), out, input, other)
