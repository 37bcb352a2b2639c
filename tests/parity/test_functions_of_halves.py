"""Functions of tensors of half precision are computed in float32, and rounded once."""

from __future__ import annotations

import pytest
import torch

import flambeau as fb

# Each of libraries `t` (PyTorch or flambeau), and of two tensors of 16-bit floats, x and y.
FUNCTIONS = {
    "celu": lambda t, x, y: t.nn.functional.celu(x, 0.7),
    "copysign": lambda t, x, y: t.copysign(x, y),
    "elu": lambda t, x, y: t.nn.functional.elu(x, 0.7),
    "glu": lambda t, x, y: t.nn.functional.glu(x),
    "hardshrink": lambda t, x, y: t.nn.functional.hardshrink(x, 0.3),
    "hardsigmoid": lambda t, x, y: t.nn.functional.hardsigmoid(x),
    "hardswish": lambda t, x, y: t.nn.functional.hardswish(x),
    "hardtanh": lambda t, x, y: t.nn.functional.hardtanh(x, -0.3, 0.7),
    "hypot": lambda t, x, y: t.hypot(x, y),
    "leaky_relu": lambda t, x, y: t.nn.functional.leaky_relu(x, 0.3),
    "logaddexp": lambda t, x, y: t.logaddexp(x, y),
    "logaddexp2": lambda t, x, y: t.logaddexp2(x, y),
    "logcumsumexp": lambda t, x, y: t.logcumsumexp(x, -1),
    "logsigmoid": lambda t, x, y: t.nn.functional.logsigmoid(x),
    "mish": lambda t, x, y: t.nn.functional.mish(x),
    "power of 3": lambda t, x, y: x**3,
    "relu6": lambda t, x, y: t.nn.functional.relu6(x),
    "silu": lambda t, x, y: t.nn.functional.silu(x),
    "softplus": lambda t, x, y: t.nn.functional.softplus(x, 1.3),
    "softshrink of .1": lambda t, x, y: t.nn.functional.softshrink(x, 0.1),
    "softshrink of .3": lambda t, x, y: t.nn.functional.softshrink(x, 0.3),
    "softsign": lambda t, x, y: t.nn.functional.softsign(x),
    "std": lambda t, x, y: t.std(x, 0, keepdim=True),
    "tanhshrink": lambda t, x, y: t.nn.functional.tanhshrink(x),
    "xlogy": lambda t, x, y: t.xlogy(x, y.abs()),
}
PARTS = {"copysign", "glu", "hypot", "logsigmoid", "softsign", "tanhshrink", "xlogy"}
PARTS |= {"logaddexp", "logaddexp2", "logcumsumexp", "power of 3", "std"}
"""Functions whose gradients PyTorch itself puts together from rounded parts."""


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("what", FUNCTIONS)
def test_functions_of_halves_and_their_gradients_are_rounded_once(what, kind):
    drawn = torch.Generator().manual_seed(6)
    numbers = [torch.randn(10, 30, generator=drawn) * 2 for _ in range(3)]
    answers = []
    for t in (torch, fb):
        x, y, g = (t.tensor(n.tolist()).to(getattr(t, kind)) for n in numbers)
        x.requires_grad_()
        found = FUNCTIONS[what](t, x, y)
        found.backward(g[: found.shape[0], : found.shape[1]])
        parts = [found.detach()] if what in PARTS else [found.detach(), x.grad]
        assert all(part.dtype == getattr(t, kind) for part in parts)
        answers.append([_places(part.tolist(), kind) for part in parts])
    for expected, got in zip(*answers, strict=True):
        # The last bit of float32, in which processors differ, is one half's in fifty.
        apart = (expected - got).abs()
        assert apart.max() <= 1
        assert apart.count_nonzero() <= 6


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("what", sorted(FUNCTIONS))
def test_functions_have_pytorchs_gradients_at_their_corners(what, kind):
    corners = [-6.0, -3.0, -1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 0.7, 1.0, 3.0, 6.0, 20.0, -20.0]
    answers = []
    for t in (torch, fb):
        x = t.tensor(corners, dtype=getattr(t, kind), requires_grad=True)
        y = t.tensor([0.5, -3.0] * 7, dtype=getattr(t, kind))
        FUNCTIONS[what](t, x, y).sum().backward()
        answers.append(torch.tensor(x.grad.tolist()))
    torch.testing.assert_close(answers[1], answers[0], rtol=1e-6, atol=1e-6)


def _places(numbers: list[list[float]], kind: str) -> torch.Tensor:
    """The numbers' places among all that the dtype has."""
    bits = torch.tensor(numbers).to(getattr(torch, kind)).view(torch.int16).int()
    return torch.where(bits < 0, -(bits & 0x7FFF), bits)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("steps", [1, 2, 7, 33, 101])
def test_even_distances_of_halves_are_rounded_as_pytorch_rounds_them(kind, steps):
    for start, end in ((-1, 1), (0, 10), (3.3, -2.7), (-100, 100), (0.1, 0.1)):
        expected = torch.linspace(start, end, steps, dtype=getattr(torch, kind))
        found = fb.linspace(start, end, steps, dtype=getattr(fb, kind))
        assert found.tolist() == expected.tolist(), (start, end)
