"""Arrays and numbers are written into arrays as NumPy writes them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import flambeau
from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS, elementwise
from flambeau_numpy.allocator import THRESHOLD
from flambeau_numpy.dtypes import BFLOAT16, TO_NUMPY
from flambeau_numpy.extending import KERNELS as NUMPY

SHAPES = [(), (1,), (0,), (7,), (2, 3), (0, 3), (2, 1, 4), (33, 129), (THRESHOLD // 2 + 3,)]
DTYPES = [np.float32, np.float64, np.int64, np.bool_, np.uint8, np.float16, np.complex64]
DTYPES += [np.complex128, BFLOAT16, np.uint16]


def filled(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(-5, 100, shape).astype(dtype)


def number(value, dtype):
    return np.array(value).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_and_numbers_are_written_as_numpy_writes_them(shape, dtype):
    for value in (filled(shape, dtype, 1), number(0, dtype), number(3, dtype), number(-0.0, dtype)):
        room = filled(shape, dtype)
        assert KERNELS["assign"](room, value) is None
        assert room.tobytes() == np.broadcast_to(value, shape).tobytes()


def test_zeros_keep_their_sign_and_nans_their_bits():
    for bits in (0x80000000, 0x7FC01234, 0xFFFFFFFF, 0x00000001):
        value = np.array(bits, np.uint32).view(np.float32)
        room = np.ones(1000, np.float32)
        KERNELS["assign"](room, value)
        assert (room.view(np.uint32) == bits).all()
        KERNELS["assign"](room[:9], np.full(9, value))
        assert (room.view(np.uint32) == bits).all()


@pytest.mark.parametrize("length", [8, 5000, THRESHOLD])
def test_what_overlaps_is_read_before_it_is_written(length):
    for to, start in [(0, 1), (1, 0), (0, length // 2), (length // 2, 0), (0, 0)]:
        many = np.arange(2 * length, dtype=np.float32)
        wanted = many.copy()
        wanted[to : to + length] = many[start : start + length].copy()
        KERNELS["assign"](many[to : to + length], many[start : start + length])
        np.testing.assert_array_equal(many, wanted)
    many = np.arange(2 * length, dtype=np.float32)
    KERNELS["assign"](many, many[3:4].reshape(()))  # a number that is among what is written
    assert (many == 3).all()


@pytest.mark.parametrize("length", [6, THRESHOLD])
def test_gaps_broadcasts_and_other_dtypes_are_written_the_general_way(length):
    room = np.zeros((length, 4), np.float32)
    column = np.arange(length, dtype=np.float32)
    KERNELS["assign"](room[:, 1], column)
    KERNELS["assign"](room[::-1, 2], column)
    KERNELS["assign"](room[:, 3], number(7, np.float32))
    np.testing.assert_array_equal(
        room, np.stack([0 * column, column, column[::-1], 0 * column + 7], 1)
    )
    KERNELS["assign"](room, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(room, np.broadcast_to(np.arange(4), room.shape))
    KERNELS["assign"](room, np.arange(4))
    np.testing.assert_array_equal(room, np.broadcast_to(np.arange(4), room.shape))
    KERNELS["assign"](room, number(2, np.float64))
    assert (room == 2).all()
    askew = np.zeros(4 * length + 1, np.uint8)[1:].view(np.float32)
    KERNELS["assign"](askew, column)
    np.testing.assert_array_equal(askew, column)


@pytest.mark.parametrize("dtype", [BFLOAT16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_dtypes_without_buffers_are_written_as_bits(dtype, monkeypatch):
    """And not number by number, which takes fifteen times as long."""

    def general(dst, src):
        assert dst.dtype.kind == "u"
        np.copyto(dst, src)

    monkeypatch.setattr(elementwise, "_assign", general)
    for shape in [(), (7,), (33, 129), (THRESHOLD,), (0, 3)]:
        for value in (filled(shape, dtype, 1), *(number(x, dtype) for x in (0, 1.5, -0.0, np.nan))):
            room = filled(shape, dtype)
            KERNELS["assign"](room, value)
            assert room.tobytes() == np.broadcast_to(value, shape).tobytes()
    table = filled((6, 8), dtype)
    KERNELS["assign"](table[:, ::2], filled((6, 4), dtype, 2).T.copy().T)
    KERNELS["assign"](table[1:3], filled((8,), dtype, 3))
    assert table[:, ::2][0].tobytes() == filled((6, 4), dtype, 2)[0].tobytes()
    assert table[2].tobytes() == filled((8,), dtype, 3).tobytes()


def test_what_is_read_only_keeps_its_values():
    for value in (number(1, np.float32), np.ones(3, np.float32)):
        fixed = np.zeros(3, np.float32)
        fixed.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            KERNELS["assign"](fixed, value)
        assert not fixed.any()


def test_the_general_function_gets_what_is_not_taken():
    def general(*args):
        raise LookupError(len(args))

    a = np.ones(40, np.float32)
    assign = native.assigning(general, native.copy, native.clear, native.fill, 100)
    for to, value in [
        (a, None),
        (1, a),
        (a, a[:3]),
        (a, a.astype("f8")),
        (a, 1.0),
    ]:
        with pytest.raises(LookupError, match="2"):
            assign(to, value)
    for value in (0, 1.5):
        assign(a, number(value, "f4"))
        assert (a == value).all()
    assign(a, np.arange(40, dtype="f4"))
    assert a[39] == 39
    for wrong in [(), (a,), (a, a, a)]:
        with pytest.raises(TypeError, match=f"got {len(wrong)}"):
            assign(*wrong)
    with pytest.raises(ValueError, match="clear does not take"):
        native.assigning(general, native.clear, native.clear, native.fill, 100)
    with pytest.raises((TypeError, ValueError)):
        native.assigning(general, len, native.clear, native.fill, 100)
    with pytest.raises(ValueError, match="clear does not take"):
        native.assigning(general, native.copy, native.clear, native.clear, 100)


@pytest.mark.parametrize("dtype", TO_NUMPY, ids=str)
def test_new_arrays_of_a_number_are_those_of_numpy(dtype):
    kind = TO_NUMPY[dtype]
    values = [0, 0.0, -0.0, 1, 1.0, True, False, -1, -2.5, 300, 1 << 40]
    values += [] if kind.kind in "iu" else [np.inf, np.nan]
    values += [1 + 2j, complex(-0.0, 0.0)] if kind.kind == "c" else []
    for value in values:
        for shape in [(), (3,), (0, 2), (33, 129), (THRESHOLD // kind.itemsize + 3,)]:
            for _ in range(2):  # made, and kept
                found, wanted = (
                    KERNELS["full"](shape, value, dtype),
                    NUMPY["full"](shape, value, dtype),
                )
                assert (found.dtype, found.shape) == (kind, shape)
                assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", TO_NUMPY, ids=str)
@pytest.mark.parametrize("kernels", [KERNELS, NUMPY], ids=["compiled", "numpy"])
def test_arrays_that_nobody_fills_have_values_of_their_dtype(kernels, dtype):
    for shape in [(), (3,), (0, 2), (THRESHOLD + 1,)]:
        np.full(shape, 255, np.uint8)  # in whose memory they may be
        made = kernels["full"].empty(shape, dtype)
        assert (made.dtype, made.shape) == (TO_NUMPY[dtype], shape)
        assert made.flags.c_contiguous and made.flags.writeable
        if made.dtype == np.bool_:
            assert not made.any()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_write_a_number_that_is_shorter_than_a_word(threads):
    count = flambeau.get_num_threads()
    flambeau.set_num_threads(threads)
    try:
        for size in (8 * THRESHOLD + 5, 8 * THRESHOLD + 7):
            room = np.zeros(size + 2, np.uint8)
            KERNELS["assign"](room[1:-1], number(7, np.uint8))
            assert (room[1:-1] == 7).all() and not room[[0, -1]].any()
            words = np.zeros(size, np.uint16)
            KERNELS["assign"](words, number(515, np.uint16))
            assert (words == 515).all()
    finally:
        flambeau.set_num_threads(count)
