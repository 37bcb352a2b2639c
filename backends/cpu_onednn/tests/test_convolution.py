"""Convolution by oneDNN against the NumPy kernels in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from flambeau_numpy.dtypes import BFLOAT16
from flambeau_numpy.extending import offered
from flambeau_numpy.kernels import KERNELS as NUMPY
from flambeau_onednn.kernels import convolution
from flambeau_onednn.kernels.convolution import KERNELS
from flambeau_onednn.primitives import BACKWARD_DATA, BACKWARD_WEIGHTS, used_taps
from flambeau_onednn.runs import LIMIT, Plans

RANDOM = np.random.default_rng(0)
EPS = {np.dtype(np.float32): 2e-6, BFLOAT16: 8e-3}
NAMES = ("", "_input_grad", "_weight_grad")

# image, features, kernel, stride, padding, dilation, groups
PLANE = [
    ((3, 4, 9, 11), 8, kernel, stride, padding, dilation, groups)
    for kernel, stride, padding, dilation, groups in product(
        [(1, 1), (3, 3), (5, 2)],
        [(1, 1), (2, 1), (3, 3)],
        [(0, 0), (1, 2)],
        [(1, 1), (2, 1)],
        [1, 2, 4],
    )
]
NOTABLE = [
    ((2, 3, 17, 19), 5, (7, 7), (2, 2), (3, 3), (1, 1), 1),  # the stem of residual networks
    ((4, 1, 28, 28), 6, (5, 5), (1, 1), (2, 2), (1, 1), 1),
    ((2, 17, 7, 7), 17, (3, 3), (1, 1), (1, 1), (1, 1), 17),  # depthwise, not a whole block
    ((2, 32, 8, 8), 64, (3, 3), (2, 2), (1, 1), (1, 1), 32),  # two features for each channel
    ((2, 64, 6, 6), 48, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 64, 7, 7), 48, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((1, 2, 1, 1), 3, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 5, 8), 4, (5, 8), (1, 1), (0, 0), (1, 1), 1),  # one pixel out
    ((2, 4, 1, 40), 8, (1, 9), (1, 4), (0, 12), (1, 3), 2),  # conv1d
    ((1, 2, 4, 4), 3, (2, 2), (1, 1), (4, 4), (1, 1), 1),  # padding wider than the kernel
]
SMALLER = [  # than the kernel: taps that meet nothing but padding
    ((3, 4, h, w), 8, kernel, stride, padding, dilation, groups)
    for (h, w), (kernel, padding), stride, dilation, groups in product(
        [(1, 1), (2, 2), (1, 3)],
        [((3, 3), (1, 1)), ((5, 4), (2, 2)), ((3, 1), (2, 0))],
        [(1, 1), (2, 3)],
        [(1, 1), (2, 1)],
        [1, 2],
    )
    if h + 2 * padding[0] > dilation[0] * (kernel[0] - 1)
    and w + 2 * padding[1] > dilation[1] * (kernel[1] - 1)
]
VOLUME = [
    ((2, 4, 5, 6, 7), 6, kernel, stride, padding, dilation, groups)
    for kernel, stride, padding, dilation, groups in product(
        [(1, 1, 1), (3, 2, 3)],
        [(1, 1, 1), (1, 2, 3)],
        [(0, 0, 0), (1, 0, 2)],
        [(1, 1, 1), (2, 1, 1)],
        [1, 2],
    )
]


@pytest.fixture(autouse=True)
def _own_plans(monkeypatch):
    """Plans of earlier tests, or that there is none, are not those of this test."""
    monkeypatch.setattr(convolution, "plans", Plans(LIMIT))


def draw(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape)


def named(dimensions: int) -> list[str]:
    return [f"conv{dimensions}d{suffix}" for suffix in NAMES]


def calls(case: Any, bias: bool) -> dict[str, tuple[Any, ...]]:
    """The arguments of the three kernels for one geometry, in float64."""
    image, features, kernel, *geometry = case
    x, weight = draw(*image), draw(features, image[1] // geometry[-1], *kernel)
    shift = draw(features) if bias else None
    forward, input_grad, weight_grad = named(len(kernel))
    grad = draw(*NUMPY[forward](x, weight, None, *geometry).shape)
    return {
        forward: (x, weight, shift, *geometry),
        input_grad: (grad, weight, x.shape, *geometry),
        weight_grad: (grad, x, weight.shape, *geometry),
    }


def cast(arguments: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    return tuple(a.astype(dtype) if isinstance(a, np.ndarray) else a for a in arguments)


def check(case: Any, bias: bool = True, dtype: Any = np.float32, demanded: bool = True) -> None:
    dtype = np.dtype(dtype)
    for name, arguments in calls(case, bias).items():
        given = cast(arguments, dtype)
        before = cast(given, dtype)
        wanted = NUMPY[name](*cast(given, np.float64))
        # A sum of n terms is exact to its greatest terms: the scale is the sum of the sizes.
        sizes = tuple(abs(a) if isinstance(a, np.ndarray) else a for a in cast(given, np.float64))
        scale = NUMPY[name](*sizes)
        found = KERNELS[name](*given)
        assert found.dtype == dtype
        assert found.shape == wanted.shape
        assert found.flags.c_contiguous
        error = abs(found.astype(np.float64) - wanted)
        assert (error <= EPS[dtype] * scale + 1e-30).all(), (name, case, (error / scale).max())
        for a, b in zip(given, before, strict=True):
            np.testing.assert_array_equal(a, b)  # operands are read only
    if demanded:
        kept = list(convolution.plans.kept.values())[-3:]
        assert None not in kept, f"left to NumPy: {case}"


def test_taps_of_enormous_padding_are_found_at_once():
    assert used_taps(3, 2, 2**71, 1, 2**70, 1).number == 2


@pytest.mark.parametrize("case", PLANE + NOTABLE + SMALLER, ids=str)
def test_convolution_of_images_and_its_gradients_agree_with_float64(case):
    check(case)
    check(case, bias=False)


def test_the_taps_that_are_used_are_all_that_meet_a_pixel_and_give_as_many_windows():
    narrowed = 0
    for n, k, stride, padding, dilation in product(
        range(1, 6), range(1, 6), range(1, 4), range(5), range(1, 4)
    ):
        out = (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1
        if out < 1:
            continue
        taps = used_taps(n, k, out, stride, padding, dilation)
        met = {
            j
            for i, j in product(range(out), range(k))
            if 0 <= i * stride - padding + j * dilation < n
        }
        assert met <= set(range(taps.first, taps.first + taps.number))
        width = n + taps.before + taps.after - dilation * (taps.number - 1) - 1
        assert width // stride + 1 == out
        narrowed += taps.number < k
    assert narrowed > 100


@pytest.mark.parametrize("case", [*NOTABLE, SMALLER[0], VOLUME[-1]], ids=str)
def test_a_list_of_primitives_that_is_run_at_once_gives_the_bits_of_one_run_by_one(
    case, monkeypatch
):
    native = pytest.importorskip("flambeau_native.extension").native
    if native is None:
        pytest.skip("flambeau-native is not compiled")
    for name, arguments in calls(case, bias=True).items():
        given = cast(arguments, np.float32)
        monkeypatch.setattr(offered, "primitives", None)
        wanted = KERNELS[name](*given)
        monkeypatch.setattr(offered, "primitives", native.primitives)
        for _ in range(2):
            np.testing.assert_array_equal(KERNELS[name](*given), wanted)


@pytest.mark.parametrize("case", VOLUME, ids=str)
def test_convolution_of_volumes_and_its_gradients_agree_with_float64(case):
    check(case)


@pytest.mark.parametrize("case", [*NOTABLE, PLANE[0], PLANE[-1], VOLUME[0], VOLUME[-1]], ids=str)
def test_bfloat16_agrees_with_float64(case):
    check(case, dtype=BFLOAT16, demanded=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_dtypes_are_left_to_numpy(dtype):
    for name, arguments in calls(NOTABLE[0], bias=True).items():
        given = cast(arguments, dtype)
        found, wanted = KERNELS[name](*given), NUMPY[name](*given)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("image", [(0, 3, 8, 8), (2, 0, 8, 8)])
def test_empty_arrays_give_what_numpy_gives(image):
    case = (image, 4, (3, 3), (1, 1), (1, 1), (1, 1), 1)
    for name, arguments in calls(case, bias=True).items():
        given = cast(arguments, np.float32)
        np.testing.assert_array_equal(KERNELS[name](*given), NUMPY[name](*given))


def test_arrays_of_any_strides_are_read_as_they_are():
    for name, arguments in calls(NOTABLE[3], bias=False).items():
        given = cast(arguments, np.float32)
        strided = tuple(
            np.flip(np.ascontiguousarray(np.flip(a.swapaxes(0, -1)))).swapaxes(0, -1)
            if isinstance(a, np.ndarray)
            else a
            for a in given
        )
        np.testing.assert_array_equal(KERNELS[name](*strided), KERNELS[name](*given))
    x, weight = np.float32(draw(2, 3, 6, 6)), np.float32(draw(4, 3, 3, 3))
    grad = np.broadcast_to(np.float32(1.5), (2, 4, 6, 6))  # the gradient of a sum
    geometry = ((1, 1), (1, 1), (1, 1), 1)
    for name, arguments in (
        ("conv2d_input_grad", (weight, x.shape)),
        ("conv2d_weight_grad", (x, weight.shape)),
    ):
        wanted = KERNELS[name](grad.copy(), *arguments, *geometry)
        np.testing.assert_array_equal(KERNELS[name](grad, *arguments, *geometry), wanted)


@pytest.mark.parametrize(("height", "is_left"), [(9, True), (400, False)])
def test_small_convolutions_of_single_pixels_are_left_to_products(monkeypatch, height, is_left):
    case = ((2, 24, height, 10), 32, (1, 1), (1, 1), (0, 0), (1, 1), 1)
    monkeypatch.setattr(convolution, "plans", Plans(8))
    for name, arguments in calls(case, bias=True).items():
        given = cast(arguments, np.float32)
        same = np.array_equal(KERNELS[name](*given), NUMPY[name](*given))
        assert same or not is_left
    assert len(convolution.plans.kept) == (0 if is_left else 3)
    check(case, demanded=not is_left)


ROWS = [  # images of few pixels, of which each is a row of channels; and beyond them
    ((images, channels, h, w), features, (1, 1), (1, 1), (0, 0), (1, 1), 1)
    for images, channels, (h, w), features in product(
        (1, 2, 5), (1, 24, 130), ((1, 1), (2, 2), (8, 8), (5, 13)), (1, 17)
    )
]


@pytest.mark.parametrize("case", [*ROWS, ((20, 512, 2, 2), 512, *ROWS[0][2:])], ids=str)
def test_products_of_the_pixels_of_tiny_images_agree_with_float64(case):
    check(case, demanded=False)
    for name, arguments in calls(case, bias=True).items():
        given = cast(arguments, np.float32)
        last = [
            np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            if isinstance(a, np.ndarray) and a.ndim == 4
            else a
            for a in given
        ]
        np.testing.assert_allclose(KERNELS[name](*last), KERNELS[name](*given), 1e-5, 1e-4)


@pytest.mark.parametrize("image", [(0, 3, 1, 1), (0, 3, 2, 2), (2, 0, 1, 1), (0, 0, 1, 1)])
def test_no_tiny_images_give_what_numpy_gives_in_float64(image):
    for name, arguments in calls((image, 4, *ROWS[0][2:]), bias=True).items():
        found = KERNELS[name](*cast(arguments, np.float32))
        np.testing.assert_array_equal(found, NUMPY[name](*arguments).astype(np.float32))


def test_nan_and_infinity_reach_the_pixels_that_see_them_and_no_others():
    x, weight = np.zeros((1, 16, 6, 6), np.float32), np.ones((16, 16, 3, 3), np.float32)
    x[0, 3, 1, 1], x[0, 5, 5, 5] = np.nan, np.inf
    out = KERNELS["conv2d"](x, weight, None, (1, 1), (1, 1), (1, 1), 1)
    wanted = np.zeros((6, 6), np.float32)
    wanted[:3, :3], wanted[4:, 4:] = np.nan, np.inf
    np.testing.assert_array_equal(out, np.broadcast_to(wanted, out.shape))


def test_the_adjoints_are_adjoint():
    """⟨conv(x), g⟩ = ⟨x, input_grad(g)⟩ = ⟨w, weight_grad(g)⟩."""
    for case in (NOTABLE[0], NOTABLE[2], VOLUME[-1]):
        forward, input_grad, weight_grad = (
            (name, cast(arguments, np.float32)) for name, arguments in calls(case, False).items()
        )
        out, grad = KERNELS[forward[0]](*forward[1]), input_grad[1][0]
        x, weight = forward[1][:2]
        gx, gw = KERNELS[input_grad[0]](*input_grad[1]), KERNELS[weight_grad[0]](*weight_grad[1])
        total = np.vdot(out, grad)
        scale = 1e-4 * np.linalg.norm(out) * np.linalg.norm(grad)
        assert abs(np.vdot(x, gx) - total) < scale
        assert abs(np.vdot(weight, gw) - total) < scale


@pytest.mark.parametrize("short", range(4), ids=["rows", "features", "height", "width"])
def test_a_gradient_of_another_shape_is_left_to_numpy_and_not_read(short):
    geometry = ((1, 1), (0, 0), (1, 1), 1)
    shape, image, weight = [2, 8, 6, 6], (2, 8, 8, 8), (8, 8, 3, 3)
    grad, x, w = (np.ones(n, np.float32) for n in (shape, image, weight))
    shape[short] -= 1
    other = np.ones(shape, np.float32)
    for kind, given in ((BACKWARD_DATA, (grad, w)), (BACKWARD_WEIGHTS, (x, grad))):
        wrong = tuple(other if array is grad else array for array in given)
        assert convolution.run(kind, given, image, weight, *geometry) is not None
        assert convolution.run(kind, wrong, image, weight, *geometry) is None


def test_a_bias_of_another_length_is_refused_and_not_read():
    image, weight = np.ones((2, 8, 8, 8), np.float32), np.ones((8, 8, 3, 3), np.float32)
    with pytest.raises(ValueError, match="broadcast"):
        KERNELS["conv2d"](image, weight, np.ones(5, np.float32), (1, 1), (0, 0), (1, 1), 1)
