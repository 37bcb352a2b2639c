"""Padding with an array's own entries: NumPy's, of any dimensions, dtype and order of memory."""

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
MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # and NumPy's names


@st.composite
def paddings(draw, dtypes=DTYPES):
    """An array in some order of memory, and what is added to or cropped from each dimension."""
    mode = draw(st.sampled_from(sorted(MODES)))
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    shape[0] = draw(st.integers(0, 2)) if len(shape) > 1 else shape[0]
    a = np.random.default_rng(0).integers(0, 9, shape).astype(draw(st.sampled_from(dtypes)))
    order = draw(st.sampled_from(["row-major", "channels last", "turned", "gaps"]))
    if order == "channels last" and len(shape) > 1:
        a = np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)
    elif order == "turned":
        a = np.array(a.T, order="C").T
    elif order == "gaps":
        a = np.repeat(a, 2, -1)[..., ::2]
    pad = [(0, 0)] * len(shape)
    for d in draw(st.sets(st.integers(0, len(shape) - 1), max_size=4)):
        n = shape[d]
        if n == 0:
            continue
        before = draw(st.integers(-n + 1, 7 if mode == "replicate" else n - 1))
        left = n + min(before, 0)
        most = {"reflect": n - 1, "replicate": 7, "circular": left}[mode]
        after = draw(st.integers(-left + 1, most))
        if mode == "circular":
            before = min(before, left + min(after, 0))
        pad[d] = (before, after) if n + before + after >= 0 else (0, 0)
    return a, tuple(pad), mode


def padded(a, pad, mode):
    """The same by `np.pad`, of what is cropped before, or extended before it is cropped."""

    def cropped(x):
        part = [slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(x.shape, pad, strict=True)]
        return x[tuple(part)]

    wide = [(max(b, 0), max(e, 0)) for b, e in pad]
    if mode == "circular":
        return np.pad(cropped(a), wide, MODES[mode])
    extended = a
    for d, pair in enumerate(wide):
        if any(pair):
            extended = np.pad(
                extended, [pair if i == d else (0, 0) for i in range(a.ndim)], MODES[mode]
            )
    return cropped(extended)


@given(paddings())
@settings(max_examples=500, deadline=None)
def test_what_is_added_are_entries_of_the_array(case):
    a, pad, mode = case
    expected = padded(a, pad, mode)
    for kernels in (COMPILED, NUMPY):
        found = kernels["boundary_pad_nd"](a, pad, mode)
        assert found.dtype == a.dtype
        np.testing.assert_array_equal(found, expected)
        assert not np.may_share_memory(found, a)


@given(paddings([np.float32, np.float64, np.complex64, np.float16, ml_dtypes.bfloat16]))
@settings(max_examples=500, deadline=None)
def test_the_gradient_is_the_adjoint(case):
    a, pad, mode = case
    shape = [n + before + after for n, (before, after) in zip(a.shape, pad, strict=True)]
    grad = np.random.default_rng(1).integers(-4, 5, shape).astype(a.dtype)
    number = np.complex128 if a.dtype.kind == "c" else np.float64
    numbers = np.arange(a.size).reshape(a.shape)
    expected = np.zeros(a.size, number)  # whole numbers: the order of sums is all the same
    np.add.at(expected, padded(numbers, pad, mode), grad.astype(number))
    for kernels in (COMPILED, NUMPY):
        found = kernels["boundary_pad_nd_backward"](grad, pad, mode)
        assert found.dtype == a.dtype
        np.testing.assert_array_equal(found.astype(number), expected.reshape(a.shape))


@pytest.mark.parametrize("name", ["boundary_pad_nd", "boundary_pad_nd_backward"])
def test_images_with_channels_last_stay_so(name):
    a = np.ones((2, 6, 7, 3), np.float32).transpose(0, 3, 1, 2)
    found = COMPILED[name](a, ((0, 0), (0, 0), (2, 1), (1, 0)), "reflect")
    assert found.transpose(0, 2, 3, 1).flags.c_contiguous


def test_places_out_of_range_are_refused():
    a, out = np.ones(12, np.float32), np.zeros(12, np.float32)
    one, good, bad = np.zeros(1, np.int64), np.arange(4), np.array([0, 1, 2, 4])
    three, ends = np.arange(3), np.arange(1, 4)
    native.boundary(out, a, one, three, good, 1, 1, 3, 4, 1, 3, 4, 4, 4, 0, 0)
    assert out.tolist() == a.tolist()
    run = native.boundary_backward_f32
    run(out, a, one + 1, one, ends, three, good, 1, 1, 3, 4, 1, 3, 4, 1, 4, 0, 0)
    for places in ((one, three, bad), (one, three + 1, good), (one - 1, three, good)):
        with pytest.raises(IndexError, match="out of range"):
            native.boundary(out, a, *places, 1, 1, 3, 4, 1, 3, 4, 4, 4, 0, 0)
    for middle in (
        (5, 0, 0),
        (0, 0, 5),
        (0, 3, 2),
        (-1, 0, 1),
        (0, -1, 1),
        (0, 0, -1),
        (1 << 62, 0, 1),
    ):
        with pytest.raises(IndexError, match="out of range"):
            native.boundary(out, a, one, three, good, 1, 1, 3, 4, 1, 3, 4, 4, *middle)
        with pytest.raises(IndexError, match="out of range"):
            run(out, a, one + 1, one, ends, three, good, 1, 1, 3, 4, 1, 3, 4, 1, *middle)
    for lists in (
        (one + 2, one, ends, three, good),
        (one + 1, one + 1, ends, three, good),
        (one + 1, one, ends[::-1].copy(), three, good),
        (one + 1, one, ends + 1, three, good),
        (one + 1, one, ends, three + 1, good),
        (one + 1, one, ends, three - 1, good),
        (one + 1, one, ends, three, bad),
    ):
        with pytest.raises(IndexError, match="out of range"):
            run(out, a, *lists, 1, 1, 3, 4, 1, 3, 4, 1, 4, 0, 0)


def test_large_images_are_padded_by_several_threads():
    a = np.random.default_rng(0).standard_normal((3, 40, 50, 60)).astype(np.float32)
    pad = ((0, 0), (2, 3), (1, 1), (4, 0))
    few = native.get_threads()
    native.set_threads(4)
    try:
        found = COMPILED["boundary_pad_nd"](a, pad, "reflect")
        over = COMPILED["boundary_pad_nd_backward"](found, pad, "reflect")
    finally:
        native.set_threads(few)
    np.testing.assert_array_equal(found, np.pad(a, pad, "reflect"))
    np.testing.assert_allclose(
        over, NUMPY["boundary_pad_nd_backward"](found, pad, "reflect"), 1e-5, 1e-5
    )
