"""Functions of two arrays beyond arithmetic, and running sums of exponentials, against NumPy's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.kernels import KERNELS as NUMPY

CORNERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e38, -1e38, 1e-40]


LINES = [
    *[((), 0), ((0,), 0), ((1,), 0), ((2, 0), 1), ((0, 2), 1)],
    *[((700,), 0), ((5, 600), 1), ((600, 5), 0), ((2, 300, 3), 1)],
]


def pairs(values, dtype):
    found = np.array(list(product(values, values)), dtype)
    return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_and_multiples_of_integers(name, dtype, threads):
    facts, rng = np.iinfo(dtype), np.random.default_rng(0)
    corners = {0, 1, 2, 3, 5, 6, 12, 96, facts.max, facts.max - 1, facts.max // 2 + 1}
    if facts.min:
        corners |= {-1, -2, -12, facts.min, facts.min + 1, facts.min // 2}
    a, b = pairs(sorted(corners), dtype)
    drawn = [rng.integers(facts.min, facts.max, 40_000, dtype, True) for _ in range(2)]
    for count, (x, y) in product((1, 2), ((a, b), drawn)):
        threads(count)
        np.testing.assert_array_equal(COMPILED[name](x, y), NUMPY[name](x, y))
    np.testing.assert_array_equal(COMPILED[name](a[::2], b[::2]), NUMPY[name](a[::2], b[::2]))
    table = COMPILED[name](a[:5, None], b[:7])
    np.testing.assert_array_equal(table, NUMPY[name](a[:5, None], b[:7]))
    assert COMPILED[name](a[:0], b[:0]).shape == (0,)
    assert np.asarray(COMPILED[name](a[0, ...], b[0, ...])).shape == ()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_two_exponentials(name, dtype):
    with np.errstate(all="ignore"):
        a, b = pairs(CORNERS, dtype)
        bound = 4 * np.finfo(dtype).eps
        for x, y in ((a, b), (a[::2], b[::2]), (a[:0], b[:0]), (a[3, ...], b[9, ...])):
            found, wanted = np.asarray(COMPILED[name](x, y)), NUMPY[name](x, y)
            assert found.shape == wanted.shape
            assert found.dtype == dtype
            np.testing.assert_allclose(found, wanted, bound, bound)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_cross_entropies_of_probabilities(dtype):
    with np.errstate(all="ignore"):
        rng, one = np.random.default_rng(0), np.nextafter(dtype(1), dtype(0))
        some = [0.0, 1.0, one, 1e-7, 1e-40, 0.5, np.nan, *rng.random(30)]
        a, b = pairs(some, dtype)
        for x, y in ((a, b), (a[::2], b[::2]), (a[:0], b[:0]), (a[3, ...], b[9, ...])):
            found = np.asarray(COMPILED["binary_cross_entropy"](x, y))
            wanted = NUMPY["binary_cross_entropy"](x.astype("f8"), y.astype("f8"))
            assert found.shape == wanted.shape
            assert found.dtype == dtype
            np.testing.assert_allclose(found, wanted, 4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbers_times_logarithms(dtype):
    with np.errstate(all="ignore"):
        a, b = pairs([*CORNERS, 0.5, 1.0, 3.0], dtype)
        for x, y in ((a, b), (a, abs(b)), (a[::2], b[::2]), (a[:0], b[:0]), (a[3, ...], b[9, ...])):
            found, wanted = np.asarray(COMPILED["xlogy"](x, y)), NUMPY["xlogy"](x, y)
            assert found.shape == wanted.shape
            assert found.dtype == dtype
            np.testing.assert_allclose(found, wanted, 4 * np.finfo(dtype).eps)
            nothing = (x == 0) & ~np.isnan(y)
            assert not np.signbit(found[nothing]).any()
            assert not found[nothing].any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), LINES)
def test_running_sums_of_exponentials(shape, dim, dtype, threads):
    rng = np.random.default_rng(0)
    bound = 8 * np.finfo(dtype).eps
    for scale, share in product((1, 60), (0, 0.01, 0.5)):
        a = rng.normal(0, scale, shape).astype(dtype)
        odd = rng.random(shape) < share
        a = np.where(odd, rng.choice(np.array([-np.inf, -np.inf, np.nan, np.inf]), shape), a)
        a = np.asarray(a, dtype)
        wanted = NUMPY["logcumsumexp"](a, dim)
        for count in (1, 2):
            threads(count)
            np.testing.assert_allclose(COMPILED["logcumsumexp"](a, dim), wanted, bound, bound)


@pytest.mark.parametrize("rise", [1e-3, 1.0, -1.0, 300.0, -300.0])
def test_running_sums_far_from_their_greatest_number(rise):
    a = np.arange(-600, 600) * rise
    wanted = np.logaddexp.accumulate(a.astype(np.longdouble))
    np.testing.assert_allclose(COMPILED["logcumsumexp"](a, 0), wanted, 1e-15, 2e-15)
