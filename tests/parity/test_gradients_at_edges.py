"""Gradients where a derivative is zero or none exists: a history all the same, and no NaN."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, derivatives, ours_of  # noqa: E402

ROWS = torch.tensor([[1.0, -2.0], [0.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
ORDERS = (0, 0.5, 1, 1.5, 2, 2.5, 3, float("inf"), -float("inf"), -1, -2)
CALLS = {
    **{f"norm {p}": lambda t, x, p=p: t.norm(x, p) for p in ORDERS},
    **{f"norm {p} along 0": lambda t, x, p=p: t.norm(x, p, 0) for p in ORDERS},
    **{f"norm {p} along 1": lambda t, x, p=p: t.norm(x, p, 1) for p in ORDERS},
    **{f"vector_norm {p}": lambda t, x, p=p: t.linalg.vector_norm(x, p, 1) for p in ORDERS},
    **{f"norm of zeros {p}": lambda t, x, p=p: t.norm(x * 0, p) for p in ORDERS if p >= 0},
    **{f"dist {p}": lambda t, x, p=p: t.dist(x, t.zeros_like(x), p) for p in ORDERS},
    **{f"renorm {p}": lambda t, x, p=p: t.renorm(x, p, 0, 1.0) for p in ORDERS if 0 < p < 9},
    "normalize": lambda t, x: t.nn.functional.normalize(x, 1.5),
    "pairwise_distance": lambda t, x: t.nn.functional.pairwise_distance(x, x * 1, 3.0, 0.0),
    "matrix_power": lambda t, x: t.matrix_power(x[:2], 0),
    "linalg.matrix_power": lambda t, x: t.linalg.matrix_power(x[:2], 0),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_the_gradient_is_that_of_pytorch(name, device):
    theirs = ROWS.clone().requires_grad_()
    ours = ours_of(theirs, device)
    expected, found = CALLS[name](torch, theirs), CALLS[name](fb, ours)
    assert found.requires_grad is expected.requires_grad is True
    assert_same(found, expected)
    assert_same(
        derivatives(fb, [found], [ours], False), derivatives(torch, [expected], [theirs], False)
    )


@pytest.mark.parametrize("name", CALLS)
def test_complex_numbers_have_such_gradients_too(name):
    if name.startswith(("renorm", "normalize", "pairwise")):
        return
    theirs = (ROWS + 1j * ROWS.flip(1) * (ROWS != 0)).requires_grad_()
    ours = ours_of(theirs)
    expected, found = CALLS[name](torch, theirs), CALLS[name](fb, ours)
    assert found.requires_grad is True
    assert_same(found, expected)
    made = derivatives(fb, [found.abs()], [ours], False)
    assert_same(made, derivatives(torch, [expected.abs()], [theirs], False))
