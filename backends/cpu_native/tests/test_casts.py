"""Conversions between precisions are NumPy's, bit by bit, and 16-bit floats are rounded once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_native.kernels._casts import convert, convert_into
from flambeau_numpy.casts import offer_casts, recast
from flambeau_numpy.dtypes import FROM_NUMPY

HALF, BFLOAT = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
FLOATS = (HALF, BFLOAT, SINGLE, DOUBLE)
PAIRS = [(a, b) for a in FLOATS for b in FLOATS if a != b]
SUFFIX = {HALF: "f16", BFLOAT: "bf16", SINGLE: "f32", DOUBLE: "f64"}


def every(kind: np.dtype) -> np.ndarray:
    """Every number of 16 bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(kind)


def about_ties() -> np.ndarray:
    """The float32 in the middle between neighbours of both 16-bit kinds, and those beside it."""
    with np.errstate(all="ignore"):
        found = []
        for kind in (HALF, BFLOAT):
            exact = every(kind).astype(DOUBLE)
            middle = ((exact[:-1] + exact[1:]) / 2).astype(SINGLE)
            found += [exact.astype(SINGLE), middle]
        values = np.concatenate(found)
        return np.concatenate(
            [values, np.nextafter(values, SINGLE.type(9e9)), np.nextafter(values, 0)]
        )


def values_of(kind: np.dtype) -> np.ndarray:
    if kind in (HALF, BFLOAT):
        return every(kind)
    bits = np.random.default_rng(0).integers(0, 1 << 32, 50_000, np.uint32)
    single = np.concatenate([about_ties(), bits.view(SINGLE)])
    with np.errstate(all="ignore"):
        return single.astype(kind)


def by_numpy(a: np.ndarray, kind: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        narrow = a.astype(SINGLE) if a.dtype == DOUBLE else a
        return narrow.astype(kind)


def agree(found: np.ndarray, wanted: np.ndarray) -> None:
    """The same bits, but that a NaN may be any of its sign."""
    assert found.dtype == wanted.dtype
    lost = np.isnan(wanted)
    word = np.dtype(f"u{wanted.itemsize}")
    np.testing.assert_array_equal(np.isnan(found), lost)
    np.testing.assert_array_equal(np.signbit(found)[lost], np.signbit(wanted)[lost])
    np.testing.assert_array_equal(found.view(word)[~lost], wanted.view(word)[~lost])


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda d: d.name)
def test_conversions_are_those_of_numpy(before, after):
    a = values_of(before)
    out = np.zeros(a.shape, after)
    assert convert_into(out, a)
    agree(out, by_numpy(a, after))


@pytest.mark.parametrize("kind", [HALF, BFLOAT])
@pytest.mark.parametrize("before", [SINGLE, np.dtype(np.float64)])
def test_the_bits_of_a_nan_do_not_depend_on_how_many_elements_there_are(before, kind):
    nan = np.array([0x7F800001, 0xFF812345, 0x7FC12345, 0xFFFFFFFF], np.uint32).view(SINGLE)
    offer_casts("flambeau-native", convert)
    with np.errstate(invalid="ignore"):
        many = np.tile(nan, 300).astype(before)
    for few in (many[:1], many[:4], many[:255]):
        wanted = recast(many, kind)[: few.size].tobytes()
        written = np.zeros(few.size, kind)
        COMPILED["assign"](written, few)
        assert recast(few, kind).tobytes() == written.tobytes() == wanted


def test_a_nan_keeps_its_sign_and_the_bits_that_fit_and_is_quiet():
    a = np.array([0x7F800001, 0xFF812345, 0x7FC12345, 0xFFFFFFFF] * 64, np.uint32).view(SINGLE)
    assert convert(a, HALF)[:4].view(np.uint16).tolist() == [0x7E00, 0xFE09, 0x7E09, 0xFFFF]
    assert convert(a, BFLOAT)[:4].view(np.uint16).tolist() == [0x7FC0, 0xFFC1, 0x7FC1, 0xFFFF]
    b = np.array([0x7C01, 0xFE55] * 128, np.uint16).view(HALF)
    assert convert(b, SINGLE)[:2].view(np.uint32).tolist() == [0x7FC02000, 0xFFCAA000]


def test_float64_becomes_float16_by_way_of_float32():
    a = np.full(300, 1 + 2.0**-11 + 2.0**-40)  # in float32 a tie, which goes to the even number
    assert (convert(a, HALF) == 1).all()


@pytest.mark.parametrize("size", [1, 15, 16, 17, 1023, 1024, 1025, 40_003, 1_800_001])
@pytest.mark.parametrize("count", [1, 2])
def test_conversions_of_any_length_on_any_number_of_threads(size, count, threads):
    threads(count)
    a = np.random.default_rng(1).normal(0, 9, size + 3).astype(SINGLE)[3:]  # begins askew
    for kind in (HALF, BFLOAT):
        out = np.empty(size + 1, kind)[1:]
        assert convert_into(out, a)
        agree(out, by_numpy(a, kind))
        back = np.empty(size, SINGLE)
        assert convert_into(back, out)
        agree(back, by_numpy(out, SINGLE))


def test_results_have_the_order_of_memory_of_their_operand():
    a = np.random.default_rng(2).normal(size=(5, 70, 3)).astype(SINGLE)
    for x in (a.transpose(2, 0, 1), a[:, ::2], a[::-1], np.broadcast_to(a[:1], a.shape)):
        found, wanted = convert(x, HALF), x.astype(HALF, "C" if 0 in x.strides else "K")
        assert found.strides == wanted.strides
        agree(found.copy(), wanted.copy())


def test_nothing_is_written_into_memory_that_is_read_or_of_another_shape():
    a = np.ones(600, SINGLE)
    assert not convert_into(a.view(HALF)[:600], a)
    assert not convert_into(np.zeros((600, 1), HALF), a)
    assert not convert_into(np.zeros(1200, HALF)[::2], a)
    assert (a == 1).all()


ONE = "relu sign reciprocal rsqrt sigmoid silu erf exp log tanh sin cos neg square abs sqrt floor"
ONE += " ceil trunc round lgamma log1p"
TWO = "add sub mul div maximum minimum"


@pytest.mark.parametrize("kind", [HALF, BFLOAT], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", [*ONE.split(), *TWO.split()])
def test_sixteen_bits_are_computed_in_float32_and_rounded_once(name, kind):
    with np.errstate(all="ignore"):
        x = every(kind)
        x = np.where(np.isnan(x), x.dtype.type(1), x)
        given = (x, x[::-1].copy()) if name in TWO.split() else (x,)
        wanted = np.empty(x.shape, SINGLE)
        run = getattr(native, f"{name}_f32")
        rest = (0, 0) if len(given) > 1 else ()
        run(wanted, *(g.astype(SINGLE) for g in given), x.size, *rest)
        found = COMPILED[name](*given)
    agree(np.asarray(found), by_numpy(wanted, kind))


@pytest.mark.parametrize("kind", [HALF, BFLOAT], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", TWO.split())
def test_numbers_and_rows_stand_for_all_where_sixteen_bits_are_computed(name, kind):
    x = np.random.default_rng(3).normal(0, 2, (50, 130)).astype(kind)
    for other in (np.array(3, kind), x[7:8], x[:, :1].copy()):
        found = COMPILED[name](x, other)
        wanted = COMPILED[name](x.astype(SINGLE), other.astype(SINGLE)).astype(kind)
        agree(np.asarray(found), wanted)


@pytest.mark.parametrize("kind", [HALF, BFLOAT], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", TWO.split())
def test_sixteen_bits_are_written_in_place_as_out_of_place(name, kind):
    if f"{name}_" not in COMPILED:
        return
    x = np.random.default_rng(4).normal(0, 2, 4099).astype(kind)
    y = x[::-1].copy()
    wanted = COMPILED[name](x.copy(), y)
    COMPILED[f"{name}_"](x, y)
    agree(x, wanted)


@pytest.mark.parametrize("kind", [HALF, BFLOAT], ids=["float16", "bfloat16"])
def test_rows_of_sixteen_bits_are_computed_in_float32_and_rounded_once(kind):
    x = np.random.default_rng(5).normal(0, 2, (40, 60)).astype(kind)
    wider = x.astype(SINGLE)
    for name, rest in {
        "softmax": (1,),
        "log_softmax": (1,),
        "sum": ((1,), False),
        "mean": ((0, 1), True),
        "var": ((1,), 1.0, False),
    }.items():
        agree(np.asarray(COMPILED[name](x, *rest)), COMPILED[name](wider, *rest).astype(kind))
    for found, wanted in zip(
        COMPILED["layer_norm"](x, None, None, (60,), 1e-5),
        COMPILED["layer_norm"](wider, None, None, (60,), 1e-5),
        strict=True,
    ):
        agree(found, wanted.astype(kind))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pair", [(SINGLE, DOUBLE), (DOUBLE, SINGLE)], ids=["wider", "narrower"])
def test_precisions_change_by_one_call_whatever_the_layout(pair):
    before, after = pair
    row = values_of(before)[:60_000]
    wanted = by_numpy(row, after)
    for take in (
        lambda a: a,
        lambda a: a[7].reshape(()),
        lambda a: a[:0].reshape(0, 3),
        lambda a: a[::7],
        lambda a: a.reshape(200, 300).T,
        lambda a: np.broadcast_to(a[:5], (3, 5)),
    ):
        found = np.asarray(COMPILED["cast"](take(row), FROM_NUMPY[after]))
        agree(found, take(wanted))
