"""Convolutions of windows one pixel apart, by one call of what is offered, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from plans_agree import ops_of

import flambeau as fb
from flambeau import nn
from flambeau_native.extension import native
from flambeau_native.kernels import convolution
from flambeau_native.kernels.convolution import conv2d, windows
from flambeau_numpy.extending import offered

pytestmark = pytest.mark.skipif(not native.has_linear(), reason="the processor has no AVX-512")

ONES, NONE = (1, 1), (0, 0)


@pytest.fixture(autouse=True)
def every(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All that can be computed here is, however fast others are."""
    monkeypatch.setattr(convolution, "_SHARE", 1000.0)
    monkeypatch.setattr(convolution, "_THIN", 0)
    windows.cache_clear()
    yield
    windows.cache_clear()


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def slow(x, weight, stride, padding, dilation, groups):
    """The convolution in float64, tap by tap."""
    (above, left), (down, right) = padding, dilation
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (above, above), (left, left)))
    features, depth, lines, taps = weight.shape
    height = wide.shape[2] - down * (lines - 1)
    width = wide.shape[3] - right * (taps - 1)
    out = np.zeros((len(x), features, height, width))
    per = features // groups
    for g in range(groups):
        these, those = slice(g * per, g * per + per), slice(g * depth, g * depth + depth)
        for i, j in product(range(lines), range(taps)):
            part = wide[:, those, i * down : i * down + height, j * right : j * right + width]
            out[:, these] += np.einsum("oc,nchw->nohw", weight[these, :, i, j], part)
    return out


GEOMETRIES = [
    # image, weight, padding, dilation, groups
    ((1, 1, 28, 28), (20, 1, 5, 5), NONE, ONES, 1),
    ((2, 20, 24, 24), (20, 20, 5, 5), NONE, ONES, 1),
    ((3, 4, 8, 8), (13, 4, 3, 3), ONES, ONES, 1),
    ((2, 3, 7, 33), (7, 3, 3, 4), (2, 0), ONES, 1),
    ((2, 3, 9, 17), (6, 3, 2, 11), (0, 5), ONES, 1),
    ((1, 6, 12, 11), (9, 2, 3, 3), (1, 2), (1, 2), 3),
    ((2, 2, 20, 20), (1, 2, 3, 3), (3, 3), (3, 3), 1),
    ((1, 2, 1, 70), (5, 2, 1, 7), (0, 3), ONES, 1),
    ((4, 3, 1, 1), (12, 3, 3, 3), ONES, ONES, 1),
    ((2, 5, 40, 3), (17, 5, 7, 1), (6, 0), ONES, 1),
    ((1, 1, 40, 40), (2, 1, 32, 32), (31, 3), ONES, 1),
    ((70, 2, 4, 4), (8, 2, 3, 3), ONES, ONES, 1),
]
IDS = [f"{i}-{w}-{p}-{d}-{g}" for i, w, p, d, g in GEOMETRIES]


@pytest.mark.parametrize(("image", "shape", "padding", "dilation", "groups"), GEOMETRIES, ids=IDS)
def test_convolutions_agree_with_float64_and_every_number_of_threads_gives_the_same_bits(
    image, shape, padding, dilation, groups, threads
):
    x, weight, bias = numbers(*image), numbers(*shape), numbers(shape[0])
    how = ONES, padding, dilation, groups
    wanted = slow(x, weight, *how)
    bound = (weight[0].size + 2) * 2.0**-22 * slow(abs(x), abs(weight), *how).max()
    threads(1)
    plain, first = conv2d(x, weight, None, *how), conv2d(x, weight, bias, *how)
    assert plain.shape == first.shape == wanted.shape
    assert (abs(plain - wanted) <= bound).all()
    assert (abs(first - wanted - bias[:, None, None]) <= bound).all()
    for number in 2, 5:
        threads(number)
        np.testing.assert_array_equal(conv2d(x, weight, bias, *how), first)


@pytest.mark.parametrize(("image", "shape", "padding", "dilation", "groups"), GEOMETRIES, ids=IDS)
def test_gradients_are_the_adjoints_whatever_the_number_of_threads(
    image, shape, padding, dilation, groups, threads
):
    x, weight = numbers(*image), numbers(*shape)
    how = ONES, padding, dilation, groups
    grad = numbers(*slow(x, weight, *how).shape)
    for kernel, given, of, other in (
        (convolution.conv2d_input_grad, weight, x, lambda e: slow(e, weight, *how)),
        (convolution.conv2d_weight_grad, x, weight, lambda e: slow(x, e, *how)),
    ):
        threads(1)
        first = kernel(grad, given, of.shape, *how)
        assert first.shape == of.shape
        scale = abs(first).max() * first.size**0.5
        for seed in range(3):
            direction = np.random.default_rng(seed).normal(size=of.shape).astype(np.float32)
            along = float((other(direction) * grad).sum())
            assert abs((first.astype(np.float64) * direction).sum() - along) <= 1e-5 * scale
        threads(4)
        np.testing.assert_array_equal(kernel(grad, given, of.shape, *how), first)


def test_large_ones_are_divided_and_have_the_same_bits(threads):
    x, weight = numbers(8, 12, 40, 40), numbers(20, 12, 3, 3)
    grad, how = numbers(8, 20, 40, 40), (ONES, ONES, ONES, 1)
    calls = [
        lambda: conv2d(x, weight, None, *how),
        lambda: convolution.conv2d_input_grad(grad, weight, x.shape, *how),
        lambda: convolution.conv2d_weight_grad(grad, x, weight.shape, *how),
    ]
    for call in calls:
        threads(1)
        first = call()
        for number in 2, 3, 64:
            threads(number)
            np.testing.assert_array_equal(call(), first)


def test_nan_and_infinity_reach_the_windows_that_hold_them_and_no_other():
    x, weight = np.ones((1, 2, 6, 30), np.float32), np.ones((3, 2, 3, 3), np.float32)
    x[0, 1, 2, 29], x[0, 0, 5, 0] = np.nan, np.inf
    out = conv2d(x, weight, None, ONES, ONES, ONES, 1)
    nan, infinite = np.zeros((6, 30), bool), np.zeros((6, 30), bool)
    nan[1:4, 28:], infinite[4:, :2] = True, True
    for plane in out[0]:
        np.testing.assert_array_equal(np.isnan(plane), nan)
        np.testing.assert_array_equal(np.isinf(plane), infinite)


@pytest.mark.parametrize("padding", [NONE, (0, 1), (2, 1)], ids=str)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_pixel_adds_nothing_whatever_is_multiplied_with_it(padding, value):
    x, weight, how = numbers(1, 2, 5, 20), numbers(3, 2, 3, 3), (ONES, padding, ONES, 1)
    weight[1, 0, 0, 2] = value
    grad = numbers(*slow(x, weight, *how).shape)
    # Taps and places that meet, by a convolution of ones that are exact.
    pixels, tap = np.ones_like(x), (np.abs(weight) == value) | np.isnan(weight)
    met = slow(pixels, tap.astype(np.float32), *how) > 0
    np.testing.assert_array_equal(np.isfinite(conv2d(x, weight, None, *how)), ~met)

    found = convolution.conv2d_input_grad(grad, weight, x.shape, *how)
    windows_of = np.zeros((1, 2, 5 + 2 * padding[0], 20 + 2 * padding[1]), bool)
    windows_of[0, 0, : grad.shape[2], 2 : 2 + grad.shape[3]] = True
    inner = windows_of[:, :, padding[0] : padding[0] + 5, padding[1] : padding[1] + 20]
    np.testing.assert_array_equal(np.isfinite(found), ~inner)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_pixels_that_a_tap_never_sees_are_not_in_its_gradient(value):
    x, how = numbers(1, 1, 6, 20), (ONES, NONE, ONES, 1)
    x[0, 0, 3, 19] = value
    grad = numbers(1, 2, 4, 18)
    found = convolution.conv2d_weight_grad(grad, x, (2, 1, 3, 3), *how)
    assert np.isfinite(found[..., :2]).all()
    assert not np.isfinite(found[..., 2]).any()


WEIGHT = numbers(4, 3, 3, 3)


@pytest.mark.parametrize(
    ("x", "weight", "bias", "how"),
    [
        (numbers(1, 3, 8, 8).astype(np.float64), WEIGHT, None, (ONES, NONE, ONES, 1)),
        (numbers(1, 3, 8, 8), WEIGHT.astype(np.float64), None, (ONES, NONE, ONES, 1)),
        (numbers(1, 3, 8, 8), WEIGHT, np.zeros(4), (ONES, NONE, ONES, 1)),
        (numbers(1, 3, 8, 8), WEIGHT, numbers(5), (ONES, NONE, ONES, 1)),
        (numbers(1, 4, 8, 8), WEIGHT, None, (ONES, NONE, ONES, 1)),
        (numbers(1, 3, 8, 8), WEIGHT, None, (ONES, NONE, ONES, 3)),
        (numbers(1, 3, 8, 8), WEIGHT, None, (ONES, NONE, ONES, 0)),
        (numbers(1, 3, 8, 8), WEIGHT, None, ((2, 1), NONE, ONES, 1)),
        (numbers(1, 3, 8, 8), WEIGHT, None, (ONES, (3, 0), ONES, 1)),
        (numbers(1, 3, 8, 8), WEIGHT, None, (ONES, (0, 2), ONES, 1)),
        (numbers(1, 3, 2, 8), WEIGHT, None, (ONES, NONE, ONES, 1)),
        (numbers(0, 3, 8, 8), WEIGHT, None, (ONES, NONE, ONES, 1)),
        (numbers(1, 3, 8, 8), numbers(4, 3, 1, 1), None, (ONES, ONES, ONES, 1)),
        (numbers(1, 3, 8, 8), numbers(4, 3, 1, 1), None, ((1, 2), NONE, ONES, 1)),
        (numbers(1, 4, 8, 8), numbers(4, 2, 1, 1), None, (ONES, NONE, ONES, 2)),
        (numbers(1, 4, 8, 8), numbers(4, 3, 1, 1), None, (ONES, NONE, ONES, 1)),
        (numbers(1, 64, 96, 96), numbers(64, 64, 1, 1), None, (ONES, NONE, ONES, 1)),
        (numbers(1, 1, 3, 40), numbers(1, 1, 1, 33), None, (ONES, NONE, ONES, 1)),
        (numbers(3, 8, 8), WEIGHT, None, (ONES, NONE, ONES, 1)),
        (numbers(1, 3, 8, 8), WEIGHT, None, (ONES, NONE, (1 << 40, 1), 1)),
    ],
    ids=range(20),
)
def test_what_there_is_no_function_for_is_left_to_others(x, weight, bias, how):
    assert conv2d(x, weight, bias, *how) is None


@pytest.mark.parametrize(
    "pixels", [(1, 1), (2, 8), (1, 15), (4, 4), (1, 17), (3, 21), (5, 13), (9, 15)]
)
@pytest.mark.parametrize("channels", [1, 3, 32])
@pytest.mark.parametrize("features", [1, 3, 4, 5, 32])
def test_windows_of_one_pixel_are_products(pixels, channels, features):
    x, weight = numbers(2, channels, *pixels), numbers(features, channels, 1, 1)
    x.flat[0] = np.inf  # of one pixel, which is in no other
    for bias in None, numbers(features):
        found = conv2d(x, weight, bias, ONES, NONE, ONES, 1)
        wanted = np.einsum("oc,nchw->nohw", weight[:, :, 0, 0].astype(np.float64), x)
        if bias is not None:
            wanted += bias[:, None, None]
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)
    for transposed in (x.transpose(0, 1, 3, 2), x[:, :, ::-1]):
        assert conv2d(transposed, weight, None, ONES, NONE, ONES, 1) is None or min(pixels) == 1


def test_gradients_of_other_shapes_are_left_to_others():
    x, how = numbers(1, 3, 8, 8), (ONES, NONE, ONES, 1)
    for shape in (1, 4, 6, 7), (1, 5, 6, 6), (2, 4, 6, 6), (4, 6, 6):
        grad = numbers(*shape)
        assert convolution.conv2d_input_grad(grad, WEIGHT, x.shape, *how) is None
        assert convolution.conv2d_weight_grad(grad, x, WEIGHT.shape, *how) is None


def test_arrays_of_other_strides_give_what_copies_give():
    x, weight, bias = numbers(2, 8, 8, 6), numbers(3, 3, 8, 6), numbers(12)[::2]
    how = ONES, ONES, ONES, 1
    turned, other = x.transpose(0, 3, 2, 1)[:, :5], weight.transpose(3, 2, 0, 1)[:, :5]
    wanted = conv2d(turned.copy(), other.copy(), bias.copy(), *how)
    np.testing.assert_array_equal(conv2d(turned, other, bias, *how), wanted)


def test_numbers_that_make_no_convolution_are_refused():
    out, x, weight = np.zeros(4, np.float32), np.zeros(9, np.float32), np.zeros(4, np.float32)
    fits = [1, 1, 1, 1, 3, 3, 2, 2, 2, 2, 1, 1, 0, 0, 3, 0]
    native.convolution(out, x, weight, None, *fits)
    for place, value in (9, 4), (10, 1 << 40), (12, -1), (13, 1 << 30), (14, 4), (14, 0):
        with pytest.raises(RuntimeError):
            native.convolution(out, x, weight, None, *fits[:place], value, *fits[place + 1 :])
    fits = [1, 1, 1, 1, 3, 3, 2, 2, 2, 1, 1]
    native.convolution_weight(np.zeros(4, np.float32), np.zeros(6, np.float32), x, *fits)
    for place, value in (6, 3), (8, 1), (9, 2), (9, -1), (10, 3), (10, 1 << 62):
        with pytest.raises(RuntimeError):
            native.convolution_weight(
                *(np.zeros(99, np.float32) for _ in range(3)),
                *fits[:place],
                value,
                *fits[place + 1 :],
            )


def test_layers_on_cpu_are_convolved_here_and_trained_as_by_others(monkeypatch):
    model = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Conv2d(6, 10, 3, padding=1))
    x = fb.randn(2, 1, 12, 12, requires_grad=True)

    def gradients() -> list[fb.Tensor]:
        return [*fb.autograd.grad(model(x).square().sum(), [x, *model.parameters()])]

    ours = gradients()
    for name in "conv2d", "conv2d_input_grad", "conv2d_weight_grad":
        monkeypatch.setattr(offered, name, None)
    for a, b in zip(ours, gradients(), strict=True):
        fb.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [8, 28], ids=["few elements", "many elements"])
@pytest.mark.parametrize("value", [0.0, float("nan"), 1.0])
def test_relu_behind_a_convolution_is_one_call_with_it_and_gives_the_same_bits(
    size, value, programs
):
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 5, 3), nn.ReLU())
    with fb.no_grad():
        model[0].weight[0] = 0
        model[0].bias[0] = -0.0
    compiled = fb.compile(model)
    x = fb.randn(1, 1, size, size)
    x[0, 0, 3, 3] = value
    with fb.no_grad():
        wanted = model(x)
        for _ in range(3):
            out = compiled(x)
    assert ops_of(programs).count("conv2d_relu") == 2
    np.testing.assert_array_equal(out.numpy().view(np.int32), wanted.numpy().view(np.int32))
