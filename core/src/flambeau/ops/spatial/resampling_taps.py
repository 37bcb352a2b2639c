"""Where and with which weights resampling along one dimension reads its input.

Positions are computed in the precision in which PyTorch computes them, because rounding decides
which element is the nearest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor

Places = tuple[tuple[int, ...], ...]  # per tap, the element that each output reads
Weights = tuple[tuple[float, ...], ...] | None  # per tap, its factor; None for one tap of factor 1


def _single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _double(value: float) -> float:
    return value


@lru_cache(maxsize=256)
def taps(
    mode: str,
    size: int,
    count: int,
    scale: float | None,
    align_corners: bool,
    antialias: bool,
    single: bool,
) -> tuple[Places, Weights]:
    """Places and weights for `count` outputs from `size` elements.

    `scale` is the factor by which the user asked to enlarge, if one was given; `single` says
    whether positions are rounded to float32.
    """
    rounded = _single if single else _double
    if mode in ("nearest", "nearest-exact"):
        return (_nearest(size, count, scale, mode == "nearest-exact", rounded),), None
    step = _step(size, count, scale, align_corners, rounded)
    if antialias:
        return _filtered(size, count, step, mode == "cubic", rounded)
    found = (_cubic if mode == "cubic" else _linear)(size, count, step, align_corners, rounded)
    places, weights = zip(*found, strict=True)
    return tuple(zip(*places, strict=True)), tuple(zip(*weights, strict=True))


def _nearest(
    size: int, count: int, scale: float | None, exact: bool, rounded: Callable[[float], float]
) -> tuple[int, ...]:
    step = rounded(1.0 / scale) if scale else rounded(size / count)
    offset = 0.5 if exact else 0.0
    return tuple(min(floor(rounded((i + offset) * step)), size - 1) for i in range(count))


def _step(
    size: int, count: int, scale: float | None, align: bool, rounded: Callable[[float], float]
) -> float:
    """How far apart in the input neighbouring outputs are."""
    if align:
        return rounded((size - 1) / (count - 1)) if count > 1 else 0.0
    return rounded(1.0 / scale) if scale else rounded(size / count)


def _linear(
    size: int, count: int, step: float, align: bool, rounded: Callable[[float], float]
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    found = []
    for i in range(count):
        at = step * i if align else step * (i + 0.5) - 0.5
        at = rounded(max(at, 0.0))
        low = min(int(at), size - 1)
        part = min(max(at - low, 0.0), 1.0)
        found.append(((low, min(low + 1, size - 1)), (1.0 - part, part)))
    return found


def _cubic(
    size: int, count: int, step: float, align: bool, rounded: Callable[[float], float]
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    found = []
    for i in range(count):
        at = rounded(step * i if align else step * (i + 0.5) - 0.5)
        low = floor(at)
        places = tuple(min(max(low + k, 0), size - 1) for k in (-1, 0, 1, 2))
        weights = tuple(cubic(low + k - at, -0.75) for k in (-1, 0, 1, 2))
        found.append((places, weights))
    return found


def cubic(x: float, a: float) -> float:
    """The cubic convolution kernel (Keys 1981, doi 10.1109/TASSP.1981.1163711)."""
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((x - 5) * x + 8) * x * a - 4 * a if x < 2 else 0.0


def _filtered(
    size: int, count: int, step: float, is_cubic: bool, rounded: Callable[[float], float]
) -> tuple[Places, Weights]:
    """Weighted means over supports that grow with the step, so that nothing is skipped."""
    reach = (2.0 if is_cubic else 1.0) * max(step, 1.0)
    length = ceil(reach) * 2 + 1
    places, weights = [], []
    for i in range(count):
        center = rounded(step * (i + 0.5))
        first = max(int(center - reach + 0.5), 0)
        span = min(min(int(center + reach + 0.5), size) - first, length)
        offsets = [(k + first - center + 0.5) / max(step, 1.0) for k in range(span)]
        raw = [cubic(x, -0.5) if is_cubic else max(1.0 - abs(x), 0.0) for x in offsets]
        total = sum(raw) or 1.0
        rest = length - span
        places.append([*range(first, first + span), *[first] * rest])
        weights.append([*(w / total for w in raw), *[0.0] * rest])
    return tuple(zip(*places, strict=True)), tuple(zip(*weights, strict=True))
