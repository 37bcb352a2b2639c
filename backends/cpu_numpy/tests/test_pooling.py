"""Pooling and its gradients against PyTorch, over the geometry of windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from torch_oracle import FLOATS, agree, draw, tensor, torch

from flambeau_numpy.kernels.pooling import KERNELS

F = torch.nn.functional
aten = torch.ops.aten

WINDOWS = [(2, 2), (3, 2), (3, 3)]
STRIDES = [(1, 1), (2, 2), (3, 1)]
PADDINGS = [(0, 0), (1, 1), (1, 0)]


def check_max(x: np.ndarray, *geometry: object) -> None:
    values, places = KERNELS["max_pool2d"](x, *geometry)
    expected, indices = F.max_pool2d(tensor(x), *geometry, return_indices=True)
    agree(values, expected)
    agree(places, indices)
    if x.dtype.kind != "i":
        grad = np.asarray(draw(values.shape, "float64", 3)).astype(x.dtype)
        wanted = aten.max_pool2d_with_indices_backward(tensor(grad), tensor(x), *geometry, indices)
        agree(KERNELS["max_pool2d_backward"](grad, places, x.shape), wanted, scale=4)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
def test_max_pool_agrees_with_ties_for_every_geometry(
    dilation: tuple[int, int], ceil_mode: bool
) -> None:
    x = np.random.default_rng(0).integers(-3, 3, (2, 3, 9, 10)).astype(np.float32)
    for window, stride, padding in product(WINDOWS, STRIDES, PADDINGS):
        check_max(x, window, stride, padding, dilation, ceil_mode)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
def test_max_pool_agrees_for_dtypes_and_single_images(dtype: str) -> None:
    check_max(draw((3, 8, 8), dtype), (2, 2), (2, 2), (1, 1), (1, 1), False)
    check_max(draw((0, 3, 8, 8), dtype), (2, 2), (2, 2), (0, 0), (1, 1), False)


def test_max_pool_of_nan_and_infinities_agrees() -> None:
    x = np.random.default_rng(0).integers(-2, 2, (3, 2, 8, 8)).astype(np.float32)
    x[0, 0, 0] = x[0, 0, 1, 1] = np.nan
    x[1] = -np.inf
    x[2, 0, 3] = np.inf
    check_max(x, (3, 3), (2, 2), (1, 1), (1, 1), False)
    check_max(x, (2, 2), (2, 2), (0, 0), (1, 1), False)


@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (1, 2, 1, 4), (2, 1, 3, 1), (1, 1, 2, 5)])
def test_max_pool_of_windows_that_meet_no_element_agrees(shape: tuple[int, ...]) -> None:
    x = draw(shape, "float32")
    for kernel, stride, dilation in product((2, 3), (1, 2), (2, 3, 4)):
        padding, reach = kernel // 2, dilation * (kernel - 1)
        if reach < min(shape[2:]) + 2 * padding:
            pairs = [(n, n) for n in (kernel, stride, padding, dilation)]
            values, places = KERNELS["max_pool2d"](x, *pairs, False)
            wanted = F.max_pool2d(tensor(x), *pairs, False, return_indices=True)
            agree(values, wanted[0])
            agree(places, wanted[1])


def test_max_pool_of_windows_with_more_taps_than_a_byte_counts() -> None:
    check_max(draw((1, 2, 20, 20), "float32"), (17, 17), (1, 1), (0, 0), (1, 1), False)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("divisor", [None, 3])
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_avg_pool_agrees_for_every_geometry(
    count_include_pad: bool, divisor: int | None, ceil_mode: bool
) -> None:
    x = draw((2, 3, 9, 10), "float64")
    for window, stride, padding in product(WINDOWS, STRIDES, PADDINGS):
        geometry = (window, stride, padding, ceil_mode, count_include_pad, divisor)
        found = KERNELS["avg_pool2d"](x, *geometry)
        agree(found, F.avg_pool2d(tensor(x), *geometry))
        grad = draw(found.shape, "float64", 1)
        expected = aten.avg_pool2d_backward(tensor(grad), tensor(x), *geometry)
        agree(KERNELS["avg_pool2d_backward"](grad, x.shape, *geometry), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_avg_pool_agrees_for_dtypes(dtype: str) -> None:
    x = draw((3, 8, 8), dtype)
    geometry = ((3, 3), (2, 2), (1, 1), False, True, None)
    found = KERNELS["avg_pool2d"](x, *geometry)
    agree(found, F.avg_pool2d(tensor(x), *geometry))
    expected = aten.avg_pool2d_backward(tensor(found), tensor(x), *geometry)
    agree(KERNELS["avg_pool2d_backward"](found, x.shape, *geometry), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("reach", [300, 2**29])
def test_windows_far_larger_than_the_image_look_at_it_alone(dtype, reach):
    x = np.asarray(draw((2, 3, 4), "float64", 1) * 9).astype(dtype)
    geometry = (2 * reach, 2 * reach), (1, 1), (reach, reach)
    values, places = KERNELS["max_pool2d"](x, *geometry, (1, 1), False)
    assert values.shape == (2, 4, 5)
    assert (values == x.max((1, 2), keepdims=True)).all()
    assert (places == x.reshape(2, 12).argmax(1)[:, None, None]).all()
    means = KERNELS["avg_pool2d"](x.astype("float64"), *geometry, False, False, None)
    agree(means, tensor(x.astype("float64").mean((1, 2), keepdims=True)).expand(2, 4, 5))
