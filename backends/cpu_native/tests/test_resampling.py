"""Resampling: the NumPy kernel's numbers along any dimension, of lines in any order of memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.kernels import KERNELS as NUMPY

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled code")

FLOATS = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
TOLERANCE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-14}


def wide(a):
    return a.astype(np.float64) if a.dtype.kind == "V" else a


@st.composite
def lines(draw, dtypes=FLOATS):
    """Images, volumes or signals in some order of memory, some without elements."""
    shape = draw(st.lists(st.integers(0, 5), min_size=2, max_size=5))
    order = draw(st.sampled_from(["row-major", "channels last", "turned", "gaps", "reversed"]))
    noise = np.random.default_rng(draw(st.integers(0, 9)))
    a = (noise.standard_normal(shape) * 9).astype(draw(st.sampled_from(dtypes)))
    if order == "channels last":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)
    if order == "turned":
        return np.array(a.T, order="C").T
    if order == "gaps":
        return np.repeat(a, 2, -1)[..., ::2]
    return a[..., ::-1] if order == "reversed" else a


@st.composite
def reads(draw, size):
    """What each of some lines is a sum of, and with what weights."""
    taps, count = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    noise = np.random.default_rng(draw(st.integers(0, 99)))
    places = noise.integers(0, size, (taps, count)).tolist()
    weights = noise.integers(-2, 3, (taps, count)) / 4
    return tuple(map(tuple, places)), tuple(map(tuple, weights.tolist()))


def agree(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    close = TOLERANCE.get(found.dtype, 1e-2)
    np.testing.assert_allclose(wide(found), wide(expected), rtol=close, atol=9 * close)


@given(st.data(), lines(), st.integers(0, 4))
@settings(max_examples=300, deadline=None)
def test_sums_of_lines_along_any_dimension(data, a, dim):
    dim %= a.ndim
    if not a.shape[dim]:
        return
    places, weights = data.draw(reads(a.shape[dim]))
    found = COMPILED["resample"](a, dim, places, weights)
    agree(found, NUMPY["resample"](a, dim, places, weights))
    size = a.shape[dim] + data.draw(st.integers(0, 2))
    for given_weights in (weights, None):
        some = places if given_weights else places[:1]
        args = dim, size, some, given_weights
        over = COMPILED["resample_backward"](found, *args)
        agree(over, NUMPY["resample_backward"](found, *args))


@given(st.data(), lines((*FLOATS, np.uint8, np.int64, np.complex64)), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_lines_at_places_of_any_dtype(data, a, dim):
    dim %= a.ndim
    if not a.shape[dim]:
        return
    places, _ = data.draw(reads(a.shape[dim]))
    found = COMPILED["resample"](a, dim, places[:1], None)
    np.testing.assert_array_equal(wide(found), wide(np.take(a, np.array(places[0]), dim)))


@pytest.mark.parametrize("inner", [1, 40])
def test_what_is_no_number_stays_where_it_is_read(inner):
    a = np.ones((2, 3, inner), np.float32)
    a[0, 1], a[1, 2] = np.inf, np.nan
    places, weights = ((0, 1, 2), (1, 2, 0)), ((1.0, 0.0, 0.5), (0.0, 0.5, -1.0))
    found = COMPILED["resample"](a, 1, places, weights)
    np.testing.assert_array_equal(found, NUMPY["resample"](a, 1, places, weights))
    assert np.isnan(found[0, 0]).all()  # an infinite number times 0


def test_images_keep_their_channels_last():
    a = np.ones((2, 4, 5, 3), np.float32).transpose(0, 3, 1, 2)
    for args in (((0, 1),), None), (((0, 1), (1, 2)), ((0.5, 1.0), (0.5, 0.0))):
        assert COMPILED["resample"](a, 2, *args).transpose(0, 2, 3, 1).flags.c_contiguous


@pytest.mark.parametrize("place", [-1, 3, 1 << 40])
@pytest.mark.parametrize("inner", [1, 2])
def test_places_outside_are_refused(place, inner):
    x, out = np.zeros((2, 3, inner), np.float32), np.zeros((2, 1, inner), np.float32)
    ends, weights = np.array([2]), np.ones(2, np.float32)
    with pytest.raises(IndexError, match="range"):
        native.take_lines(out, x, np.array([place]), 2, 3, 1, inner * 4)
    with pytest.raises(IndexError, match="range"):
        native.resample_f32(out, x, ends, np.array([0, place]), weights, 2, 3, 1, inner, 2)
    for end in (-1, 3):
        with pytest.raises(IndexError, match="range"):
            native.resample_f32(
                out, x, np.array([end]), np.array([0, 1]), weights, 2, 3, 1, inner, 2
            )
