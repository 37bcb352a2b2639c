"""Kernels that are one compiled call give the bits of those that ask for buffers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from flambeau_native.extension import READS_ARRAYS, native
from flambeau_native.kernels import KERNELS
from flambeau_native.kernels._common import made, zeros
from flambeau_numpy.allocator import THRESHOLD, is_pooled
from flambeau_numpy.dtypes import BFLOAT16

OF_ONE = {
    "silu": (),
    "gelu": ("none",),
    "softplus": (1.5, 20.0),
    "leaky_relu": (0.1,),
    "clamp": (-0.5, 0.5),
    "elu": (1.0, 1.5, 0.5),
    "erf": (),
}
OF_TWO = {"silu_backward": (), "threshold_backward": (0.25,), "hardtanh_backward": (-0.5, 0.5)}
DTYPES = [np.float32, np.float64, np.float16, BFLOAT16]


class Other(np.ndarray):
    """An array of a class that compiled code does not read where it lies."""


def layouts(dtype):
    """Arrays of numbers that differ in shape and in how they lie."""
    chosen = np.random.default_rng(0)
    for shape in [(), (1,), (0, 3), (7,), (2, 3, 5), (511,), (512,), (3000,)]:
        yield chosen.normal(0, 2, shape).astype(dtype)
    square = chosen.normal(0, 2, (6, 8)).astype(dtype)
    yield from (square.T, square[:, ::2], square[1:], square[::-1])
    yield np.broadcast_to(square[0], (4, 8))
    askew = np.zeros(41 * square.itemsize + 1, np.uint8)[1:].view(dtype)
    askew[...] = chosen.normal(0, 2, askew.shape)
    yield askew
    fixed = square.copy()
    fixed.flags.writeable = False
    yield fixed
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-4, -50.0])
    yield special.astype(dtype)


def bits(a):
    return np.asarray(a).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_one_call_gives_the_bits_of_the_general_way(name, dtype):
    kernel, numbers = KERNELS[name], OF_ONE.get(name, OF_TWO.get(name))
    for a in layouts(dtype):
        given = [a] if name in OF_ONE else [a, a[::-1] if a.ndim == 1 else a.copy()]
        before = [bits(x) for x in given]
        with np.errstate(all="ignore"):
            found = np.asarray(kernel(*given, *numbers))
            wanted = np.asarray(kernel(*(x.view(Other) for x in given), *numbers))
        assert found.dtype == wanted.dtype and found.shape == wanted.shape == a.shape
        assert bits(found) == bits(wanted)
        assert [bits(x) for x in given] == before and not np.may_share_memory(found, a)


EXACT = {
    "neg": np.negative,
    "abs": np.absolute,
    "sqrt": np.sqrt,
    "square": np.square,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
}
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_have_the_bits_of_numpy(name, dtype):
    for a in layouts(dtype):
        with np.errstate(all="ignore"):
            found, wanted = np.asarray(KERNELS[name](a)), EXACT[name](a)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        assert bits(found) == bits(wanted)


PAIRS = [((), ()), ((3,), ()), ((), (3,)), ((1,), ()), ((5,), (1,)), ((0,), (1,)), ((0, 3), (3,))]
PAIRS += [((4, 3), (3,)), ((4, 3), (4, 1)), ((3, 1), (1, 4)), ((2, 3), (2, 3)), ((1, 1, 3), (3,))]
PAIRS += [
    ((7, 80), (80,)),
    ((80,), (7, 80)),
    ((7, 80), (1, 80)),
    ((2, 3, 80), (3, 80)),
    ((1, 80), (80,)),
]
PAIRS += [((7, 80), (7, 1)), ((2, 3, 80), (3, 1)), ((2, 3, 80), (2, 1, 80)), ((1,) * 20, (1,) * 20)]
PAIRS += [((40, 1024), (1024,)), ((40_000,), ()), ((40_000,), (40_000,)), ((40, 1024), (40, 1))]


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("shapes", PAIRS)
def test_arithmetic_is_broadcast_as_by_numpy(name, shapes, dtype):
    chosen = np.random.default_rng(0)
    operands = [chosen.normal(0, 2, shape).astype(dtype) for shape in shapes]
    for a in operands:
        if a.size > 2:
            a.reshape(-1)[:3] = 0.0, -np.inf, -0.0
    before = [bits(a) for a in operands]
    with np.errstate(all="ignore"):
        for given in [operands, [a[..., ::-1] if a.ndim else a for a in operands]]:
            found, wanted = np.asarray(KERNELS[name](*given)), np.asarray(ARITHMETIC[name](*given))
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            np.testing.assert_array_equal(found, wanted)
            assert not any(np.may_share_memory(found, a) for a in given)
    assert [bits(a) for a in operands] == before


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("dtype", [*DTYPES[:3], np.int64, np.int32, np.bool_], ids=str)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_those_of_numpy(name, dtype):
    chosen = np.random.default_rng(0)
    for shapes in PAIRS:
        a, b = (chosen.integers(-2, 3, shape).astype(dtype) for shape in shapes)
        for x in (a, b):
            if x.size > 5 and dtype not in (np.int64, np.int32, np.bool_):
                x.reshape(-1)[:5] = np.nan, np.inf, -np.inf, 0.0, -0.0
        found, wanted = np.asarray(KERNELS[name](a, b)), COMPARISONS[name](a, b)
        assert found.dtype == np.bool_ and found.shape == np.shape(wanted)
        np.testing.assert_array_equal(found, wanted)
    big = np.array([2**53, 2**53 + 1, -(2**63), 2**63 - 1])
    np.testing.assert_array_equal(
        KERNELS[name](big, big[::-1].copy()), COMPARISONS[name](big, big[::-1])
    )


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_in_place_is_that_of_numpy(name, dtype):
    kernel, chosen = KERNELS[f"{name}_"], np.random.default_rng(0)
    for shape, other in PAIRS:
        if np.broadcast_shapes(shape, other) != shape:
            continue
        a, b = (chosen.normal(0, 2, s).astype(dtype) for s in (shape, other))
        for left, right in [
            (a, b),
            (a.T if a.shape == b.shape else a, b.T if a.shape == b.shape else b),
        ]:
            wanted = ARITHMETIC[name](left, right)
            room = left.copy(order="K")
            assert kernel(room, right) is None
            np.testing.assert_array_equal(room, wanted)
    # What is read may be among what is written: the row of a matrix, a number, a neighbour.
    table = chosen.normal(1, 0.2, (5, 80)).astype(dtype)
    for read in [lambda t: t[2], lambda t: t[1, 3].reshape(()), lambda t: t[:, :1], lambda t: t]:
        room = table.copy()
        wanted = ARITHMETIC[name](table, read(table))
        kernel(room, read(room))
        np.testing.assert_array_equal(room, wanted)
    line = table.reshape(-1).copy()
    wanted = ARITHMETIC[name](line[1:], line[:-1].copy())
    kernel(line[1:], line[:-1])
    np.testing.assert_array_equal(line[1:], wanted)
    fixed = table.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel(fixed, table)


@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_in_place_are_those_of_numpy(name):
    for a in layouts(np.float32):
        if not a.flags.writeable:
            continue
        with np.errstate(all="ignore"):
            wanted, room = EXACT[name](a), a.copy(order="K")
            KERNELS[f"{name}_"](room)
        assert bits(room) == bits(wanted)


def test_operands_that_do_not_fit_are_refused_as_by_numpy():
    for shapes in [((3,), (4,)), ((2, 3), (2,)), ((0,), (3,)), ((80,), (81,)), ((160, 2), (80,))]:
        a, b = (np.ones(shape, np.float32) for shape in shapes)
        with pytest.raises(ValueError, match="broadcast"):
            KERNELS["add"](a, b)


@pytest.mark.parametrize("shape", [(1, 3), (), (3, 1)])
def test_operands_of_two_shapes_take_the_general_way(shape):
    grad, x = np.ones((3,), np.float32), np.full(shape, 2, np.float32)
    for given in [(grad, x), (x, grad)]:
        found = KERNELS["threshold_backward"](*given, 0.0)
        assert found.shape == np.broadcast_shapes((3,), shape)


def test_operands_of_two_dtypes_take_the_general_way():
    found = KERNELS["threshold_backward"](np.ones(3, np.float32), np.ones(3, np.float64), 0.0)
    assert found.tolist() == [1, 1, 1]


def test_large_results_come_from_the_pool():
    assert is_pooled(KERNELS["silu"](np.ones(THRESHOLD // 4, np.float32)))


def test_results_of_a_page_come_from_a_pool_that_is_shared(unshared):
    native.share(native.Pool(1 << 24, True, lambda size: np.empty(size, np.uint8)))
    few, many = (KERNELS["silu"](np.ones(1024 - n, np.float32)) for n in (1, 0))
    assert type(many.base) is native.Lease
    assert few.base is None


def test_results_are_plain_arrays_that_own_their_memory():
    found = KERNELS["silu"](np.ones((2, 3), np.float32))
    references = sys.getrefcount(found)
    assert (
        references == 2
        and type(found) is np.ndarray
        and found.flags.owndata
        and found.flags.c_contiguous
    )
    assert found.flags.writeable and found.flags.aligned


def test_references_are_kept_in_balance():
    a, dtype = np.ones(3, np.float32), np.dtype(np.float32)
    held = sys.getrefcount(a), sys.getrefcount(dtype)
    for _ in range(1000):
        KERNELS["silu"](a)
        KERNELS["silu"](a.T)
        KERNELS["silu"](a[::2])
    assert (sys.getrefcount(a), sys.getrefcount(dtype)) == held


@pytest.mark.parametrize(
    ("cases", "error", "words"),
    [
        ((), ValueError, "needs a case"),
        ([], TypeError, "tuple"),
        ((1,), ValueError, "pairs"),
        (((1, len),), TypeError, "no kernel of this module"),
        (((1, native.whole),), TypeError, "no kernel of this module"),
        (((1, native.softmax_f32),), ValueError, "no kernel of elements"),
        (((1, native.multiply_add_f32),), ValueError, "no kernel of elements"),
        (((1, native.write_lerp_f32),), ValueError, "no kernel of elements"),
        (((1, native.silu_f32), (2, native.add_f32)), ValueError, "no kernel of elements"),
        (((1, native.add_f32), (2, native.silu_backward_f32)), ValueError, "no kernel of elements"),
        (((1, native.silu_f32), (2, native.clamp_f32)), ValueError, "no kernel of elements"),
        (((1, native.silu_f32),) * 5, ValueError, "at most four"),
    ],
)
def test_what_is_no_kernel_of_elements_is_refused(cases, error, words):
    with pytest.raises(error, match=words):
        native.whole(len, cases, 1, len)


def test_what_is_wrong_is_said_by_the_general_way():
    def general(*given):
        raise LookupError(len(given))

    kernel = native.whole(general, ((np.dtype(np.float32), native.clamp_f32),), 1 << 60, len)
    a = np.ones(3, np.float32)
    others = a.astype(a.dtype.newbyteorder()), a.astype(np.int32), a[::-1], a.view(Other), None
    calls = [(), (a,), (a, 1.0), (a, 1.0, "x"), (a, 1.0, 2.0, 3.0)]
    for given in [*calls, *[(other, 1.0, 2.0) for other in others]]:
        with pytest.raises(LookupError, match=str(len(given))):
            kernel(*given)
    assert kernel(a, 0.0, 0.5).tolist() == [0.5] * 3


def test_what_makes_large_results_is_held_to_the_size(unshared):
    kernel = native.whole(
        len, ((np.dtype(np.float32), native.silu_f32),), 0, lambda shape, dtype: np.zeros(2, dtype)
    )
    assert kernel(np.zeros(2, np.float32)).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="array 0 has 8 bytes, where 12 are"):
        kernel(np.zeros(3, np.float32))


def test_arrays_that_may_not_be_written_are_refused():
    a, fixed = np.ones(3, np.float32), np.ones(3, np.float32)
    fixed.flags.writeable = False
    native.silu_f32(a, fixed, 3)
    with pytest.raises(ValueError, match="read-only"):
        native.silu_f32(fixed, a, 3)
    with pytest.raises(ValueError, match="contiguous"):
        native.silu_f32(np.ones(6, np.float32)[::2], a, 3)
    with pytest.raises(RuntimeError, match="bytes"):
        native.silu_f32(a, a, 4)


_WITHOUT = """
import numpy as np, numpy._core._multiarray_umath as numbers
import flambeau_numpy.kernels  # which needs the table
{change}
from flambeau_native.extension import READS_ARRAYS, native
from flambeau_native.kernels import KERNELS
from flambeau_native.kernels._common import made, zeros
a = np.linspace(-3, 3, 40, dtype=np.float32)
print(READS_ARRAYS, KERNELS["silu"](a).tobytes().hex(), end=" ")
print(zeros((2,), a.dtype), made((3,), a.dtype).shape)
"""


@pytest.mark.parametrize("change", ["del numbers._ARRAY_API", "numbers._ARRAY_API = 1"])
def test_a_numpy_that_is_laid_out_otherwise_is_asked_for_buffers(change):
    assert READS_ARRAYS, "this NumPy is laid out as its headers say"
    run = [sys.executable, "-c", _WITHOUT.format(change=change)]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split(maxsplit=2)
    silu = KERNELS["silu"](np.linspace(-3, 3, 40, dtype=np.float32)).tobytes().hex()
    assert found == ["False", silu, "[0. 0.] (3,)\n"]


@pytest.mark.parametrize("make", [made, zeros])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex128, BFLOAT16])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (4, 5), (1,) * 20, (THRESHOLD, 2)])
def test_new_arrays_are_those_of_numpy(make, dtype, shape):
    found, wanted = make(shape, np.dtype(dtype)), np.zeros(shape, dtype)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert found.strides == wanted.strides and found.flags.writeable
    assert make is made or not found.tobytes().strip(b"\0")


@pytest.mark.parametrize("shape", [(-1,), (3, -1), ("a",), (1.5,), None])
def test_new_arrays_of_no_shape_are_refused(shape):
    for make in (made, zeros):
        with pytest.raises((ValueError, TypeError, MemoryError)):
            make(shape, np.dtype(np.float32))
    with pytest.raises(TypeError, match="a shape and a dtype"):
        native.making(len, len, 1, None)((1,))
