"""Arrays that are taken piece by piece: from the beginning, and each second time from the end."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_native.extension import native

SIZES = [1, 1023, 1024, 1025, 2049, 16 * 1024 + 7, 40_003, 300_001, 1_100_003]
GUARD = 16  # items before and behind a result, which stay as they are
NAN = np.array([0x7FC00001], np.uint32).view(np.float32)[0]


def numbers(size, shift, bad=NAN):
    """Numbers that begin `shift` items behind a multiple of 64 bytes; every seventh is `bad`."""
    found = place(size, shift, np.float32)
    found[:] = np.random.default_rng(size + shift).normal(0, 3, size)
    found[::7] = bad
    return found


def place(size, shift, dtype, guard=0):
    item = np.dtype(dtype).itemsize
    raw = np.zeros((size + shift + 2 * guard) * item + 64, np.uint8)
    begin = -raw.__array_interface__["data"][0] % 64 + shift * item
    return raw[begin : begin + (size + 2 * guard) * item].view(dtype)


def check(expected, run, shift):
    """`run` writes what is expected, twice, and nothing beside it."""
    whole = place(expected.size, shift, expected.dtype, GUARD)
    word = {2: np.uint16, 4: np.uint32, 8: np.uint64}[expected.itemsize]
    for _ in range(2):
        whole[:] = 7
        run(whole[GUARD:-GUARD])
        assert (whole[:GUARD] == 7).all() and (whole[-GUARD:] == 7).all()
        assert np.array_equal(whole[GUARD:-GUARD].view(word), expected.view(word))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shift", [0, 1, 5])
@pytest.mark.parametrize("count", [1, 3])
def test_pieces(size, shift, count, threads):
    threads(count)
    x, y = numbers(size, shift), numbers(size, 2, 0)
    number = np.array([0.5], np.float32)
    check(np.add(x, y), lambda out: native.add_f32(out, x, y, size, 0, 0), shift)
    check(np.negative(x), lambda out: native.neg_f32(out, x, size), 3)
    check(np.subtract(x, number), lambda out: native.sub_f32(out, x, number, size, 0, 1), shift)
    check(np.subtract(number, x), lambda out: native.sub_f32(out, number, x, size, 1, 0), 1)
    wide, half = x.astype(np.float64), x.astype(np.float16)
    check(wide * wide, lambda out: native.mul_f64(out, wide, wide, size, 0, 0), shift)
    check(wide, lambda out: native.cast_f32_f64(out, x, size), shift)
    check(x, lambda out: native.cast_f64_f32(out, wide, size), shift)
    back = half.astype(np.float32)
    check(back, lambda out: native.cast_f16_f32(out, half.view(np.uint16), size), shift)
    check(x, lambda out: native.copy(out, x, 4 * size, 0), shift)


@pytest.mark.parametrize("value", [0.5, NAN], ids=["half", "nan"])
@pytest.mark.parametrize("size", [1, 15, 1040, 5000])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
def test_a_number_is_an_array_of_it(name, size, value):
    run, x = getattr(native, f"{name}_f32"), numbers(size, 1)
    number = np.array([value], np.float32)
    many, expected = np.repeat(number, size), np.empty(size, np.float32)
    run(expected, x, many, size, 0, 0)
    check(expected, lambda out: run(out, x, number, size, 0, 1), 0)
    run(expected, many, x, size, 0, 0)
    check(expected, lambda out: run(out, number, x, size, 1, 0), 0)


@pytest.mark.parametrize("period", [1, 7, 100, 1024, 1025, 5000])
@pytest.mark.parametrize("count", [1, 3])
def test_operands_that_repeat(period, count, threads):
    threads(count)
    many = 300_000 // period
    x, row = numbers(period * many, 3), numbers(period, 1, 0)
    rows = np.tile(row, many)
    for shift in (0, 1):
        check(x * rows, lambda out: native.mul_f32(out, x, row, x.size, 0, period), shift)
        check(rows - x, lambda out: native.sub_f32(out, row, x, x.size, period, 0), shift)


def test_copies_of_overlapping_memory_from_both_ends():
    for _ in range(2):
        for source, target in ((0, 4096), (4096, 0), (1, 0)):
            memory = np.arange(400_000, dtype=np.int64).view(np.uint8)
            expected = memory.copy()
            expected[target : target + 300_000] = memory[source : source + 300_000]
            native.copy(memory[target:], memory[source : source + 300_000], 300_000, 0)
            assert np.array_equal(memory, expected)
