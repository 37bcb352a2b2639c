"""Distances of rows and their gradients, beside NumPy's kernels in float64."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels.distance import KERNELS as COMPILED
from flambeau_numpy.extending import KERNELS as NUMPY

EPS = {np.float32: 2e-6, np.float64: 1e-14}


def wide(a: Any) -> Any:
    return a.astype("f8") if isinstance(a, np.ndarray) else a


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([(), (1,), (3,), (2, 2), (0,)]),
    st.sampled_from([0, 1, 5, 63, 64, 65, 130]),
    st.sampled_from([0, 1, 7, 16, 17, 33, 64, 65, 140]),
    st.sampled_from([1, 2, 3, 16, 17, 64, 100, 129]),
    st.sampled_from([1.0, 2.0, inf]),
    st.sampled_from(list(EPS)),
    st.booleans(),
    st.sampled_from([None, np.nan, np.inf]),
    st.integers(0, 999),
)
def test_distances_and_gradients_are_those_of_numpy_in_double(
    lead: tuple[int, ...],
    rows: int,
    others: int,
    columns: int,
    p: float,
    dtype: Any,
    gaps: bool,
    odd: float | None,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    # Small integers: equal rows and equal greatest differences are among them.
    x = rng.integers(-3, 4, size=(*lead, rows, columns)).astype(dtype)
    y = rng.integers(-3, 4, size=(*lead, others, columns)).astype(dtype)
    if odd is not None and x.size:
        x[tuple(rng.integers(n) for n in x.shape)] = odd
    if gaps:
        x, y = (np.repeat(a, 2, -1)[..., ::2] for a in (x, y))
    found, wanted = COMPILED["cdist"](x, y, p), NUMPY["cdist"](wide(x), wide(y), p)
    assert found.dtype == dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=EPS[dtype])
    grad = rng.normal(size=wanted.shape).astype(dtype)
    given = grad, x, y, wanted.astype(dtype)
    slope = COMPILED["cdist_backward"](*given, p)
    with np.errstate(all="ignore"):
        beside = NUMPY["cdist_backward"](*map(wide, given), p)
    assert slope.dtype == dtype and slope.shape == x.shape
    limit = EPS[dtype] * (1 + others)
    np.testing.assert_allclose(slope, beside, rtol=limit, atol=limit)


@pytest.mark.parametrize("p", [1.0, 2.0, inf])
def test_threads_leave_the_bits(p: float, threads: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(3, n, 40)).astype(np.float32) for n in (150, 90))
    grad, found = rng.normal(size=(3, 150, 90)).astype(np.float32), []
    for count in (1, 4):
        threads(count)
        found.append(COMPILED["cdist"](x, y, p))
        found.append(COMPILED["cdist_backward"](grad, x, y, found[-1], p))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])


def test_short_arrays_are_refused() -> None:
    x, y = np.ones((3, 2)), np.ones((4, 2))
    with pytest.raises(RuntimeError, match="array"):
        native.cdist_f64(np.empty(11), x, y, 1, 3, 4, 2, 2)
    with pytest.raises(RuntimeError, match="array"):
        native.cdist_backward_f64(np.empty(6), np.ones(11), x, y, np.ones(12), 1, 3, 4, 2, 2)
