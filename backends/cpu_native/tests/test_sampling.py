"""Points of grids: the numbers of the decomposition, wherever points lie and memory is laid out."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb
from flambeau._dispatch.dispatch import OPS
from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled code")

TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}
STRANGE = np.nan, np.inf, -np.inf, 1e30, -1e4, 0.0, -1.0, 1.0


def decomposed(name, *args):
    """What the op's decomposition gives, on arrays."""
    be = fb.zeros(1)._be
    return np.asarray(OPS[name].decomposed(be)(*args))


def turned(a, order):
    """The same numbers in another order of memory."""
    if order == "channels last":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)
    if order == "gaps":
        return np.repeat(a, 2, -1)[..., ::2]
    return np.broadcast_to(a[:1], a.shape) if order == "repeated" else a


@st.composite
def calls(draw, strange=True):
    """Images, values and points, some of them strange, and how they are sampled."""
    rank = draw(st.sampled_from([2, 2, 3]))
    mode = draw(st.integers(0, 2 if rank == 2 else 1))
    # Without channels a strange weight meets no number: 0 here, NaN by the decomposition.
    n, channels = draw(st.integers(0, 3)), draw(st.integers(int(strange), 3))
    size = tuple(draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank)))
    longest = 20 if rank == 2 else 4
    out = tuple(draw(st.lists(st.integers(0, longest), min_size=rank, max_size=rank)))
    noise = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    images = noise.standard_normal((n, channels, *size)).astype(dtype)
    values = noise.standard_normal((n, channels, *out)).astype(dtype)
    points = (noise.standard_normal((n, *out, rank)) * draw(st.sampled_from([0.5, 1, 4]))).astype(
        dtype
    )
    if strange and points.size:
        places = noise.integers(0, points.size, 5)
        points.reshape(-1)[places] = noise.choice(STRANGE, 5)
    orders = tuple(draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=rank, max_size=rank)))
    how = mode, draw(st.integers(0, 2)), draw(st.booleans()), orders
    order = st.sampled_from(["row-major", "channels last", "gaps", "repeated"])
    arrays = [turned(a, draw(order)) if a.size else a for a in (images, values, points)]
    return *arrays, size, how


def terms_of(size, orders):
    """How great terms may be that cancel: derivatives bring a factor of the size each."""
    return np.prod([(1.0 + n) ** order for n, order in zip(size, orders, strict=True)])


def agree(found, expected, terms):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    close = TOLERANCE[found.dtype] * (terms + np.nan_to_num(np.abs(expected)).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=close)


@given(calls())
@settings(max_examples=150, deadline=None)
def test_samples_and_their_adjoints_are_those_of_the_decomposition(call):
    images, values, points, size, how = call
    for name, *args in (
        ("grid_values", images, points, *how),
        ("grid_spread", values, points, size, *how),
        ("grid_slopes", values, images, points, *how),
    ):
        more = 1 if name == "grid_slopes" else 0
        terms = terms_of(size, [order + more for order in how[3]])
        agree(COMPILED[name](*args), decomposed(name, *args), terms)


@given(calls(strange=False))
@settings(max_examples=60, deadline=None)
def test_spreading_is_the_adjoint_of_sampling(call):
    images, values, points, size, how = call
    forth = COMPILED["grid_values"](images, points, *how).astype(np.float64)
    back = COMPILED["grid_spread"](values, points, size, *how).astype(np.float64)
    left, right = (forth * values).sum(), (back * images).sum()
    scale = terms_of(size, how[3]) * (np.abs(values).sum() + np.abs(images).sum() + 1)
    scale += (np.abs(forth) * np.abs(values)).sum() + (np.abs(back) * np.abs(images)).sum()
    assert abs(left - right) <= TOLERANCE[points.dtype] * scale


def test_nan_beside_a_point_outside_stays_where_it_is():
    images = np.full((1, 1, 2, 2), np.nan, np.float32)
    points = np.array([[[[9, 9], [-9, 0], [0, 0]]]], np.float32)
    found = COMPILED["grid_values"](images, points, 0, 0, False, (0, 0))
    np.testing.assert_array_equal(found, [[[[0, 0, np.nan]]]])


def test_halves_are_computed_in_float32():
    noise = np.random.default_rng(0)
    images = noise.standard_normal((2, 3, 5, 4)).astype(np.float16)
    points = noise.uniform(-1.2, 1.2, (2, 7, 6, 2)).astype(np.float16)
    wide = COMPILED["grid_values"](
        *(a.astype(np.float32) for a in (images, points)), 2, 1, True, (0, 0)
    )
    found = COMPILED["grid_values"](images, points, 2, 1, True, (0, 0))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, wide.astype(np.float16))


def test_arrays_that_do_not_fit_are_refused():
    images, points = np.zeros((2, 3, 4, 5)), np.zeros((2, 6, 7, 2))
    for args in (
        (images, points[:1], 0, 0, True, (0, 0)),
        (images, np.zeros((2, 6, 7, 3)), 0, 0, True, (0, 0)),
        (images, points, 0, 0, True, (0, 0, 0)),
        (np.zeros((2, 3, 4, 5, 6)), np.zeros((2, 6, 7, 8, 3)), 2, 0, True, (0, 0, 0)),
        (images, points, 3, 0, True, (0, 0)),
        (images, points, 0, 3, True, (0, 0)),
        (images, points, 0, 0, True, (0, -1)),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            COMPILED["grid_values"](*args)


def test_points_that_change_meanwhile_read_nothing_outside():
    images = np.ones((1, 2, 9, 9), np.float32)
    points = np.zeros((1, 64, 64, 2), np.float32)
    stop = threading.Event()

    def change():
        k = 0
        while not stop.is_set():
            points.fill(STRANGE[k % len(STRANGE)])
            k += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(100):
            for mode in range(3):
                values = COMPILED["grid_values"](images, points, mode, 1, True, (0, 0))
                COMPILED["grid_spread"](values, points, (9, 9), mode, 2, True, (0, 0))
                COMPILED["grid_slopes"](values, images, points, mode, 0, False, (0, 0))
    finally:
        stop.set()
        thread.join()
