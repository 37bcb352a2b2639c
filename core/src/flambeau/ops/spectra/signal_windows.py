"""Window functions for spectral analysis.

A *periodic* window of n values is the first n of the symmetric one of n + 1, as a Fourier transform
wants it.  Source: F. J. Harris, On the use of windows for harmonic analysis with the discrete
Fourier transform, Proc. IEEE 66 (1978).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import DeviceLike
from flambeau._types.layout import layout as Layout
from flambeau.ops.creation.creation import is_sparse
from flambeau.ops.creation.ranges import _vector
from flambeau.ops.declaration.public import public


@public(method=False)
@takes_as_annotated
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The triangle 1 - |2k/(N-1) - 1|.

    Raises:
        RuntimeError: the length is negative, or the dtype not floating.

    >>> import flambeau as fb
    >>> fb.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    value = lambda x: 1 - abs(2 * x - 1)  # noqa: E731
    return _window(
        "bartlett_window", window_length, periodic, value, dtype, layout, device, requires_grad
    )


@public(method=False)
@takes_as_annotated
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2πk/(N-1)) + 0.08 cos(4πk/(N-1)).

    >>> import flambeau as fb
    >>> fb.blackman_window(2)[1:]
    tensor([1.])
    """

    def value(x: float) -> float:
        return 0.42 - 0.5 * math.cos(2 * math.pi * x) + 0.08 * math.cos(4 * math.pi * x)

    return _window(
        "blackman_window", window_length, periodic, value, dtype, layout, device, requires_grad
    )


@public(method=False)
@takes_as_annotated
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - beta cos(2πk/(N-1)).

    >>> import flambeau as fb
    >>> fb.hamming_window(2)
    tensor([0.0800, 1.0000])
    """

    def value(x: float) -> float:
        return alpha - beta * math.cos(2 * math.pi * x)

    return _window(
        "hamming_window", window_length, periodic, value, dtype, layout, device, requires_grad
    )


@public(method=False)
@takes_as_annotated
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """(1 - cos(2πk/(N-1))) / 2.

    >>> import flambeau as fb
    >>> fb.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    def value(x: float) -> float:
        return 0.5 - 0.5 * math.cos(2 * math.pi * x)

    return _window(
        "hann_window", window_length, periodic, value, dtype, layout, device, requires_grad
    )


@public(method=False)
@takes_as_annotated
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2k/(N-1) - 1)²)) / I0(beta), with I0 the modified Bessel function.

    >>> import flambeau as fb
    >>> fb.kaiser_window(3, periodic=False, beta=0.0)
    tensor([1., 1., 1.])
    """

    def value(x: float) -> float:
        return bessel_i0(beta * math.sqrt(max(0.0, 1 - (2 * x - 1) ** 2))) / bessel_i0(beta)

    return _window(
        "kaiser_window", window_length, periodic, value, dtype, layout, device, requires_grad
    )


def bessel_i0(x: float) -> float:
    """Σ_m ((x/2)^m / m!)², all of whose terms are positive."""
    total = term = 1.0
    m = 0
    while term > total * 2**-60:
        m += 1
        term *= (x / (2 * m)) ** 2
        total += term
    return total


def _window(
    name: str,
    length: int,
    periodic: bool,
    value: Callable[[float], float],
    dtype: DType | None,
    layout: Layout | None,
    device: object,
    requires_grad: bool,
) -> Tensor:
    """`value` at k/(N-1) for k below `length`."""
    n = operator.index(length)
    if is_sparse(name, layout):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    d = D.get_default_dtype() if dtype is None else D.as_dtype(dtype)
    if not d.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {d}")
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    last = n if periodic else n - 1
    t = _vector(lambda k: value(k / last) if n > 1 else 1.0, n, d, device)
    return t.requires_grad_(requires_grad)
