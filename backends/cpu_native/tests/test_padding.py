"""Padding with a constant: NumPy's, of any dimensions, dtype and order of memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled code")

DTYPES = np.bool_, np.uint8, np.int16, np.float32, np.int64, np.complex128, ml_dtypes.bfloat16


@st.composite
def paddings(draw):
    """An array in some order of memory, and what is added to or cropped from each dimension."""
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    a = np.random.default_rng(0).integers(0, 9, shape).astype(draw(st.sampled_from(DTYPES)))
    order = draw(st.sampled_from(["row-major", "channels last", "turned", "gaps"]))
    if order == "channels last" and len(shape) > 1:
        a = np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)
    elif order == "turned":
        a = np.array(a.T, order="C").T
    elif order == "gaps":
        a = np.repeat(a, 2, -1)[..., ::2]
    padded = draw(st.sets(st.integers(0, len(shape) - 1), max_size=3))
    pad = [(0, 0)] * len(shape)
    for d in padded:
        before = draw(st.integers(-shape[d], 4))
        pad[d] = before, draw(st.integers(-shape[d] - min(before, 0), 4))
        if shape[d] + sum(pad[d]) < 0:
            pad[d] = before, 0
    return a, tuple(pad)


@given(paddings(), st.sampled_from([0, 1, 7]))
@settings(max_examples=500, deadline=None)
def test_what_is_added_has_the_value_and_the_rest_stays(case, value):
    a, pad = case
    kept = a[
        tuple(slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(a.shape, pad, strict=True))
    ]
    wide = [(max(b, 0), max(e, 0)) for b, e in pad]
    expected = np.pad(kept, wide, constant_values=np.asarray(value).astype(a.dtype))
    value = bool(value) if a.dtype == bool else complex(value) if a.dtype.kind == "c" else value
    found = COMPILED["constant_pad_nd"](a, pad, value)
    assert found.dtype == a.dtype
    np.testing.assert_array_equal(found, expected)
    assert not np.may_share_memory(found, a)


@pytest.mark.parametrize("value", [0.0, -0.0, np.nan, -np.inf, 0.1])
def test_every_bit_of_the_value_is_kept(value):
    x = np.ones((2, 3, 4, 5), np.float64)
    for a in (x, np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)):
        found = COMPILED["constant_pad_nd"](a, ((0, 0), (0, 0), (1, 2), (3, -1)), value)
        border = found[:, :, 0, :].reshape(-1).copy()
        expected = np.full_like(border, value)
        np.testing.assert_array_equal(border.view(np.int64), expected.view(np.int64))
        assert found.strides == np.empty_like(a, shape=found.shape).strides


def test_offsets_beyond_everything_crop_all():
    a, out, item = np.ones(6, np.uint8), np.zeros(6, np.uint8), np.array(7, np.uint8)
    for offset in (-(1 << 63), -3, 3, (1 << 63) - 1):
        native.pad(out, a, item, 1, 2, 3, 2, 3, 0, offset, 1)
        assert out.tolist() == [7] * 6
        native.pad(out, a, item, 1, 2, 3, 2, 3, offset, 0, 1)
        assert out.tolist() == [7] * 6
