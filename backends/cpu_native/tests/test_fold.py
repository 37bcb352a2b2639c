"""Windows added where they lie: NumPy's, of any sizes, dtype and order of memory."""

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

DTYPES = np.float32, np.float64, np.float16, np.complex64, ml_dtypes.bfloat16
PAIRS = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(st.data())
@settings(max_examples=500, deadline=None)
def test_windows_are_added_as_by_numpy(data):
    size, kernel = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9))), data.draw(PAIRS)
    dilation, stride = data.draw(PAIRS), data.draw(PAIRS)
    padding = tuple([n - 1 for n in data.draw(PAIRS)])
    how = zip(size, kernel, dilation, padding, stride, strict=True)
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in how]
    if min(counts) < 1:
        return
    n, dtype = data.draw(st.integers(0, 2)), data.draw(st.sampled_from(DTYPES))
    shape = n, 3 * kernel[0] * kernel[1], counts[0] * counts[1]
    columns = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)  # sums are exact
    if data.draw(st.booleans()):
        columns = np.array(columns.T, order="C").T
    args = columns, size, kernel, dilation, padding, stride
    found, expected = COMPILED["col2im"](*args), NUMPY["col2im"](*args)
    assert found.dtype == expected.dtype == dtype
    np.testing.assert_array_equal(found, expected)


def test_windows_that_reach_beyond_all_numbers_are_refused():
    columns, out = np.ones(4, np.float32), np.full(9, 7, np.float32)
    run, far = native.col2im_f32, (1 << 63) - 1
    run(out, columns, 1, 1, 1, 2, 2, 3, 3, 1, 1, 0, 0, 2, 2)
    assert out.tolist() == [1, 0, 1, 0, 0, 0, 1, 0, 1]
    run(out, columns, 1, 2, 2, 1, 1, 3, 3, 5, 5, 0, 0, 1, 1)
    assert out.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    for place in range(6):
        for value in (far, -1, 1 << 61):
            how = [1, 1, 0, 0, 2, 2]
            how[place] = value
            with pytest.raises(RuntimeError, match="reach too far"):
                run(out, columns, 1, 1, 1, 2, 2, 3, 3, *how)
    for stride in ((0, 1), (1, 0)):
        with pytest.raises(RuntimeError, match="reach too far"):
            run(out, columns, 1, 1, 1, 2, 2, 3, 3, 1, 1, 0, 0, *stride)


def test_planes_are_shared_among_threads():
    columns = np.random.default_rng(0).standard_normal((3, 45, 400)).astype(np.float32)
    few = native.get_threads()
    native.set_threads(4)
    try:
        found = COMPILED["col2im"](columns, (20, 20), (3, 3), (1, 1), (1, 1), (1, 1))
    finally:
        native.set_threads(few)
    expected = NUMPY["col2im"](columns, (20, 20), (3, 3), (1, 1), (1, 1), (1, 1))
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5)
