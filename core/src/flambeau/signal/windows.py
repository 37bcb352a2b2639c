"""Window functions by the number of their values.

Args of all functions:
    M: the number of values.
    sym: whether the window is symmetric, for filters; otherwise it is periodic, for transforms: the
        first M values of the symmetric window of M + 1.
    dtype: float32 or float64; default the default dtype.
    layout: only strided.
    device, requires_grad: of the result.

Below, k counts the values from 0 and N is the number of those of the symmetric window.

Raises, all functions:
    ValueError: M is negative, dtype or layout are others, or a parameter is outside of its domain.

Sources: F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier
transform, Proc. IEEE 66 (1978); A. H. Nuttall, Some windows with very good sidelobe behavior, IEEE
Trans. ASSP 29 (1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.layout import strided
from flambeau.ops.creation.ranges import _vector
from flambeau.ops.spectra.signal_windows import bessel_i0

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike
    from flambeau._types.layout import layout as Layout


__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


@takes_as_annotated
def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The triangle 1 - |2k/(N-1) - 1|.

    >>> import flambeau as fb
    >>> fb.signal.windows.bartlett(3)
    tensor([0., 1., 0.])
    """

    def value(k: float, n: float) -> float:
        return 1 - abs(2 * k / (n - 1) - 1)

    return _made("bartlett", M, value, sym, dtype, layout, device, requires_grad)


@takes_as_annotated
def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2πk/(N-1)) + 0.08 cos(4πk/(N-1)).

    >>> import flambeau as fb
    >>> fb.signal.windows.blackman(3)[1:2]
    tensor([1.])
    """
    options = {"layout": layout, "device": device, "requires_grad": requires_grad}
    return general_cosine(M, a=(0.42, 0.5, 0.08), sym=sym, dtype=dtype, **options)


@takes_as_annotated
def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """sin(π(k + 1/2)/N).

    >>> import flambeau as fb
    >>> fb.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """

    def value(k: float, n: float) -> float:
        return math.sin(math.pi * (k + 0.5) / n)

    return _made("cosine", M, value, sym, dtype, layout, device, requires_grad)


@takes_as_annotated
def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|k - center|/tau), with the middle of the window as the default center.

    Raises:
        ValueError: `tau` is not positive, or a symmetric window has a center.

    >>> import flambeau as fb
    >>> fb.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def value(k: float, n: float) -> float:
        return math.exp(-abs(k - ((n - 1) / 2 if center is None else center)) / tau)

    alone = math.exp(-abs(center or 0.0) / tau)
    return _made("exponential", M, value, sym, dtype, layout, device, requires_grad, alone)


@takes_as_annotated
def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-((k - (N-1)/2)/std)²/2).

    Raises:
        ValueError: `std` is not positive.

    >>> import flambeau as fb
    >>> fb.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def value(k: float, n: float) -> float:
        return math.exp(-0.5 * ((k - (n - 1) / 2) / std) ** 2)

    return _made("gaussian", M, value, sym, dtype, layout, device, requires_grad)


@takes_as_annotated
def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Σ_i (-1)^i a_i cos(2πik/(N-1)).

    Raises:
        ValueError: there are no coefficients.

    >>> import flambeau as fb
    >>> fb.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")

    def value(k: float, n: float) -> float:
        turn = 2 * math.pi * k / (n - 1)
        return sum((-1) ** i * w * math.cos(i * turn) for i, w in enumerate(weights))

    return _made("general_cosine", M, value, sym, dtype, layout, device, requires_grad)


@takes_as_annotated
def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(2πk/(N-1)).

    >>> import flambeau as fb
    >>> fb.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    options = {"layout": layout, "device": device, "requires_grad": requires_grad}
    return general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, dtype=dtype, **options)


@takes_as_annotated
def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.54 - 0.46 cos(2πk/(N-1)).

    >>> import flambeau as fb
    >>> fb.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    options = {"layout": layout, "device": device, "requires_grad": requires_grad}
    return general_cosine(M, a=(0.54, 0.46), sym=sym, dtype=dtype, **options)


@takes_as_annotated
def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """(1 - cos(2πk/(N-1))) / 2.

    >>> import flambeau as fb
    >>> fb.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    options = {"layout": layout, "device": device, "requires_grad": requires_grad}
    return general_cosine(M, a=(0.5, 0.5), sym=sym, dtype=dtype, **options)


@takes_as_annotated
def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2k/(N-1) - 1)²)) / I0(beta), with I0 the modified Bessel function.

    Raises:
        ValueError: `beta` is negative.

    >>> import flambeau as fb
    >>> fb.signal.windows.kaiser(3, beta=0.0)
    tensor([1., 1., 1.])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def value(k: float, n: float) -> float:
        root = math.sqrt(max(0.0, 1 - (2 * k / (n - 1) - 1) ** 2))
        return bessel_i0(beta * root) / bessel_i0(beta)

    return _made("kaiser", M, value, sym, dtype, layout, device, requires_grad)


@takes_as_annotated
def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of four cosines with sidelobes below -93 dB.

    >>> import flambeau as fb
    >>> fb.signal.windows.nuttall(3)[1:2]
    tensor([1.])
    """
    options = {"layout": layout, "device": device, "requires_grad": requires_grad}
    return general_cosine(
        M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), sym=sym, dtype=dtype, **options
    )


def _made(
    name: str,
    count: int,
    value: Callable[[float, float], float],
    sym: bool,
    dtype: DType | None,
    layout: Layout | None,
    device: object,
    requires_grad: bool,
    alone: float = 1.0,
) -> Tensor:
    """``value(k, N)`` for k below `count`; `alone` if there is one value only."""
    d = D.get_default_dtype() if dtype is None else dtype
    if count < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={count}")
    if layout is not None and layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if d not in (D.float32, D.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {d}")
    size = count if sym else count + 1
    t = _vector(lambda k: value(k, size) if count > 1 else alone, count, d, device)
    return t.requires_grad_(requires_grad)
