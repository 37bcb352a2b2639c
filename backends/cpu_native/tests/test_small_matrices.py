"""Two matrices of few numbers are multiplied by one call, each element's terms added in order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau as fb
from flambeau_native.extension import native
from flambeau_native.kernels.linalg import is_pair, linear, pair
from flambeau_numpy.allocator import THRESHOLD


@pytest.fixture(autouse=True)
def threads_as_before():
    before = native.get_threads()
    yield
    native.set_threads(before)


pytestmark = pytest.mark.skipif(pair is None, reason="the processor has no AVX-512")

SIZES = [(2, 2, 2), (2, 16, 3), (5, 7, 9), (16, 16, 16), (64, 33, 8), (3, 300, 5), (100, 48, 100)]
SIZES += [(2, 40, 400), (300, 12, 4), (200, 200, 20)]  # the last in large memory


def operands(rows, columns, depth, a_turned, b_turned):
    draw = np.random.default_rng(rows * columns + depth)
    a = draw.standard_normal((rows, depth), dtype=np.float32)
    b = draw.standard_normal((depth, columns), dtype=np.float32)
    return np.asfortranarray(a) if a_turned else a, np.asfortranarray(b) if b_turned else b


def in_order(a, b):
    """a @ b with one rounding for each term, as fused multiplication and addition has."""
    found = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        exact = a[:, k, None].astype(np.float64) * b[k].astype(np.float64)
        found = (exact + found).astype(np.float32)
    return found


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)))
def test_terms_are_added_in_order_in_every_layout(sizes, turned):
    a, b = operands(*sizes, *turned)
    assert is_pair(*sizes)
    found = pair(a, b)
    assert found.flags.c_contiguous and found.dtype == np.float32
    # A sum of float64 is rounded twice, which shows once in some 10⁸ terms.
    assert (found != in_order(a, b)).sum() <= 1
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, atol=1e-5, rtol=1e-5)
    for threads in (1, 2, 3):
        native.set_threads(threads)
        assert pair(a, b).tobytes() == found.tobytes()


def test_what_it_takes_is_what_is_said_of_it():
    for rows, columns, depth in itertools.product(
        [1, 2, 3, 64, 500], [1, 2, 15, 17, 64], [0, 1, 2, 64, 300]
    ):
        a, b = operands(rows, columns, depth, False, False)
        assert (pair(a, b) is not None) is is_pair(rows, columns, depth)


@pytest.mark.parametrize("batch", [(1,), (5,), (3, 2), (1, 4, 1), (300,)])
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)))
def test_batches_are_multiplied_matrix_by_matrix(batch, turned):
    for rows, columns, depth in [(16, 16, 16), (9, 30, 7), (64, 48, 20), (200, 200, 20)]:
        draw = np.random.default_rng(rows)
        a = draw.standard_normal((*batch, rows, depth), dtype=np.float32)
        b = draw.standard_normal((*batch, depth, columns), dtype=np.float32)
        if turned[0]:
            a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
        if turned[1]:
            b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        native.set_threads(1)
        found = pair(a, b)
        assert found.shape == (*batch, rows, columns) and found.flags.c_contiguous
        for i in np.ndindex(batch):
            assert found[i].tobytes() == pair(a[i], b[i]).tobytes()
        for threads in (2, 3):
            native.set_threads(threads)
            assert pair(a, b).tobytes() == found.tobytes()
    assert pair(a[..., :2, :2], b[..., :2, :3]) is None  # with gaps
    few = np.ones((*batch, 3, 4), np.float32), np.ones((*batch, 4, 5), np.float32)
    assert pair(*few) is None
    assert pair(*(one[:0] for one in few)) is None


def test_layers_of_few_rows_are_left_where_layers_leave_them():
    for rows, columns, depth in itertools.product(
        [2, 7, 8, 15, 16], [64, 100], [100, 256, 300, 1000]
    ):
        a, b = operands(rows, columns, depth, False, True)
        if is_pair(rows, columns, depth):
            assert (pair(a, b) is None) is (linear(a, b.T, None) is None)
            assert pair(a, np.ascontiguousarray(b)) is not None


def test_other_dtypes_shapes_and_layouts_are_left_to_others():
    a, b = operands(6, 8, 4, False, False)
    for one, other in [
        (a.astype(np.float64), b),
        (a, b.astype(np.float64)),
        (a[::2], b),
        (a, b[:, ::2]),
        (a[::-1], b),
        (a[None], b),
        (a, b[0]),
        (a[None], np.stack([b, b])),
        (np.stack([a] * 3)[::2], np.stack([b, b])),
        (np.stack([a, a]), np.stack([b, b])[..., None]),
        (a, b.T),
        (a.tolist(), b),
        (None, b),
        (np.zeros(4 * a.size + 1, np.uint8)[1:].view(np.float32).reshape(a.shape), b),
    ]:
        assert pair(one, other) is None
    with pytest.raises(TypeError, match="got 1"):
        pair(a)
    for wrong in [
        (np.dtype("f4"), 0, 9, len, 9, len),
        (np.dtype("f4"), 0, 9, native.linear, 9, len),
    ]:
        with pytest.raises((TypeError, ValueError)):
            native.pairing(*wrong)


def test_large_results_are_made_by_who_makes_such(unshared):
    asked = []

    def large(shape, dtype):
        asked.append(shape)
        return np.empty(shape, dtype)

    make = native.pairing(np.dtype(np.float32), 400, 10**6, native.matrices, 64, large)
    a, b = operands(4, 5, 3, False, True)
    np.testing.assert_array_equal(make(a, b), pair(a, b))
    make(a[:2], b)
    assert asked == [(4, 5)]

    def broken(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError):
        native.pairing(np.dtype(np.float32), 400, 10**6, native.matrices, 64, broken)(a, b)
    too_small = native.pairing(
        np.dtype(np.float32), 400, 10**6, native.matrices, 64, lambda *_: np.empty(3)
    )
    with pytest.raises(RuntimeError, match="has 24 bytes"):
        too_small(a, b)


def test_products_and_layers_agree_to_the_bit():
    for rows, columns, depth in SIZES:
        x, weight = fb.randn(rows, depth), fb.randn(columns, depth)
        assert fb.equal(x @ weight.t(), fb.nn.functional.linear(x, weight))
    assert SIZES[-1][0] * SIZES[-1][1] * 4 >= THRESHOLD


def test_what_is_not_finite_stays():
    a, b = operands(4, 20, 6, False, False)
    a[1, 2], a[2, 0], b[3, 4] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isfinite(pair(a, b)), np.isfinite(a @ b))
