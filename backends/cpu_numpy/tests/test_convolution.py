"""Convolution and its gradients against PyTorch, over the geometry of kernels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from torch_oracle import DTYPES, FLOATS, agree, draw, tensor, torch

from flambeau_numpy.kernels import _unfold
from flambeau_numpy.kernels.convolution import KERNELS

KERNEL_SIZES = [(1, 1), (2, 2), (3, 3), (1, 3), (5, 2)]
STRIDES = [(1, 1), (2, 2), (1, 2), (3, 3)]
PADDINGS = [(0, 0), (1, 1), (2, 1)]
DILATIONS = [(1, 1), (2, 2), (1, 2)]


def check(
    x_shape: tuple[int, ...],
    features: int,
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    dtype: str = "float64",
    scale: float = 10,
) -> None:
    x = draw(x_shape, dtype, scale=1)
    weight = draw((features, x_shape[1] // groups, *kernel), dtype, 1, scale=0.3)
    bias = draw((features,), dtype, 2)
    geometry = (stride, padding, dilation, groups)
    for b in (None, bias):
        expected = torch.nn.functional.conv2d(tensor(x), tensor(weight), tensor(b), *geometry)
        found = KERNELS["conv2d"](x, weight, b, *geometry)
        agree(found, expected, scale=scale)
    grad = draw(found.shape, dtype, 3, scale=0.3)
    gx, gw, _ = torch.ops.aten.convolution_backward(
        *(tensor(grad), tensor(x), tensor(weight), [features], *geometry[:3]),
        *(False, (0, 0), groups, (True, True, False)),
    )
    agree(KERNELS["conv2d_input_grad"](grad, weight, x.shape, *geometry), gx, scale=scale)
    agree(KERNELS["conv2d_weight_grad"](grad, x, weight.shape, *geometry), gw, scale=10 * scale)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("kernel", KERNEL_SIZES)
def test_convolution_agrees_for_every_geometry(kernel: tuple[int, int], groups: int) -> None:
    for stride, padding, dilation in product(STRIDES, PADDINGS, DILATIONS):
        check((3, 4, 9, 11), 8, kernel, stride, padding, dilation, groups)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", KERNEL_SIZES)
def test_deep_convolution_agrees_for_every_geometry(kernel: tuple[int, int], groups: int) -> None:
    """Deep inputs are unfolded one kernel row at a time, several images to a block."""
    for stride, padding, dilation in product(STRIDES, PADDINGS[:2], DILATIONS):
        check((3, 64, 9, 11), 8, kernel, stride, padding, dilation, groups)


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (5, 3)])
def test_depthwise_convolution_agrees(stride: tuple[int, int], padding: tuple[int, int]) -> None:
    for dilation in DILATIONS:
        check((2, 6, 9, 11), 6, (3, 3), stride, padding, dilation, 6)
        check((2, 6, 9, 11), 12, (3, 2), stride, padding, dilation, 6)


def test_blocks_of_the_batch_give_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    for workspace in (1, 5000):
        monkeypatch.setattr(_unfold, "WORKSPACE", workspace)
        check((5, 32, 8, 8), 4, (3, 3), padding=(1, 1))
        check((5, 2, 8, 8), 4, (3, 3), padding=(1, 1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_float_dtype_agrees(dtype: str) -> None:
    check((2, 4, 8, 8), 6, (3, 3), (2, 2), (1, 1), groups=2, dtype=dtype, scale=4)


def test_no_images_and_unused_borders() -> None:
    check((0, 3, 8, 8), 4, (3, 3))
    check((2, 3, 8, 8), 4, (3, 3), (5, 5))
    check((2, 3, 3, 3), 4, (3, 3))
    check((2, 3, 1, 1), 4, (3, 3), padding=(2, 2))


def test_inputs_of_any_layout() -> None:
    x = draw((2, 8, 8, 3), "float64").transpose(0, 3, 1, 2)
    weight = draw((3, 3, 4, 3), "float64", 1).transpose(2, 1, 0, 3)
    args = ((1, 1), (1, 1), (1, 1), 1)
    dense = KERNELS["conv2d"](x.copy(), weight.copy(), None, *args)
    np.testing.assert_allclose(KERNELS["conv2d"](x, weight, None, *args), dense)
    grad = np.broadcast_to(np.float64(0.5), dense.shape)
    for name, first, second, shape in (
        ("conv2d_input_grad", grad, weight, x.shape),
        ("conv2d_weight_grad", grad, x, weight.shape),
    ):
        expected = KERNELS[name](first.copy(), second.copy(), shape, *args)
        np.testing.assert_allclose(KERNELS[name](first, second, shape, *args), expected)


def test_results_own_their_memory() -> None:
    x, weight = np.ones((2, 4, 64, 64), np.float32), np.ones((8, 4, 3, 3), np.float32)
    args = ((1, 1), (1, 1), (1, 1), 1)
    out = KERNELS["conv2d"](x, weight, None, *args)
    from flambeau_numpy.backend import NumpyBackend

    owns = NumpyBackend().owns
    assert owns(out)
    assert owns(KERNELS["conv2d_input_grad"](out, weight, x.shape, *args))
    assert owns(KERNELS["conv2d_weight_grad"](out, x, weight.shape, *args))
    assert out.dtype == DTYPES["float32"]


@pytest.mark.parametrize("images", [1, 2, 5])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (8, 8), (5, 13)])
@pytest.mark.parametrize(("channels", "features"), [(1, 1), (3, 40), (40, 3), (24, 24)])
def test_convolution_of_single_pixels_is_the_sum_of_their_products(
    images: int, size: tuple[int, int], channels: int, features: int
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(images, channels, *size))
    weight, bias = random.normal(size=(features, channels, 1, 1)), random.normal(size=features)
    how = ((1, 1), (0, 0), (1, 1), 1)
    found = KERNELS["conv2d"](x, weight, bias, *how)
    wanted = np.einsum("nchw,ocij->nohw", x, weight) + bias[:, None, None]
    np.testing.assert_allclose(found, wanted, 1e-12, 1e-12)
    assert found.flags.c_contiguous
    grad = random.normal(size=found.shape)
    over = KERNELS["conv2d_input_grad"](grad, weight, x.shape, *how)
    np.testing.assert_allclose(over, np.einsum("nohw,ocij->nchw", grad, weight), 1e-12, 1e-12)
    assert over.flags.c_contiguous
    over = KERNELS["conv2d_weight_grad"](grad, x, weight.shape, *how)
    wanted = np.einsum("nohw,nchw->oc", grad, x).reshape(weight.shape)
    np.testing.assert_allclose(over, wanted, 1e-12, 1e-12)
