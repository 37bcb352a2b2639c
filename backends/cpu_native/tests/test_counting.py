"""Counts, comparisons of whole arrays, places of elements, and histograms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.extending import KERNELS as NUMPY

FLOATS = [np.float32, np.float64]
DTYPES = [*FLOATS, np.int64, np.int32, np.uint8, np.bool_, np.float16, np.complex64]


def numbers(size, dtype, seed=0):
    a = np.random.default_rng(seed).integers(0, 3, size)
    return a.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 5000])
def test_arrays_are_equal_if_all_of_their_elements_are(dtype, size):
    a = numbers(size, dtype)
    assert COMPILED["equal"](a, a.copy()).dtype == np.bool_
    assert COMPILED["equal"](a, a.copy())
    for place in {0, size // 2, size - 1} if size else ():
        b = a.copy()
        b[place] = not b[place]
        assert not COMPILED["equal"](a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_of_both_signs_are_equal_and_no_nan_is(dtype):
    a = np.array([0.0, 1.0, -0.0], dtype)
    assert COMPILED["equal"](a, -a * [1, -1, 1])
    a[1] = np.nan
    assert not COMPILED["equal"](a, a)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((70_000,), (0,)),
        ((5000, 9), (0,)),
        ((3, 2500, 7), (1,)),
        ((9, 5000), (1,)),
        ((2, 700), (0,)),
    ],
)
def test_sums_and_counts_of_many_do_not_depend_on_threads(dtype, shape, dims, threads):
    a = numbers(shape, dtype, 1)
    for count in (1, 3):
        threads(count)
        found = COMPILED["count_nonzero"](a, dims, False)
        np.testing.assert_array_equal(found, np.count_nonzero(a, dims))
        if dtype == np.int64:
            np.testing.assert_array_equal(COMPILED["sum"](a, dims, False), a.sum(dims))


def test_sums_of_integers_wrap_around():
    a = np.full((3, 2), np.iinfo(np.int64).max)
    with np.errstate(all="ignore"):
        for dims in ((0,), (1,), (0, 1)):
            np.testing.assert_array_equal(COMPILED["sum"](a, dims, False), a.sum(dims))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (1,), (2000,), (3, 0), (40, 600), (5, 6, 7), (2, 3, 4, 5)])
def test_places_of_elements_are_those_of_numpy(dtype, shape):
    for a in (numbers(shape, dtype), numbers(shape, dtype)[::-1], np.zeros(shape, dtype)):
        for turned in (a, a.T):
            found = COMPILED["nonzero"](turned)
            assert found.dtype == np.int64 and found.T.flags.c_contiguous
            np.testing.assert_array_equal(found, np.array(turned.nonzero()).T)


def test_nan_and_infinities_are_not_zero_and_minus_zero_is():
    a = np.array([np.nan, -0.0, np.inf, 0.0], np.float32)
    np.testing.assert_array_equal(COMPILED["nonzero"](a), [[0], [2]])
    assert COMPILED["count_nonzero"](a, (0,), False) == 2


def test_places_for_fewer_elements_than_there_are_stay_within_their_array():
    places = np.full(3, 7)
    native.nonzero_f32(None, places, np.ones(9, np.float32), 3, 1, 9)
    assert places.tolist() == [0, 1, 2]
    native.nonzero_f32(None, places, np.zeros(9, np.float32), 3, 1, 9)
    assert places.tolist() == [0, 0, 0]


def test_places_are_repeated_as_often_as_counts_say():
    counts = np.array([2, 0, 3, 1, 0])
    for kernels in (COMPILED, NUMPY):
        assert kernels["repeat_places"](counts, 6).tolist() == [0, 0, 2, 2, 2, 3]
        assert kernels["repeat_places"](counts[::-2], 5).tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize("counts", [[2, 3], [2, -1], [-1, 5], [1 << 62, 1 << 62]])
def test_counts_that_add_up_to_another_number_are_refused(counts):
    for kernels in (COMPILED, NUMPY):
        with pytest.raises((IndexError, ValueError), match="add up|negative"):
            kernels["repeat_places"](np.array(counts), 4)


@given(st.lists(st.integers(0, 7), max_size=40))
def test_places_are_repeated_in_one_call(counts):
    given = np.array(counts, np.int64)
    wanted = np.repeat(np.arange(len(counts)), given)
    np.testing.assert_array_equal(COMPILED["repeat_places"].alone(given), wanted)
    np.testing.assert_array_equal(COMPILED["repeat_places"](given, wanted.size), wanted)


@pytest.mark.parametrize(
    "counts",
    [
        np.array([2, -1]),
        np.array([1 << 62, 1 << 62]),
        np.array([(1 << 63) - 1]),
        np.array([1, 2], np.int32),
        np.array([[1]]),
        np.array([1, 2, 3])[::2],
        np.array(3),
    ],
)
def test_what_is_no_vector_of_counts_is_left_to_others(counts):
    assert COMPILED["repeat_places"].alone(counts) is None


def test_what_asks_for_other_arguments_is_told_so():
    alone, nonzero = COMPILED["repeat_places"].alone, COMPILED["nonzero"]
    for call in (lambda: alone(), lambda: alone(1, 2), lambda: nonzero(), lambda: nonzero(1, 2)):
        with pytest.raises(TypeError, match="takes an array"):
            call()
    assert alone(None) is None
    with pytest.raises(TypeError):
        native.finding(None, ((np.dtype(np.int64), len, len),), np.dtype(np.int64), None, 1)
    case = np.dtype(np.float32), native.equal_f32, native.nonzero_f32
    with pytest.raises(TypeError, match="other kernels"):
        native.finding(None, (case,), np.dtype(np.int64), None, 1)
    with pytest.raises(TypeError, match="another kernel"):
        native.repeating(native.equal_f32, np.dtype(np.int64), None, 1)


@given(st.integers(1, 9), st.lists(st.integers(0, 8), max_size=30))
def test_numbers_are_counted_and_marked_as_by_numpy(size, numbers):
    a = np.array(numbers, np.int64) % size
    for name in ("bincount", "one_hot"):
        found, wanted = COMPILED[name](a, size), NUMPY[name](a, size)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, wanted)
    rows = np.stack([a, a], 1)
    np.testing.assert_array_equal(COMPILED["one_hot"](rows.T, size), NUMPY["one_hot"](rows.T, size))


@pytest.mark.parametrize("number", [-1, 3, 1 << 62, -(1 << 63)])
def test_numbers_out_of_range_are_not_counted(number):
    for name in ("bincount", "one_hot"):
        with pytest.raises((IndexError, ValueError)):
            COMPILED[name](np.array([0, number]), 3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bins", [1, 2, 7, 100])
def test_histograms_are_those_of_numpy(dtype, bins):
    a = np.random.default_rng(0).normal(0, 2, 3001).astype(dtype)
    a[[3, 5, 8, 13]] = np.nan, np.inf, -1.5, 2.25
    for low, high in ((-1.5, 2.25), (0.0, 1e-3), (5.0, 9.0)):
        found = COMPILED["histogram"](a, bins, low, high)
        wanted = NUMPY["histogram"](a, bins, low, high)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 15, 16, 17, 1000])
@pytest.mark.parametrize("right", [False, True])
def test_values_are_sought_as_by_numpy(dtype, size, right):
    rng = np.random.default_rng(size)
    edges = np.sort(rng.normal(0, 50, (3, size)).astype(dtype), 1)
    x = rng.normal(0, 60, (3, 37)).astype(dtype)
    if size > 2 and np.dtype(dtype).kind == "f":
        edges[1, -1], x[1, 2], x[2, 5] = np.nan, np.nan, np.inf
    x[:, :3] = edges[:, :1] if size else 0
    for e, y in ((edges, x), (edges[1].copy(), x)):
        found, wanted = COMPILED["searchsorted"](e, y, right), NUMPY["searchsorted"](e, y, right)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64])
def test_elements_of_an_order_are_found_whatever_the_pattern(dtype):
    n = 700
    line = np.arange(n)
    patterns = [line, line[::-1], line % 2, line * 0, np.minimum(line, n - line), line * 7919 % n]
    a = np.stack(patterns, 1).astype(dtype)
    for k in (1, 2, n // 2, n - 1, n):
        args = a, 0, False, k
        for found, wanted in zip(
            COMPILED["kthvalue"](*args), NUMPY["kthvalue"](*args), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)


@given(
    st.integers(1, 4),
    st.integers(1, 70) | st.sampled_from([128, 129, 1000, 4096, 4097]),
    st.integers(1, 128),
    st.sampled_from([np.float32, np.float64, np.int32, np.int64]),
    st.sampled_from([0, 1, 3, 1000]),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=400, deadline=None)
def test_selections_agree_with_a_stable_sort(rows, n, k, dtype, spread, largest, seed):
    """Of many equal elements and of none, with zeros of both signs, infinities and NaN."""
    rng = np.random.default_rng(seed)
    a, k = rng.integers(-spread, spread + 1, (rows, n)).astype(dtype), min(k, n)
    if a.dtype.kind == "f" and seed % 2:
        for x in (-0.0, np.inf, -np.inf, np.nan):
            a.reshape(-1)[rng.integers(0, a.size, n // 9)] = x
    found, wanted = COMPILED["topk"](a, k, 1, largest), NUMPY["sort"](a, 1, largest, True)
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(have, want[:, :k])
    for turned, dim in ((a, 1), (a.T.copy(), 0), (a.T, 0)):
        args = turned, dim, largest, True
        for have, want in zip(COMPILED["sort"](*args), NUMPY["sort"](*args), strict=True):
            np.testing.assert_array_equal(have, want)
            assert have.strides == want.strides
    flat = a.reshape(-1)
    for ignores in (False, True):
        found, wanted = COMPILED["median"](flat, ignores), NUMPY["median"](flat, ignores)
        np.testing.assert_array_equal(found, wanted)
    for turned, dim in ((a, 1), (a.T.copy(), 0)):
        names = [("kthvalue", (k,)), ("median_along", (False,)), ("median_along", (True,))]
        for name, rest in [*names, ("mode", ())]:
            args = turned, dim, largest, *rest
            for have, want in zip(COMPILED[name](*args), NUMPY[name](*args), strict=True):
                np.testing.assert_array_equal(have, want, name)
