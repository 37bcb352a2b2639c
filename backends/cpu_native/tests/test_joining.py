"""Few bytes of several arrays are joined by one call, as NumPy joins them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS
from flambeau_numpy.allocator import THRESHOLD
from flambeau_numpy.dtypes import BFLOAT16

SHAPES = [(3,), (1,), (0,), (2, 3), (2, 0), (0, 3), (2, 3, 4), (1, 1, 1), (2, 3, 4, 5), (2,) * 15]
DTYPES = [np.float32, np.float64, np.int64, np.bool_, np.float16, np.complex64, BFLOAT16, np.uint16]


@pytest.fixture(autouse=True)
def one_thread():
    before = native.get_threads()
    native.set_threads(1)
    yield
    native.set_threads(before)


def filled(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(-5, 100, shape).astype(dtype)


def same(found, wanted):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert found.flags.c_contiguous and found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), *SHAPES])
def test_stacks_are_those_of_numpy(shape, dtype):
    for count in (1, 2, 3, 64, 65):
        arrays = [filled(shape, dtype, i) for i in range(count)]
        for dim in {0, len(shape) // 2, len(shape)}:
            same(KERNELS["stack"](tuple(arrays), dim), np.stack(arrays, dim))
            same(KERNELS["stack"](arrays, dim), np.stack(arrays, dim))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", SHAPES)
def test_joined_arrays_are_those_of_numpy(shape, dtype):
    for dim, lengths in itertools.product(
        {0, len(shape) // 2, len(shape) - 1}, [(1,), (2, 0, 3), (0,)]
    ):
        arrays = [filled((*shape[:dim], n, *shape[dim + 1 :]), dtype, n) for n in lengths]
        same(KERNELS["cat"](arrays, dim), np.concatenate(arrays, dim))


def test_arrays_with_gaps_and_large_ones_are_joined_the_general_way():
    square, many = filled((6, 8), "f4"), np.ones(THRESHOLD // 8, np.float32)
    for pair in [(square.T, square.T), (square, square[::-1]), (square[:, ::2],) * 2, (many, many)]:
        for dim in range(pair[0].ndim):
            same(KERNELS["cat"](pair, dim), np.ascontiguousarray(np.concatenate(pair, dim)))
            same(KERNELS["stack"](pair, dim), np.stack(pair, dim))


@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("f4", "f8"), ("i1", "i1"), ("c8", "c8")])
@pytest.mark.parametrize("shape", [(2, 8, 9, 8), (1, 70, 4, 4), (2, 16, 4, 4, 5), (1, 4096, 1, 1)])
def test_images_with_channels_last_are_joined_in_their_order(shape, dtypes):
    for dim in range(len(shape)):
        arrays = []
        for n, dtype in zip((3, shape[dim]), dtypes, strict=True):
            a = filled((*shape[:dim], n, *shape[dim + 1 :]), dtype, n)
            arrays.append(np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1))
        for pair in (
            arrays[1:] * 2,
            arrays,
            arrays[1:],
            [arrays[1], np.array(arrays[0], order="C")],
        ):
            found, expected = KERNELS["cat"](pair, dim), np.concatenate(pair, dim)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
            if not any(a.flags.c_contiguous for a in pair):
                assert np.moveaxis(found, 1, -1).flags.c_contiguous


def test_arrays_that_do_not_fit_are_refused_the_general_way():
    a, b = np.ones((2, 3), "f4"), np.ones((3, 2), "f4")
    for name in ("cat", "stack"):
        with pytest.raises(ValueError, match="shape|match|broadcast"):
            KERNELS[name]((a, b), 1)
        with pytest.raises((ValueError, IndexError)):
            KERNELS[name]((a, a), 7)


@pytest.mark.parametrize("given", [(), (1,), ((), 0), ([], 0), (1, 0), ((1,), 0), ((None,), 0)])
def test_what_cannot_be_joined_is_for_the_general_way(given, unshared):
    def general(*args):
        raise LookupError(len(args))

    for is_new in (0, 1):
        with pytest.raises(LookupError, match=str(len(given))):
            native.joining(general, is_new, 100, general, 1000)(*given)
    a = np.ones(3, "f4")
    for wrong in [((a,), -1), ((a,), "x"), ((a,), 1 << 70), ((a,), 2), ((a, a.astype("f8")), 0)]:
        with pytest.raises(LookupError, match="2"):
            native.joining(general, 1, 100, general, 1000)(*wrong)
    with pytest.raises(LookupError, match="2"):
        native.joining(general, 0, 12, np.empty, 24)((a, a), 0)
    same(native.joining(general, 0, 12, np.empty, 25)((a, a), 0), np.concatenate((a, a)))
    for large, error in [
        (lambda *_: np.empty(5, "f4"), RuntimeError),
        (lambda *_: None, TypeError),
    ]:
        with pytest.raises(error):
            native.joining(general, 0, 12, large, 25)((a, a), 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_arrays_are_joined_by_as_many_threads_as_there_are(threads):
    native.set_threads(threads)
    for shape in [(THRESHOLD // 4 - 1,), (THRESHOLD // 2, 3), (900, 1100), (3, 400_000)]:
        arrays = [filled(shape, "f4", i) for i in range(3)]
        for dim in range(len(shape)):
            same(KERNELS["cat"](arrays, dim), np.concatenate(arrays, dim))
            same(KERNELS["stack"](arrays, dim), np.stack(arrays, dim))
