"""Products of matrices of few numbers, whose terms are rounded and added in order."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau_native.kernels._common import compiled
from flambeau_native.kernels.linalg import few
from flambeau_numpy.extending import offered

SHAPES = [
    ((1, 3, 3), (3, 3)),
    ((2, 5), (40, 5, 1)),
    ((40, 2, 5), (5, 3)),
    ((7, 4, 4), (7, 4, 4)),
    ((3, 2, 2), (50, 3, 2, 2)),
    ((50, 3, 2, 2), (3, 2, 2)),
    ((1, 2, 3), (9, 3, 2)),
    ((9, 2, 3), (1, 3, 2)),
    ((20000, 2, 3), (3, 2)),
]


def numbers(shape, dtype):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def in_order(a, b):
    total = np.zeros((), a.dtype)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k, None] * b[..., None, k, :]
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_terms_are_rounded_and_added_in_order(left, right, dtype, threads):
    a, b = numbers(left, dtype), numbers(right, dtype)
    wanted = in_order(a, b)
    for number in 1, 3:
        threads(number)
        found = few(a, b)
        assert found.dtype == dtype
        assert np.array_equal(found, wanted)
    turned = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    assert np.array_equal(few(turned, b), wanted)


def test_what_is_no_batch_of_few_numbers_is_declined():
    for left, right in (
        ((3, 8, 8), (3, 8, 8)),  # 512 multiplications
        ((3, 3), (3, 3)),  # two matrices alone
        ((2,), (2, 2)),
        ((2, 2), (2,)),
        ((0, 2, 2), (2, 2)),
        ((2, 2), (0, 2, 2)),
        ((3, 2, 0), (0, 2)),
        ((3, 1, 2, 2), (1, 4, 2, 2)),
        ((2, 1, 2, 2), (3, 2, 2)),
        ((4, 1), (3, 2)),  # that do not fit: the words are NumPy's
        ((4, 3), (1, 2)),
        ((5, 4, 1), (3, 2)),
        ((4, 1), (5, 3, 2)),
    ):
        assert few(numbers(left, np.float32), numbers(right, np.float32)) is None
    whole = np.ones((2, 2), np.int64)
    assert few(whole, whole) is None
    assert few(numbers((2, 2), np.float32), numbers((2, 2), np.float64)) is None


def test_products_ask_for_it():
    a, b = numbers((6, 3, 3), np.float32), numbers((6, 3, 2), np.float32)
    assert fb.matmul(fb.from_numpy(a), fb.from_numpy(b)).tolist() == in_order(a, b).tolist()
    assert offered.few is few
    broken = fb.from_numpy(numbers((3, 1, 2, 2), np.float32)) @ fb.ones(1, 4, 2, 2)
    assert broken.shape == (3, 4, 2, 2)


@pytest.mark.parametrize(
    ("left", "right"),
    [((4, 1), (3, 2)), ((4, 3), (1, 2)), ((5, 4, 1), (3, 2)), ((4, 1), (5, 3, 2))],
)
def test_matrices_that_do_not_fit_are_refused(left, right):
    a, b = fb.from_numpy(numbers(left, np.float32)), fb.from_numpy(numbers(right, np.float32))
    with pytest.raises(RuntimeError, match="shapes|size"):
        a @ b


def test_any_number_of_products_without_elements_is_over_at_once():
    run, nothing = compiled("few")[np.dtype(np.float32)], np.empty(0, np.float32)
    a = np.ones(6, np.float32)
    for rows, depth, columns in (0, 3, 2), (3, 2, 0), (0, 0, 0):
        run(nothing, a, a, 2**40, rows, depth, columns, 1, 1)
