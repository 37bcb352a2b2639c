"""Choices between two arrays by a third: NumPy's bits, shapes and order, wherever they lie."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS
from flambeau_numpy.kernels import KERNELS as NUMPY

DTYPES = [np.float32, np.float64, np.int32, np.int64, np.complex64, np.float16, np.bool_]


@st.composite
def operands(draw):
    """A condition and two arrays whose shapes broadcast: cut out, turned, repeated or numbers."""
    shape = draw(st.lists(st.integers(0, 9) | st.just(40), max_size=4).map(tuple))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    found = []
    for kind in (np.dtype(np.bool_), dtype, dtype):
        own = [1 if draw(st.integers(0, 3)) == 0 else n for n in shape]
        own = own[draw(st.integers(0, len(own))) if draw(st.booleans()) else 0 :]
        rng = np.random.default_rng(draw(st.integers(0, 9)))
        bits = rng.integers(0, 256, (*[n + 2 for n in own], kind.itemsize), np.uint8)
        x = bits.view(kind)[..., 0] if kind != np.bool_ else bits[..., 0] > 127
        x = x[(..., *(slice(1, n + 1) for n in own))]
        match draw(st.sampled_from(["cut", "dense", "dense", "turned", "expanded", "backwards"])):
            case "dense":
                x = x.copy()
            case "turned":
                x = x.T.copy().T
            case "expanded":
                try:
                    x = np.broadcast_to(x, shape)
                except ValueError:
                    pass
            case "backwards" if x.ndim:
                x = x[..., ::-1]
        found.append(x)
    return found


@given(operands())
@settings(max_examples=600, deadline=None, derandomize=True)
def test_choices_are_those_of_numpy(given):
    found, wanted = KERNELS["where"](*given), NUMPY["where"](*given)
    assert (found.dtype, found.shape, found.strides) == (wanted.dtype, wanted.shape, wanted.strides)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lines_are_shared_between_threads(count, dtype, threads):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(7, 301, 77)).astype(dtype) for _ in "ab")
    threads(count)
    for condition in (a > 0, a[0] > 0, a[:, :1] > 0, a[..., :1] > 0, a[0, 0] > 0):
        for x, y in ((a, b), (a, b[:, :1]), (a[..., :1], b), (a[0, 0, 0], b)):
            wanted = np.where(condition, x, y)
            np.testing.assert_array_equal(KERNELS["where"](condition, x, y), wanted)


def test_conditions_that_change_meanwhile_choose_from_what_there_is():
    """A line of a number or of an array: whichever its condition said when it was read."""
    condition, stop = np.zeros((4000, 1), np.bool_), threading.Event()

    def change():
        while not stop.is_set():
            np.logical_not(condition, out=condition)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        ones, two = np.ones((4000, 300), np.float32), np.full((1, 1), 2, np.float32)
        for _ in range(20):
            found = KERNELS["where"](condition, ones, two)
            assert ((found == 1) | (found == 2)).all()
    finally:
        stop.set()
        changing.join()


def test_misuse_is_refused(unshared):
    where = KERNELS["where"]
    x = np.zeros(8, np.float32)
    with pytest.raises(TypeError, match="three arrays"):
        where(x > 0, x)
    with pytest.raises(ValueError, match="broadcast"):
        where(x[:7] > 0, x, x)
    with pytest.raises(ValueError, match="one byte"):
        native.choosing(np.where, np.dtype(np.float32), 1, np.empty)
    odd = native.choosing(np.where, np.dtype(np.bool_), 0, lambda shape, dtype: np.empty(1, dtype))
    with pytest.raises(RuntimeError, match="another size"):
        odd(x > 0, x, x)
