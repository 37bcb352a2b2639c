"""Functions of two arrays, element by element, beyond arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.casts import wide
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


def _widened(function: np.ufunc) -> Callable[[Array, Array], Array]:
    @quiet
    def kernel(a: Array, b: Array) -> Array:
        return np.asarray(function(wide(a), wide(b)), a.dtype)

    return kernel


def gcd(a: Array, b: Array) -> Any:
    """NumPy's; Euclid's rests have signs where an operand is the least number, and has no size."""
    found = np.gcd(a, b)
    least = np.iinfo(a.dtype).min
    if least and (odd := (a == least) | (b == least)).any():
        found, odd = np.asarray(found), np.asarray(odd)
        x, y = (np.abs(part[odd]) for part in np.broadcast_arrays(a, b))
        while (more := x != 0).any():
            x, y = np.where(more, np.fmod(y, np.where(more, x, 1)), 0), np.where(more, x, y)
        found[odd] = y
    return found


def lcm(a: Array, b: Array) -> Any:
    """NumPy's; without a sign where the number wraps, in the types that C does not widen first."""
    found = np.lcm(a, b)
    return np.abs(found) if a.dtype.kind == "i" and a.itemsize >= 4 else found


@quiet
def xlogy(a: Array, b: Array) -> Array:
    """a·log(b); 0 where a is, unless b is NaN.  The logarithm of a half is one."""
    logarithm = np.asarray(np.log(wide(b)), b.dtype)
    found = np.asarray(wide(a) * wide(logarithm))
    found = np.where((a == 0) & ~np.isnan(b), 0, found)
    return np.asarray(found, a.dtype)


KERNELS: dict[str, Callable[..., Any]] = {
    "logaddexp": _widened(np.logaddexp),
    "logaddexp2": _widened(np.logaddexp2),
    "xlogy": xlogy,
    "gcd": gcd,
    "lcm": lcm,
}
