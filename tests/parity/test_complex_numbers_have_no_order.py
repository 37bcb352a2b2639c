"""Complex numbers are equal or not; nothing else compares them, as in PyTorch."""

from __future__ import annotations

import pytest
import torch

import flambeau as fb

KINDS = "bool int64 float16 bfloat16 float32 float64 complex64 complex128".split()
CALLS = {
    "x < y": lambda t, x, y: x < y,
    "x <= y": lambda t, x, y: x <= y,
    "x > y": lambda t, x, y: x > y,
    "x >= y": lambda t, x, y: x >= y,
    "x == y": lambda t, x, y: x == y,
    "x != y": lambda t, x, y: x != y,
    "lt": lambda t, x, y: t.lt(x, y),
    "le": lambda t, x, y: t.le(x, y),
    "gt": lambda t, x, y: x.gt(y),
    "ge": lambda t, x, y: x.ge(y),
    "lt_": lambda t, x, y: x.clone().lt_(y),
    "ge_": lambda t, x, y: x.clone().ge_(y),
    "ne_": lambda t, x, y: x.clone().ne_(y),
    "lt into out": lambda t, x, y: t.lt(x, y, out=t.empty(0, dtype=t.bool)),
    "vmap of gt": lambda t, x, y: t.vmap(lambda x, y: x > y)(x[None], y[None]),
    "maximum": lambda t, x, y: t.maximum(x, y),
    "minimum": lambda t, x, y: t.minimum(x, y),
    "fmax": lambda t, x, y: t.fmax(x, y),
    "fmin": lambda t, x, y: x.fmin(y),
    "max of two": lambda t, x, y: t.max(x, y),
    "min of two": lambda t, x, y: x.min(y),
}


def outcome(call, t, kinds, shape):
    x, y = [t.ones(shape, dtype=getattr(t, kind)) for kind in kinds]
    try:
        return call(t, x, y).tolist()
    except RuntimeError:
        return None


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_only_equality_compares_complex_numbers(name, first, second):
    for shape in ((2,), (), (0,)):
        expected = outcome(CALLS[name], torch, (first, second), shape)
        assert outcome(CALLS[name], fb, (first, second), shape) == expected


@pytest.mark.parametrize("number", [1j, 1 + 0j, complex("nan"), 1, 2.5, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("x ")])
def test_numbers_follow_the_same_rule(name, kind, number):
    found = []
    for t in (torch, fb):
        try:
            found.append(CALLS[name](t, t.ones(2, dtype=getattr(t, kind)), number).tolist())
        except RuntimeError:
            found.append(None)
    assert found[0] == found[1]
    assert (found[0] is None) == (
        name[2:4] not in ("==", "!=") and (isinstance(number, complex) or "complex" in kind)
    )
