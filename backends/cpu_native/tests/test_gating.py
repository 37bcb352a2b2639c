"""Gated linear units and their gradient: NumPy's, of any dimensions, dtype and order of memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.extending import KERNELS as NUMPY

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled code")

CLOSE = {np.float32: 3e-6, np.float64: 1e-13, np.float16: 3e-3, ml_dtypes.bfloat16: 2e-2}


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.integers(0, 3),
    st.sampled_from(list(CLOSE)),
    st.sampled_from(["row-major", "turned", "gaps"]),
)
@settings(max_examples=300, deadline=None)
def test_gates_and_gradients_are_numpys(shape, dim, dtype, order):
    dim %= len(shape)
    whole = [2 * n if d == dim else n for d, n in enumerate(shape)]
    a = (np.random.default_rng(0).standard_normal(whole) * 6).astype(dtype)
    grad = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    if order == "turned":
        a, grad = np.array(a.T, order="C").T, np.array(grad.T, order="C").T
    elif order == "gaps":
        a, grad = (np.repeat(x, 2, -1)[..., ::2] for x in (a, grad))
    for name, args in {"glu": (a, dim), "glu_backward": (grad, a, dim)}.items():
        found, expected = COMPILED[name](*args), NUMPY[name](*args)
        assert found.dtype == expected.dtype == dtype
        np.testing.assert_allclose(
            found.astype(np.float64), expected.astype(np.float64), CLOSE[dtype], CLOSE[dtype]
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gates_at_infinities_and_nan(dtype):
    a = np.array([1, np.nan, np.inf, 2, -np.inf, 1, 1e30, np.nan], dtype).reshape(1, 8)
    b = np.array([np.inf, 1, 0, -np.inf, np.inf, np.nan, 200, 0], dtype).reshape(1, 8)
    found = COMPILED["glu"](np.concatenate([a, b], 1), 1)
    expected = [1, np.nan, np.inf, 0, -np.inf, np.nan, 1e30, np.nan]
    np.testing.assert_allclose(found[0], np.array(expected, dtype))


def test_rows_are_shared_among_threads():
    a = np.random.default_rng(0).standard_normal((300, 2, 400)).astype(np.float32)
    grad = a[:, :1].copy()
    few = native.get_threads()
    native.set_threads(4)
    try:
        found = COMPILED["glu"](a, 1), COMPILED["glu_backward"](grad, a, 1)
    finally:
        native.set_threads(few)
    np.testing.assert_allclose(found[0], NUMPY["glu"](a, 1), 1e-5, 1e-6)
    np.testing.assert_allclose(found[1], NUMPY["glu_backward"](grad, a, 1), 1e-5, 1e-6)
