"""What nodes have saved, by the names that PyTorch gives it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402 - imported beside its oracle

CASES = {
    "mul": (lambda m, a, b: a * b, ("self", "other")),
    "div": (lambda m, a, b: a / b, ("self", "other")),
    "pow": (lambda m, a, b: a.pow(2), ("self", "exponent")),
    "exp": (lambda m, a, b: a.exp(), ("result",)),
    "tanh": (lambda m, a, b: a.tanh(), ("result",)),
    "sin": (lambda m, a, b: a.sin(), ("self",)),
    "log": (lambda m, a, b: a.log(), ("self",)),
    "softmax": (lambda m, a, b: m.softmax(a, 0), ("result", "dim")),
    "add": (lambda m, a, b: a + b, ("self", "nothing")),
}


def saved(m, make, name, *, packed=False):
    a, b = (m.tensor(x, requires_grad=True) for x in ([0.5, 2.0, 1.5], [3.0, 0.25, 1.0]))
    hooks = m.autograd.graph.saved_tensors_hooks(lambda t: t * 4, lambda t: t)
    if packed:
        with hooks:
            y = make(m, a, b)
    else:
        y = make(m, a, b)
    try:
        value = getattr(y.grad_fn, f"_saved_{name}")
    except AttributeError:
        return "absent"
    if not isinstance(value, m.Tensor):
        return value
    return value.tolist(), value is a, value is b, value.requires_grad or packed


def agree(found, expected):
    if isinstance(expected, tuple):
        return found[0] == pytest.approx(expected[0], rel=1e-6) and found[1:] == expected[1:]
    return found == expected


@pytest.mark.parametrize(
    ("case", "name"), [(case, name) for case, (_, names) in CASES.items() for name in names]
)
def test_saved_values_have_pytorchs_names(case, name):
    found, expected = (saved(m, CASES[case][0], name) for m in (fb, torch))
    assert agree(found, expected), (found, expected)


@pytest.mark.parametrize("case", ["mul", "div", "pow", "exp", "tanh", "sin", "log", "softmax"])
def test_saved_values_that_were_packed_are_unpacked(case):
    make, (name, *_) = CASES[case]
    found, expected = (saved(m, make, name, packed=True) for m in (fb, torch))
    assert agree(found, expected), (found, expected)


@pytest.mark.parametrize("m", [fb, torch])
def test_saved_values_that_were_freed_or_written_to_are_refused(m):
    x = m.ones(2, requires_grad=True)
    y = x.exp().sin()
    node = y.grad_fn
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = node._saved_self
    d = x * 1
    z = d * d
    d.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = z.grad_fn._saved_self
