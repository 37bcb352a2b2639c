"""Maxima of volumes: the NumPy kernel's places, whatever the windows, ties, NaNs and threads."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_native import extension
from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.kernels import KERNELS as NUMPY

SHAPES = [(2, 3, 4, 5, 6), (1, 2, 3, 2, 150), (1, 1, 7, 7, 7), (0, 2, 3, 3, 3)]


def volumes(shape, dtype, odd):
    """Numbers of which many are equal, and of which some are NaN if `odd`."""
    x = np.random.default_rng(3).integers(-3, 4, shape).astype(dtype)
    if odd:
        x.reshape(-1)[::5] = np.nan
    return x


def same(found, wanted):
    for have, want in zip(found, wanted, strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", SHAPES)
def test_maxima_of_windows_of_volumes(shape, dtype, odd):
    x = volumes(shape, dtype, odd)
    for how in (
        ((2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), False),
        ((3, 2, 3), (2, 1, 2), (1, 1, 1), (1, 1, 1), True),
        ((2, 1, 2), (1, 2, 1), (1, 0, 1), (2, 1, 3), False),
    ):
        same(COMPILED["max_pool3d"](x, *how), NUMPY["max_pool3d"](x, *how))
    turned = x.swapaxes(-1, -2)
    same(COMPILED["max_pool3d"](turned, *how), NUMPY["max_pool3d"](turned, *how))


@pytest.mark.parametrize("width", [1, 15, 16, 17, 32, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_of_equals_and_the_last_that_is_no_number_win_at_any_place(dtype, width):
    x = np.full((1, 1, 2, 3, width), -np.inf, dtype)
    name, flat = "adaptive_max_pool3d", x.reshape(-1)
    same(COMPILED[name](x, (1, 1, 1)), NUMPY[name](x, (1, 1, 1)))
    for value in (np.nan, np.inf, -1.0, -0.0):
        for place in range(0, flat.size, 5):
            for second in (place, flat.size - 1, 0):
                flat[:] = -np.inf
                flat[[place, second]] = value
                same(COMPILED[name](x, (1, 1, 1)), NUMPY[name](x, (1, 1, 1)))


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maxima_of_windows_that_cover_a_volume(dtype, odd):
    for shape in (*SHAPES[:3], (1, 2, 5, 9, 37)):
        x = volumes(shape, dtype, odd)
        for counts in ((1, 1, 1), (2, 3, 4), (7, 1, 2)):
            same(
                COMPILED["adaptive_max_pool3d"](x, counts), NUMPY["adaptive_max_pool3d"](x, counts)
            )
            frames, flat = x[0], counts[1:]
            name = "adaptive_max_pool2d"
            same(COMPILED[name](frames, flat), NUMPY[name](frames, flat))


def test_the_number_of_threads_makes_no_difference():
    x = volumes((4, 8, 20, 20, 40), np.float32, True)
    native = extension.native
    before, found = native.get_threads(), []
    try:
        for threads in (1, 2, 3):
            native.set_threads(threads)
            found.append(COMPILED["adaptive_max_pool3d"](x, (3, 7, 2)))
    finally:
        native.set_threads(before)
    same(found[1], found[0])
    same(found[2], found[0])


@pytest.mark.parametrize(("first", "end"), [(-1, 2), (0, 4), (2, 2), (2, 1)])
def test_windows_outside_of_a_volume_are_refused(first, end):
    native = extension.native
    x, values, places = (
        np.zeros((1, 1, 1, 3), np.float32),
        np.zeros(1, np.float32),
        np.zeros(1, int),
    )
    one = np.zeros(1, int), np.ones(1, int)
    given = np.array([first]), np.array([end])
    sizes = (1, 1, 1, 3, 1, 1, 1)
    with pytest.raises(IndexError, match="window"):
        native.max_boxes_f32(values, places, x, *one, *one, *given, *sizes, 1, 1, 1)
    with pytest.raises(IndexError, match="window"):
        native.max_boxes_f32(values, places, x, *one, *one, *one, *sizes, 1, 1, 0)
