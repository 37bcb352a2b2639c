"""Complex operands on both libraries, and whether results and gradients of both orders agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flambeau as fb

Call = Callable[..., Any]


def values(count: int, seed: int = 0, *, real: bool = False) -> list[Any]:
    """Numbers of every quadrant, none of them near zero or an axis."""
    found = []
    for i in range(count):
        size, direction = 0.4 + 0.37 * ((i * 7 + seed) % 5), 0.3 + 1.1 * i + 0.7 * seed
        z = complex(size * math.cos(direction), size * math.sin(direction))
        found.append(z.real + 0.01 if real else z)
    return found


def both(shape: tuple[int, ...], kind: str, seed: int = 0) -> tuple[Any, Any]:
    """One array on both libraries: ``"c"`` complex, ``"r"`` real, ``"p"`` positive."""
    numbers = values(math.prod(shape), seed, real=kind != "c")
    numbers = [abs(n) for n in numbers] if kind == "p" else numbers
    name = "complex128" if kind == "c" else "float64"
    return tuple(
        t.tensor(numbers, dtype=getattr(t, name)).reshape(shape).requires_grad_()
        for t in (fb, torch)
    )


def plain(tensor: Any) -> list[Any]:
    return tensor.detach().flatten().tolist()


def assert_close(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    for a, b in zip(plain(ours), plain(theirs), strict=True):
        assert a == pytest.approx(b, rel=tolerance, abs=tolerance, nan_ok=True)


def weights(t: Any, like: Any) -> Any:
    """Distinct gradients of the result's own dtype."""
    made = values(like.numel(), 3, real=not like.is_complex())
    return t.tensor(made, dtype=like.dtype).reshape(tuple(like.shape))


def check(call: Call, kinds: list[tuple[tuple[int, ...], str]]) -> None:
    """Values, gradients, and gradients of a weighted sum of the gradients."""
    pairs = [both(shape, kind, i) for i, (shape, kind) in enumerate(kinds)]
    found = []
    for t, inputs in ((fb, [p[0] for p in pairs]), (torch, [p[1] for p in pairs])):
        result = call(t, *inputs)
        seed = weights(t, result).requires_grad_()
        first = t.autograd.grad(result, inputs, seed, create_graph=True)
        total = sum((g.abs() ** 2).sum() for g in first)
        wanted = [*inputs, seed]
        second = [
            t.zeros_like(x) if g is None else g
            for x, g in zip(wanted, t.autograd.grad(total, wanted, allow_unused=True), strict=True)
        ]
        found.append([result, *first, *second])
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs)
