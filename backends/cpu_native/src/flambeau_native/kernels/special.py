"""Special functions."""

from __future__ import annotations

from flambeau_native.kernels._common import Array, Kernel, otherwise, unary

_NAMES = ("lgamma", "erfc", "erfinv", "i0", "i0e", "i1", "i1e")


def _make_polygamma() -> Kernel:
    general = otherwise("polygamma")
    trigamma = unary("polygamma", "trigamma", lambda a: general(a, 1))

    def polygamma(a: Array, n: int) -> Array:
        return trigamma(a) if n == 1 else general(a, n)

    return polygamma


KERNELS: dict[str, Kernel] = {name: unary(name) for name in _NAMES}
KERNELS["polygamma"] = _make_polygamma()
