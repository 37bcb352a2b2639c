"""Numbers beside tensors of half precision are read in float32, and results rounded once."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import flambeau as fb

NUMBERS = (0.1, 0.37, -0.3, 1.7, 1 - 0.999, 1e-3, 0.9, 257, 3, 0.5)
PROGRAMS = {
    "x * number": lambda t, x, y, z, n: x * n,
    "number * x": lambda t, x, y, z, n: n * x,
    "mul_": lambda t, x, y, z, n: x.clone().mul_(n),
    "*= of a view": lambda t, x, y, z, n: x.clone().view(8, 8)[::2].mul_(n),
    "x / number": lambda t, x, y, z, n: x / n,
    "div_": lambda t, x, y, z, n: x.clone().div_(n),
    "number / x": lambda t, x, y, z, n: n / x,
    "x // number": lambda t, x, y, z, n: x // n,
    "x + number": lambda t, x, y, z, n: x + n,
    "x - number": lambda t, x, y, z, n: x - n,
    "number - x": lambda t, x, y, z, n: n - x,
    "x * float32 of no dimensions": lambda t, x, y, z, n: x * t.tensor(n, dtype=t.float32),
    "x * float64 of no dimensions": lambda t, x, y, z, n: x * t.tensor(n, dtype=t.float64),
    "add of a multiple": lambda t, x, y, z, n: x.add(y, alpha=n),
    "add_ of a multiple": lambda t, x, y, z, n: x.clone().add_(y, alpha=n),
    "sub of a multiple": lambda t, x, y, z, n: x.sub(y, alpha=n),
    "rsub of a multiple": lambda t, x, y, z, n: t.rsub(x, y, alpha=n),
    "lerp": lambda t, x, y, z, n: x.lerp(y, n),
    "lerp_": lambda t, x, y, z, n: x.clone().lerp_(y, n),
    "lerp by a tensor": lambda t, x, y, z, n: x.lerp(y, z),
    "addcmul": lambda t, x, y, z, n: x.addcmul(y, z, value=n),
    "addcmul_": lambda t, x, y, z, n: x.clone().addcmul_(y, z, value=n),
    "addcdiv": lambda t, x, y, z, n: x.addcdiv(y, z, value=n),
    "addcdiv_": lambda t, x, y, z, n: x.clone().addcdiv_(y, z, value=n),
}
FOLLOWED = [
    "x * number",
    "number * x",
    "x / number",
    "lerp",
]


def _operands(kind: str):
    torch.manual_seed(0)
    given = [torch.randn(64).to(getattr(torch, kind)) for _ in range(3)]
    return given, [fb.tensor(x.float().tolist()).to(getattr(fb, kind)) for x in given]


# The others' products are fused with their sums where a processor can.
FUSED = ("multiple", "lerp", "addcmul")
EXACT = [what for what in PROGRAMS if not any(word in what for word in FUSED)]


@pytest.mark.parametrize(
    ("what", "kind"),
    [(what, kind) for what in PROGRAMS for kind in ("bfloat16", "float16")]
    + [(what, "float32") for what in EXACT],
)
def test_numbers_give_pytorchs_bits(what, kind):
    theirs, ours = _operands(kind)
    for number in _numbers(what):
        expected = _run(what, torch, theirs, number)
        found = _run(what, fb, ours, number)
        assert str(found.dtype) == str(expected.dtype)
        assert found.tolist() == expected.tolist(), number


def _run(what: str, t: Any, operands: list[Any], number: float) -> Any:
    x, y, z = operands
    return PROGRAMS[what](t, x, y, z, number)


def _numbers(what: str) -> tuple[float, ...]:
    # PyTorch fuses a product with its sum where a processor can: float32's last bit decides halves.
    return (0.1, 0.37, 1 - 0.999, 0.5) if what.startswith("lerp") else NUMBERS


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("what", FOLLOWED)
def test_gradients_of_what_numbers_scaled_are_pytorchs_bits(what, kind):
    theirs, ours = _operands(kind)
    for number in _numbers(what):
        grads = []
        for t, (x, y, z) in ((torch, theirs), (fb, ours)):
            leaves = [x.detach().clone().requires_grad_(), y.detach().clone().requires_grad_()]
            _run(what, t, [*leaves, z], number).backward(z)
            grads.append([g.grad.tolist() for g in leaves if g.grad is not None])
        assert grads[0] == grads[1], number


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_numbers_that_a_half_cannot_hold_scale_it(kind):
    for number in (1e6, 1e-9, float("inf"), float("nan")):
        expected = (torch.tensor([1e-3, 3e4], dtype=getattr(torch, kind)) * number).tolist()
        found = (fb.tensor([1e-3, 3e4], dtype=getattr(fb, kind)) * number).tolist()
        assert repr(found) == repr(expected)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["addmm", "baddbmm"])
def test_products_beside_a_sum_are_rounded_once(name, kind):
    theirs, ours = _operands(kind)
    shape = (8, 8) if name == "addmm" else (1, 8, 8)
    for beta, alpha in ((1, 1), (-4.775, 2.0315), (0, 0.3)):
        expected = getattr(torch, name)(*[x.view(shape) for x in theirs], beta=beta, alpha=alpha)
        found = getattr(fb, name)(*[x.view(shape) for x in ours], beta=beta, alpha=alpha)
        assert found.tolist() == expected.tolist(), (beta, alpha)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("p", [0, 0.1, 0.5, 1, 2, 2.5, 3, -1, -2, -2.5, math.inf, -math.inf])
def test_norms_of_halves_are_summed_in_float32_and_rounded_once(dtype, p):
    drawn = torch.randn(33, 20, generator=torch.Generator().manual_seed(3))
    answers = []
    for lib in (torch, fb):
        x = lib.tensor(drawn.tolist()).to(getattr(lib, dtype))
        found = [lib.norm(x, p, dim=1), lib.norm(x.t(), p, 1), lib.linalg.vector_norm(x, p, 0)]
        if p > 0:
            found.append(lib.dist(x, x.flip(0), p))
            found.append(lib.nn.functional.normalize(x, p=p, dim=1))
        if 0 < p < math.inf:
            found.append(lib.renorm(x, p, 0, 2.5))
        answers.append([t.double().tolist() for t in found])
    assert answers[0] == answers[1]
