"""Rows of elementwise chains as users write them, compiled, against torch's calls one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from harness import Row, Setup

Chain = tuple[Callable[..., Any], Callable[[Any, int], tuple[Any, ...]]]


def gelu(x: Any) -> Any:
    """GELU by tanh.  Source: Hendrycks and Gimpel, 2016."""
    return 0.5 * x * (1.0 + (math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3.0)).tanh())


def gates(sums: Any, c: Any) -> Any:
    """The gates of an LSTM."""
    i, f, g, o = sums.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    """A step of Adam.  Source: Kingma and Ba, 2014."""
    m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return p - 0.01 * (m / 0.9) / ((v / 0.99).sqrt() + 1e-8), m, v


def norm(x: Any, weight: Any, bias: Any) -> Any:
    """Layer normalisation.  Source: Ba, Kiros and Hinton, 2016."""
    d = x - x.mean(-1, keepdim=True)
    return d * ((d * d).mean(-1, keepdim=True) + 1e-5).rsqrt() * weight + bias


CHAINS: dict[str, Chain] = {
    "GELU": (gelu, lambda library, n: (library.randn(n),)),
    "LSTM gates": (
        gates,
        lambda library, n: (library.randn(n // 50, 200), library.randn(n // 50, 50)),
    ),
    "Adam": (adam, lambda library, n: (*(library.randn(n) for _ in range(3)), library.rand(n))),
    "layer norm": (
        norm,
        lambda library, n: (
            library.randn(n // 50, 50),
            library.randn(50),
            library.randn(50),
        ),
    ),
}


def _setup(name: str, size: int) -> Setup:
    def setup(library: Any) -> dict[str, Any]:
        library.manual_seed(0)
        function, make = CHAINS[name]
        if library.__name__ == "flambeau":
            function = library.compile(function)
        args = make(library, size)
        for _ in range(3):
            function(*args)
        return {"f": function, "args": args}

    return setup


ROWS = [
    Row(f"{name} by hand, compiled, {size:.0e}", "f(*args)", _setup(name, size))
    for name in CHAINS
    for size in (100, 10_000, 1_000_000)
]
