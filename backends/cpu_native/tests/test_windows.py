"""Windows: the NumPy kernel's maxima and places, in whatever order memory, ties, NaNs, threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def last(a):
    """The same images, whose channels vary fastest in memory."""
    return np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def in_either_order(name, images, *how):
    """What a kernel makes of images in either order, which must be the same, in theirs."""
    wanted = COMPILED[name](*images, *how)
    turned = list(map(last, images))
    found = COMPILED[name](*turned, *how)
    wanted, found = ((r if isinstance(r, tuple) else (r,)) for r in (wanted, found))
    same(found, wanted)
    for image in found if not turned[-1].flags.c_contiguous else ():
        assert image.transpose(0, 2, 3, 1).flags.c_contiguous
    return wanted


def pairs(low, high):
    return st.tuples(st.integers(low, high), st.integers(low, high))


@given(
    st.tuples(*[st.integers(1, n) for n in (2, 40, 9, 40)]),
    *(pairs(1, 4) | pairs(5, 40), pairs(1, 9), pairs(0, 2), pairs(1, 3), st.booleans()),
    *(st.sampled_from([np.float32, np.float64]), st.booleans()),
)
@settings(max_examples=300, deadline=None)
def test_windows_of_images_do_not_depend_on_their_order(
    shape, kernel, stride, padding, dilation, ceil_mode, dtype, odd
):
    within = zip(kernel, dilation, shape[2:], strict=True)
    kernel = tuple(min(k, (n - 1) // d + 1) for k, d, n in within)  # as much as there is
    padding = tuple(min(p, k // 2) for p, k in zip(padding, kernel, strict=True))
    x = volumes(shape, dtype, odd)
    values, places = in_either_order(
        "max_pool2d", [x], kernel, stride, padding, dilation, ceil_mode
    )
    same((values, places), NUMPY["max_pool2d"](x, kernel, stride, padding, dilation, ceil_mode))
    grad = volumes(values.shape, dtype, False)
    if places.min() >= 0 and places.max() < shape[2] * shape[3]:
        in_either_order("max_pool2d_backward", [grad, places], shape)
    if dilation != (1, 1):
        return
    x = volumes(shape, dtype, False)  # integers, whose sums are exact in any order
    for how in ((True, None), (False, None), (False, 3)):
        rest = (kernel, stride, padding, ceil_mode, *how)
        (means,) = in_either_order("avg_pool2d", [x], *rest)
        same([means], [NUMPY["avg_pool2d"](x, *rest)])
        in_either_order("avg_pool2d_backward", [means], shape, *rest)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_many_channels_are_pooled_in_pieces(name):
    x = volumes((2, 1100, 3, 4), np.float32, True)
    how = ((1, 1), False) if name == "max_pool2d" else (False, True, None)
    made = in_either_order(name, [x], (2, 2), (1, 1), (1, 1), *how)
    if name == "max_pool2d":
        in_either_order("max_pool2d_backward", made, x.shape)
    else:
        how = (x.shape, (2, 2), (1, 1), (1, 1), *how)
        in_either_order("avg_pool2d_backward", made, *how)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gradients_of_maxima_have_the_order_of_the_places(dtype):
    x = volumes((2, 3, 4, 6), dtype, False)
    how = (2, 2), (2, 2), (0, 0), (1, 1), False
    values, places = COMPILED["max_pool2d"](last(x), *how)
    plain = np.array(places, order="C")
    for grad in (
        values,
        np.array(values, order="C"),
        np.broadcast_to(values[:1, :1], (2, 3, 2, 3)),
    ):
        expected = NUMPY["max_pool2d_backward"](np.array(grad, order="C"), plain, x.shape)
        for some in (places, plain):
            np.testing.assert_array_equal(
                COMPILED["max_pool2d_backward"](grad, some, x.shape), expected
            )


@pytest.mark.parametrize("place", [-1, 4, 1 << 40])
def test_places_outside_of_an_image_are_refused(place):
    places = np.array([[[[0, place]]]])
    grad, out = np.ones((1, 1, 1, 2), np.float32), np.zeros((1, 2, 2, 2), np.float32)
    with pytest.raises(IndexError, match="range"):
        extension.native.max_pool2d_pixels_backward_f32(out, grad, places, 1, 4, 1, 2)


@given(
    st.tuples(*[st.integers(1, n) for n in (2, 40, 9, 9)]),
    *(pairs(1, 9), st.sampled_from([np.float32, np.float64]), st.booleans()),
)
@settings(max_examples=100, deadline=None)
def test_windows_that_cover_images_do_not_depend_on_their_order(shape, counts, dtype, odd):
    x = volumes(shape, dtype, odd)
    made = in_either_order("adaptive_max_pool2d", [x], counts)
    same(made, NUMPY["adaptive_max_pool2d"](x, counts))


@pytest.mark.parametrize(("first", "end"), [(-1, 2), (0, 4), (2, 2), (2, 1)])
def test_windows_outside_of_an_image_are_refused(first, end):
    x, values, places = (
        np.zeros((1, 3, 3, 2), np.float32),
        np.zeros(2, np.float32),
        np.zeros(2, int),
    )
    whole, given = (np.array([0]), np.array([3])), (np.array([first]), np.array([end]))
    for bounds in ((*whole, *given), (*given, *whole)):
        with pytest.raises(IndexError, match="window"):
            extension.native.max_boxes_pixels_f32(values, places, x, *bounds, 1, 3, 3, 1, 1, 2)
