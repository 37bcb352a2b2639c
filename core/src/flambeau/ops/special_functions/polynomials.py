"""Orthogonal polynomials, by their recurrences: ``flambeau.special`` only.

The degree n may differ from element to element; fractions of it are dropped, and negative degrees
give 0.  The functions are differentiable in x.  Source: Abramowitz & Stegun, Handbook of
Mathematical Functions, table 22.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.promotion import result_type
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.pointwise.elementwise import where

_HIGHEST = 1 << 17
"""The recurrence takes a step a degree."""
_TRIED = 1 << 13
"""Steps for degrees beyond: most polynomials are no longer finite after them."""


class _Family(NamedTuple):
    """How a polynomial of degree 1 looks, and how degree k + 1 follows from k and k - 1."""

    first: Callable[[Tensor], Tensor]
    next: Callable[[int, Tensor, Tensor, Tensor], Tensor]


def _evaluated(
    name: str, family: _Family, x: Tensor, n: object, *, shifted: bool = False
) -> Tensor:
    tensors = [t for t in (x, n) if isinstance(t, Tensor)]
    if not tensors:
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(x).__name__}")
    dtype = result_type(x, n)
    dtype = dtype if dtype.fp else D.get_default_dtype()
    if dtype.is_complex:
        raise NotImplementedError(f'"{name}" is not implemented for complex numbers')
    like = tensors[0]
    x = x if isinstance(x, Tensor) else like.new_tensor(x, dtype=dtype)
    n = n.detach() if isinstance(n, Tensor) else like.new_tensor(n)
    x, degree = cast(x, D.float64), cast(n, D.int64)
    x = 2 * x - 1 if shifted else x
    before, value = x * 0 + 1, family.first(x)
    result = where(degree == 0, before, where(degree == 1, value, 0.0))
    known = degree.numel() and degree.device.type != "meta"
    highest = int(degree.amax().item()) if known else 1
    for k in range(1, highest if highest <= _HIGHEST else _TRIED):
        before, value = value, family.next(k, x, value, before)
        result = where(degree == k + 1, value, result)
        if k % 1024 == 0 and not (value.isfinite() | before.isfinite()).any().item():
            return cast(where(degree > k, value, result), dtype)  # it stays so for ever
    if highest > _HIGHEST:
        raise RuntimeError(f"{name}(): degrees go to {_HIGHEST}, but got {highest}")
    return cast(result, dtype)


def _twice(k: int, x: Tensor, value: Tensor, before: Tensor) -> Tensor:
    return 2 * x * value - before


_T = _Family(lambda x: x, _twice)
_U = _Family(lambda x: 2 * x, _twice)
_V = _Family(lambda x: 2 * x - 1, _twice)
_W = _Family(lambda x: 2 * x + 1, _twice)
_H = _Family(lambda x: 2 * x, lambda k, x, p, q: 2 * (x * p - k * q))
_HE = _Family(lambda x: x, lambda k, x, p, q: x * p - k * q)
_L = _Family(lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))
_P = _Family(lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))


def _public(
    name: str, family: _Family, doc: str, example: str, *, shifted: bool = False
) -> Callable[..., Tensor]:
    def function(input: Any, n: object, *, out: Tensor | None = None) -> Tensor:
        return deliver(_evaluated(name, family, input, n, shifted=shifted), out, input)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "flambeau.special"
    function.__doc__ = f"""{doc}

    `n` is a number or a tensor of degrees, and broadcasts with `input`.

    >>> import flambeau as fb
    >>> fb.special.{name}(fb.tensor([0.5, 2.0]), 3)
    {example}
    """
    return function


chebyshev_polynomial_t = _public(
    "chebyshev_polynomial_t",
    _T,
    "Chebyshev's polynomial of the first kind: Tₙ(cos θ) = cos nθ.",
    "tensor([-1., 26.])",
)
chebyshev_polynomial_u = _public(
    "chebyshev_polynomial_u",
    _U,
    "Chebyshev's polynomial of the second kind: Uₙ(cos θ) = sin (n+1)θ / sin θ.",
    "tensor([-1., 56.])",
)
chebyshev_polynomial_v = _public(
    "chebyshev_polynomial_v",
    _V,
    "Chebyshev's polynomial of the third kind: Vₙ(cos θ) = cos (n+½)θ / cos ½θ.",
    "tensor([-1., 41.])",
)
chebyshev_polynomial_w = _public(
    "chebyshev_polynomial_w",
    _W,
    "Chebyshev's polynomial of the fourth kind: Wₙ(cos θ) = sin (n+½)θ / sin ½θ.",
    "tensor([-1., 71.])",
)
shifted_chebyshev_polynomial_t = _public(
    "shifted_chebyshev_polynomial_t",
    _T,
    "Chebyshev's polynomial of the first kind for the interval [0, 1]: Tₙ(2x - 1).",
    "tensor([-0., 99.])",
    shifted=True,
)
shifted_chebyshev_polynomial_u = _public(
    "shifted_chebyshev_polynomial_u",
    _U,
    "Chebyshev's polynomial of the second kind for the interval [0, 1]: Uₙ(2x - 1).",
    "tensor([ -0., 204.])",
    shifted=True,
)
shifted_chebyshev_polynomial_v = _public(
    "shifted_chebyshev_polynomial_v",
    _V,
    "Chebyshev's polynomial of the third kind for the interval [0, 1]: Vₙ(2x - 1).",
    "tensor([  1., 169.])",
    shifted=True,
)
shifted_chebyshev_polynomial_w = _public(
    "shifted_chebyshev_polynomial_w",
    _W,
    "Chebyshev's polynomial of the fourth kind for the interval [0, 1]: Wₙ(2x - 1).",
    "tensor([ -1., 239.])",
    shifted=True,
)
hermite_polynomial_h = _public(
    "hermite_polynomial_h",
    _H,
    "Hermite's polynomial of the physicists: Hₙ₊₁ = 2x·Hₙ - 2n·Hₙ₋₁.",
    "tensor([-5., 40.])",
)
hermite_polynomial_he = _public(
    "hermite_polynomial_he",
    _HE,
    "Hermite's polynomial of the statisticians: Heₙ₊₁ = x·Heₙ - n·Heₙ₋₁.",
    "tensor([-1.3750,  2.0000])",
)
laguerre_polynomial_l = _public(
    "laguerre_polynomial_l",
    _L,
    "Laguerre's polynomial: (n+1)·Lₙ₊₁ = (2n+1-x)·Lₙ - n·Lₙ₋₁.",
    "tensor([-0.1458, -0.3333])",
)
legendre_polynomial_p = _public(
    "legendre_polynomial_p",
    _P,
    "Legendre's polynomial: (n+1)·Pₙ₊₁ = (2n+1)·x·Pₙ - n·Pₙ₋₁.",
    "tensor([-0.4375, 17.0000])",
)
