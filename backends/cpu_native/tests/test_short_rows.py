"""Reductions of short rows, which are turned into columns some at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.extending import KERNELS as NUMPY

KINDS = np.float32, np.float64, np.int32, np.int64, np.bool_
SPECIAL = 0.0, -0.0, np.inf, -np.inf, np.nan
COLUMNS = st.one_of(st.integers(1, 70), st.sampled_from([127, 128, 129, 255, 256, 257, 1024, 1025]))
ROWS = st.one_of(st.integers(1, 40), st.sampled_from([127, 128, 129, 255, 256, 257, 300]))


@st.composite
def matrices(draw, kinds=KINDS, special=SPECIAL):
    """Rows in front of and behind which others lie, many of whose numbers are equal."""
    kind, columns, rows = draw(st.sampled_from(kinds)), draw(COLUMNS), draw(ROWS)
    random = np.random.default_rng(draw(st.integers(0, 99)))
    a = random.integers(-4, 5, (rows + 2, columns)).astype(kind)
    if a.dtype.kind == "f":
        for _ in range(draw(st.integers(0, 6))):
            a.flat[random.integers(a.size)] = draw(st.sampled_from(special))
    elif a.dtype.kind == "b":
        a = random.random(a.shape) < draw(st.sampled_from([0, 1 / columns, 0.5, 1]))
    return a[1:-1]


def agree(name, a, *args):
    with np.errstate(all="ignore"):
        found, wanted = COMPILED[name](a, *args), NUMPY[name](a, *args)
    both = (found, wanted) if isinstance(found, tuple) else ((found,), (wanted,))
    for have, want in zip(*both, strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want)
    return found


@given(matrices(), st.booleans(), st.booleans())
def test_extrema_and_the_first_of_their_places(a, largest, keepdim):
    names = ("amax", "argmax") if largest else ("amin", "argmin")
    best = agree(names[0], a, (1,), keepdim)
    values, places = agree("extremum", a, 1, keepdim, largest)
    np.testing.assert_array_equal(values, best)
    np.testing.assert_array_equal(
        values, np.take_along_axis(a, places.reshape(-1, 1), 1).reshape(values.shape)
    )
    if a.dtype.kind == "f":  # the zero, and the NaN, that stands there
        there = np.take_along_axis(a, places.reshape(-1, 1), 1).reshape(values.shape)
        np.testing.assert_array_equal(np.signbit(values), np.signbit(there))
    if a.dtype != np.bool_:
        agree(names[1], a, 1, keepdim)


@given(matrices(), st.booleans())
def test_truths_and_counts(a, keepdim):
    for name in ("any", "all", "count_nonzero"):
        agree(name, a, (1,), keepdim)


@given(matrices(), st.booleans())
def test_sums_whose_terms_are_whole_are_exact(a, keepdim):
    if a.dtype.kind in "fi" and a.dtype != np.int32:
        agree("sum", a, (1,), keepdim)
    if a.dtype.kind == "f":
        agree("nansum", a, (1,), keepdim)
        with np.errstate(all="ignore"):
            wanted = np.sqrt(np.square(a).sum(1, keepdims=keepdim))
        np.testing.assert_array_equal(COMPILED["norm2"](a, (1,), keepdim), wanted)


@given(matrices((np.int64,)), st.integers(0, 99))
def test_sums_and_products_of_integers_wrap_around(a, seed):
    large = np.random.default_rng(seed).integers(-(1 << 63), (1 << 63) - 1, a.shape) | 1
    for name in ("sum", "prod"):
        agree(name, large, (1,), False)


@given(matrices((np.float32, np.float64), (np.nan, 0.0)), st.booleans())
def test_products_of_signs_and_of_powers_of_two_are_exact(a, keepdim):
    signs = np.where(np.isnan(a) | (a == 0), a, np.copysign(1, a)).astype(a.dtype)
    powers = signs * np.where(np.arange(a.shape[1]) % 2, 2, 0.5).astype(a.dtype)
    for x in (signs, powers):
        agree("prod", x, (1,), keepdim)
        agree("prod", np.ascontiguousarray(x.T), (0,), keepdim)


@given(matrices((np.float32, np.float64), (np.nan, 0.0, np.inf)))
def test_products_of_others_are_those_before_times_those_after(a):
    # Twos whose products neither overflow nor vanish, however many there are.
    signs = np.where(np.isfinite(a) & (a != 0), np.copysign(1, a), a).astype(a.dtype)
    powers = signs * np.where(np.arange(a.shape[1]) % 2, 2, 0.5).astype(a.dtype)
    for x in (signs, powers):
        agree("prod_of_others", x, (1,))
        agree("prod_of_others", np.ascontiguousarray(x.T), (0,))
        agree("prod_of_others", x.reshape(1, *x.shape), (0, 1, 2))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_has_the_same_bits_whatever_rows_lie_beside_it(kind):
    random = np.random.default_rng(0)
    for columns in (2, 3, 16, 17, 33, 100, 255):
        a = random.standard_normal((300, columns)).astype(kind)
        for name in ("sum", "nansum", "norm2", "prod"):
            whole = COMPILED[name](a, (1,), False)
            for rows in (slice(1, 271), slice(30, 300), slice(7, 8), slice(9, 20)):
                found = COMPILED[name](a[rows], (1,), False)
                if name != "prod" or found.size * columns >= 512:
                    np.testing.assert_array_equal(found, whole[rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("n", [127, 128, 511, 1025, 1500, 2047, 2048, 4100, 16384, 16385, 16500])
def test_the_extremum_of_a_long_row_is_found_wherever_it_is(n: int, dtype: type, threads) -> None:
    rng = np.random.default_rng(n)
    a = rng.integers(-50, 50, n).astype(dtype)
    for count in (1, 2):
        threads(count)
        for place in [*rng.integers(0, n, 12), 0, n - 1, n - 2, n // 2, n - n % 64, n - n % 16]:
            if place == n:
                continue
            for value, name in ((99, "amax"), (-99, "amin")):
                b = a.copy()
                b[place] = value
                assert COMPILED[name](b, (0,), False) == value
                assert COMPILED[f"arg{name[1:]}"](b, 0, False) == place
                if dtype != np.int64:
                    b[place] = np.nan
                    assert np.isnan(COMPILED[name](b, (0,), False))
