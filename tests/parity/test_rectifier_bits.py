"""Activation functions made of straight pieces have PyTorch's bits, and so have their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flambeau as fb

CALLS = {
    "hardtanh": lambda F, x, w: F.hardtanh(x, -0.3, 0.7, inplace=w),
    "relu6": lambda F, x, w: F.relu6(x, inplace=w),
    "hardsigmoid": lambda F, x, w: F.hardsigmoid(x, inplace=w),
    "hardswish": lambda F, x, w: F.hardswish(x, inplace=w),
    "hardshrink": lambda F, x, w: F.hardshrink(x, 0.3),
    "softshrink": lambda F, x, w: F.softshrink(x, 0.3),
}
EDGES = [0.0, -0.0, 3.0, -3.0, 6.0, 0.3, -0.3, 0.7, np.inf, -np.inf, 1e-45, -1e-40, 3.4e38]


def numbers(dtype):
    noise = np.random.default_rng(0).normal(0, 4, 4096 - len(EDGES))
    return np.concatenate([EDGES, noise]).astype(dtype)


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_rectifiers_have_the_bits_of_pytorch(name, dtype, writes):
    found = []
    for t in (fb, torch):
        x = t.from_numpy(numbers(np.float64)).to(getattr(t, dtype)).requires_grad_()
        g = t.from_numpy(numbers(np.float64)[::-1].copy()).to(x.dtype).nan_to_num(0, 5, 5)
        y = CALLS[name](t.nn.functional, x * 1 if writes else x, writes)
        assert y.grad_fn.name() == name.replace("relu6", "hardtanh").capitalize() + "Backward0"
        y.backward(g)
        found.append([v.detach().double().numpy() for v in (y, x.grad)])
    # PyTorch takes the float32 next to 1/6 for the slope of hardsigmoid, of float64 as well.
    error = 3e-8 if (name, dtype) == ("hardsigmoid", "float64") else 0
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=error, atol=0)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "hardsigmoid"])
def test_their_second_derivatives_are_those_of_pytorch(name):
    found = []
    for t in (fb, torch):
        x = t.from_numpy(numbers(np.float64)[:12]).clamp(-9, 9).requires_grad_()
        (first,) = t.autograd.grad(
            (CALLS[name](t.nn.functional, x, False) ** 2).sum(), x, create_graph=True
        )
        (second,) = t.autograd.grad((first * x).sum(), x)
        found.append(second.numpy())
    np.testing.assert_allclose(*found, rtol=1e-14)


@pytest.mark.parametrize("size", [1, 5, 100, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["relu", "relu_"])
def test_relu_takes_the_zero_that_pytorch_takes_of_two(name, dtype, size):
    """Of small arrays and of large ones, whichever loop makes them."""
    found = []
    for t in (fb, torch):
        x = t.from_numpy(np.resize(EDGES, size)).to(getattr(t, dtype))
        y = getattr(x, name)().double().numpy()
        found.append(np.where(y == 0, np.copysign(1, y), y))
    np.testing.assert_array_equal(*found)
