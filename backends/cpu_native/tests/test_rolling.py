"""What is moved along dimensions: NumPy's, of any dimensions, dtype and order of memory."""

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

DTYPES = np.bool_, np.uint8, np.int16, np.float32, np.int64, np.complex128, ml_dtypes.bfloat16


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_arrays_are_rolled_as_by_numpy(data):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    dtype = data.draw(st.sampled_from(DTYPES))
    a = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    order = data.draw(st.sampled_from(["row-major", "turned", "gaps"]))
    if order == "turned":
        a = np.array(a.T, order="C").T
    elif order == "gaps":
        a = np.repeat(a, 2, -1)[..., ::2]
    dims = tuple(data.draw(st.lists(st.integers(0, len(shape) - 1), max_size=4)))
    shifts = tuple([data.draw(st.integers(-(1 << 62), 1 << 62) | st.integers(-9, 9)) for _ in dims])
    expected = a
    for shift, d in zip(shifts, dims, strict=True):
        expected = np.roll(expected, shift % shape[d], d)
    for kernels in (COMPILED, NUMPY):
        found = kernels["roll"](a, shifts, dims)
        assert found.dtype == a.dtype
        np.testing.assert_array_equal(found, expected)
        assert not np.may_share_memory(found, a)


def test_places_beyond_the_dimensions_are_refused():
    a, out = np.arange(12, dtype=np.uint8), np.zeros(12, np.uint8)
    native.roll(out, a, 1, 2, 2, 3, 1, 0, 1)
    assert out.tolist() == [8, 6, 7, 11, 9, 10, 2, 0, 1, 5, 3, 4]
    for places in ((2, 0, 0), (0, 2, 0), (0, 0, 3), (-1, 0, 0), (0, -1, 0), (0, 0, -(1 << 63))):
        with pytest.raises(IndexError, match="out of range"):
            native.roll(out, a, 1, 2, 2, 3, *places)


def test_lines_are_shared_among_threads():
    a = np.random.default_rng(0).standard_normal((50, 60, 70)).astype(np.float32)
    few = native.get_threads()
    native.set_threads(4)
    try:
        found = COMPILED["roll"](a, (7, -3, 20), (0, 1, 2))
    finally:
        native.set_threads(few)
    np.testing.assert_array_equal(found, np.roll(a, (7, -3, 20), (0, 1, 2)))
