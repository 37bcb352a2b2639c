"""Activation functions and their gradients against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from torch_oracle import FLOATS, agree, draw, layouts, special, tensor, torch

from flambeau_numpy.kernels.activation import KERNELS

F = torch.nn.functional
aten = torch.ops.aten

FORWARD = {
    "relu": ((), torch.relu),
    "sigmoid": ((), torch.sigmoid),
    "silu": ((), F.silu),
    "softplus": ((1.5, 2.0), lambda t: F.softplus(t, 1.5, 2.0)),
    "leaky_relu": ((0.1,), lambda t: F.leaky_relu(t, 0.1)),
    "leaky_relu ": ((-2.0,), lambda t: F.leaky_relu(t, -2.0)),
    "elu": ((1.7, 1.05, 0.5), lambda t: aten.elu(t, 1.7, 1.05, 0.5)),
    "gelu": (("none",), F.gelu),
    "gelu ": (("tanh",), lambda t: F.gelu(t, approximate="tanh")),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", list(FORWARD))
def test_activation_agrees_in_every_layout(name: str, dtype: str) -> None:
    args, function = FORWARD[name]
    for _, a in layouts(draw((4, 6), dtype)):
        agree(KERNELS[name.strip()](a, *args), function(tensor(a)))
    a = draw((200, 201), dtype)
    for x in (a, a.T, a[:, :199], a.reshape(-1)):
        agree(KERNELS[name.strip()](x, *args), function(tensor(x)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", list(FORWARD))
def test_activation_agrees_at_the_corners(name: str, dtype: str) -> None:
    args, function = FORWARD[name]
    a = special(dtype)
    if name == "gelu":
        a = a[a != np.inf]  # infinity there, NaN from PyTorch's vectorised loop
    agree(KERNELS[name.strip()](a, *args), function(tensor(a)))


def test_gelu_of_infinity_is_infinity() -> None:
    assert KERNELS["gelu"](np.full(9, np.inf, np.float32), "none").tolist() == [np.inf] * 9


def test_in_place_activations_write_into_their_argument() -> None:
    for name in ("relu", "sigmoid"):
        a = draw((3, 4), "float32")
        expected = KERNELS[name](a)
        assert KERNELS[name + "_"](a) is None
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (3, 5), (200, 201)])
def test_threshold_backward_passes_exactly_what_is_above(
    shape: tuple[int, ...], dtype: str
) -> None:
    a, grad = np.asarray(draw(shape, dtype)), np.asarray(draw(shape, dtype, 1))
    if a.size > 10:
        a.flat[0], a.flat[1], grad.flat[2], grad.flat[3] = np.nan, np.inf, np.nan, np.inf
        a.flat[2], a.flat[3] = -1, -1
    for g, x in ((grad, a), (grad.T, a.T), (np.broadcast_to(grad.flat[0], a.shape), a)):
        expected = aten.threshold_backward(tensor(g.copy()), tensor(x), 0.25)
        agree(KERNELS["threshold_backward"](g, x, 0.25), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 5), (200, 201)])
def test_leaky_relu_backward_agrees(shape: tuple[int, ...], dtype: str) -> None:
    a, grad = draw(shape, dtype), draw(shape, dtype, 1)
    expected = aten.leaky_relu_backward(tensor(grad), tensor(a), 0.1, False)
    agree(KERNELS["leaky_relu_backward"](grad, a, 0.1), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sigmoid_backward", "tanh_backward", "silu_backward"])
def test_gradients_of_smooth_functions_agree(name: str, dtype: str) -> None:
    for shape in ((), (3, 5), (200, 201)):
        a, grad = np.asarray(draw(shape, dtype)), np.asarray(draw(shape, dtype, 1))
        for g, x in ((grad, a), (grad.T, a.T), (np.broadcast_to(grad.flat[0], a.shape), a)):
            expected = getattr(aten, name)(tensor(g.copy()), tensor(x))
            agree(KERNELS[name](g, x), expected, scale=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_backward_agrees(approximate: str, dtype: str) -> None:
    for shape in ((3, 5), (200, 201)):
        a, grad = draw(shape, dtype), draw(shape, dtype, 1)
        expected = aten.gelu_backward(tensor(grad), tensor(a), approximate=approximate)
        agree(KERNELS["gelu_backward"](grad, a, approximate), expected, scale=2)


@pytest.mark.parametrize("shape", [(3, 4, 5), (70, 80, 30), (2, 40000), (0, 3)])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_and_its_gradient_agree_along_every_dim(
    name: str, dtype: str, shape: tuple[int, ...]
) -> None:
    a, grad = draw(shape, dtype), draw(shape, dtype, 1, scale=0.1)
    backward = getattr(aten, f"_{name}_backward_data")
    for dim in range(len(shape)):
        for x in (a, np.ascontiguousarray(a.T).T):
            expected = getattr(torch, name)(tensor(x), dim)
            agree(KERNELS[name](x, dim), expected, scale=3)
        if a.size:
            expected = getattr(torch, name)(tensor(a), dim)
            result = np.asarray(KERNELS[name](a, dim))
            wanted = backward(tensor(grad), tensor(result), dim, expected.dtype)
            agree(KERNELS[f"{name}_backward"](grad, result, dim), wanted, scale=8)


@pytest.mark.parametrize("size", [3, 6000])
def test_softmax_of_infinities_agrees(size: int) -> None:
    a = np.zeros((4, size))
    a[0], a[1, 0], a[2, 1], a[3, 2] = -np.inf, np.inf, -np.inf, np.nan
    for name in ("softmax", "log_softmax"):
        agree(KERNELS[name](a, 1), getattr(torch, name)(tensor(a), 1))


def test_softmax_of_a_scalar_is_one() -> None:
    assert KERNELS["softmax"](np.array(3.0), 0) == 1
    assert KERNELS["log_softmax"](np.array(3.0), 0) == 0
