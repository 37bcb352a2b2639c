"""The compiled kernels against the NumPy kernels in float64, over sizes, layouts and corners."""

from __future__ import annotations

import ctypes
import ctypes.util
from itertools import permutations, product

import ml_dtypes
import numpy as np
import pytest

from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.dtypes import FROM_NUMPY
from flambeau_numpy.kernels import KERNELS as NUMPY

SIZES = [0, 1, 7, 16, 17, 1000, 4099]
DTYPES = [np.float32, np.float64]
TOLERANCE = {np.dtype(np.float32): 3e-6, np.dtype(np.float64): 1e-13}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38]


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).normal(0, 2, shape).astype(dtype)


def wide(value):
    is_float = isinstance(value, np.ndarray) and value.dtype.kind in "fV"
    return value.astype(np.float64) if is_float else value


def results(value):
    return value if isinstance(value, tuple) else (value,)


def agree(name, *args, scale=1.0, reference=None):
    """Compare with the NumPy kernel in float64, or with another function."""
    dtype = next(a.dtype for a in args if isinstance(a, np.ndarray) and a.dtype.kind == "f")
    found = results(COMPILED[name](*args))
    wanted = results((reference or NUMPY[name])(*map(wide, args)))
    assert len(found) == len(wanted)
    for have, want in zip(found, wanted, strict=True):
        want = np.asarray(want)
        assert have.shape == want.shape
        if want.dtype.kind == "f":
            assert have.dtype == dtype
            bound = TOLERANCE[dtype] * scale
            np.testing.assert_allclose(wide(have), want, rtol=bound, atol=bound)
        else:
            np.testing.assert_array_equal(have, want)


UNARY = {
    "relu": (),
    "leaky_relu": (0.1,),
    "sigmoid": (),
    "silu": (),
    "softplus": (1.5, 20.0),
    "log_sigmoid": (),
    "elu": (1.5, 1.25, 0.5),
    "hardtanh": (-0.5, 2.5),
    "hardsigmoid": (),
    "hardswish": (),
    "hardshrink": (0.5,),
    "softshrink": (0.5,),
    "gelu": ("none",),
    "erf": (),
    "sign": (),
    "reciprocal": (),
    "rsqrt": (),
    "lgamma": (),
    "erfc": (),
    "erfinv": (),
    "i0": (),
    "i0e": (),
    "i1": (),
    "i1e": (),
    "angle": (),
}
BINARY = {
    "threshold_backward": (0.5,),
    "leaky_relu_backward": (0.1,),
    "elu_backward": (1.5, 1.25, 0.5),
    "hardtanh_backward": (-0.5, 2.5),
    "hardsigmoid_backward": (),
    "hardswish_backward": (),
    "log_sigmoid_backward": (),
    "softplus_backward": (1.5, 20.0),
    "hardshrink_backward": (0.5,),
    "gelu_backward": ("none",),
    "sigmoid_backward": (),
    "tanh_backward": (),
    "silu_backward": (),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", UNARY)
def test_pointwise_functions(name, size, dtype):
    x = numbers(size, dtype)
    agree(name, np.abs(x) + dtype(0.1) if name in ("rsqrt", "lgamma") else x, *UNARY[name])
    if name == "gelu":
        agree(name, x, "tanh")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_those_of_numpy(name, dtype):
    x = np.array(SPECIAL * 3, dtype)
    with np.errstate(all="ignore"):
        found = np.asarray(COMPILED[name](x, *UNARY[name]), np.float64)
        wanted = np.asarray(NUMPY[name](x, *UNARY[name]), np.float64)
    if name == "gelu":  # inf · 0 at minus infinity, where the blockwise formula may clip first
        found, wanted = found[x != -np.inf], wanted[x != -np.inf]
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-37)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BINARY)
def test_pointwise_gradients(name, size, dtype):
    agree(name, numbers(size, dtype), numbers(size, dtype, 1), *BINARY[name])
    if name == "gelu_backward":
        agree(name, numbers(size, dtype), numbers(size, dtype, 1), "tanh")


@pytest.mark.parametrize("name", [*(n for n in UNARY if n != "lgamma"), *BINARY])
def test_bfloat16_is_computed_in_float32_and_rounded_once(name):
    x = (np.abs(numbers(501, np.float32)) + 0.1).astype(ml_dtypes.bfloat16)
    arrays = (x, x[::-1].copy()) if name in BINARY else (x,)
    options = BINARY.get(name) or UNARY.get(name, ())
    found = np.asarray(COMPILED[name](*arrays, *options))
    assert found.dtype == x.dtype
    single = COMPILED[name](*(a.astype(np.float32) for a in arrays), *options)
    rounded = np.asarray(single).astype(x.dtype)
    np.testing.assert_array_equal(found.astype(np.float32), rounded.astype(np.float32))


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_other_layouts_are_left_to_numpy(name):
    x = np.abs(numbers((40, 60), np.float32)) + np.float32(0.1)
    for a in (x.T, x[:, ::2], x[::-1], np.broadcast_to(x[:1], x.shape)):
        arrays = (a, a) if name in BINARY else (a,)
        options = BINARY.get(name) or UNARY.get(name, ())
        agree(name, *arrays, *options)


LARGE = 40_003  # elements, from which on arithmetic is compiled
FRESH = 1_000_003  # elements of a result that is written past most caches
PAST = 5_000_011  # and past all
ROUNDED = ("neg", "abs", "square", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round")
ARITHMETIC = ("add", "sub", "mul", "div", "maximum", "minimum")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("size", [LARGE, FRESH, PAST])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROUNDED)
def test_large_functions_are_exactly_those_of_numpy(name, dtype, size, count, threads):
    threads(count)
    x = numbers(size, dtype)
    x[: 9 * 99] = np.tile(SPECIAL, 99)
    with np.errstate(all="ignore"):
        found, wanted = COMPILED[name](x), NUMPY[name](x)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("size", [LARGE, FRESH, PAST])
@pytest.mark.parametrize("name", BINARY)
def test_large_gradients(name, size, count, threads):
    threads(count)
    agree(name, numbers(size, np.float32), numbers(size, np.float32, 1), *BINARY[name])


@pytest.mark.parametrize("name", ["threshold_backward", "leaky_relu_backward"])
def test_gradients_of_rectifiers_pass_what_is_no_number(name):
    grad, x = (np.tile(SPECIAL, 9 * 9).astype(np.float32) for _ in range(2))
    x.sort()
    with np.errstate(all="ignore"):
        found, wanted = COMPILED[name](grad, x, 0.0), NUMPY[name](grad, x, 0.0)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [*DTYPES, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("size", [10, 5_000, LARGE, FRESH])
def test_filling_writes_every_element_and_keeps_the_sign_of_zero(size, dtype):
    for value in (0, 0.0, -0.0, 1):
        number = np.array(value, dtype)
        filled, assigned = np.ones((2, size), dtype), np.ones((2, size), dtype)
        COMPILED["fill_"](filled, value)
        COMPILED["assign"](assigned, number)
        made = COMPILED["full"]((2, size), value, FROM_NUMPY[np.dtype(dtype)])
        for found in (filled, assigned, made):
            assert (found == number).all()
            assert found.tobytes() == np.full((2, size), number).tobytes()


def test_filling_leaves_the_rest_of_a_region_alone():
    for part in (np.s_[:, 1:-1], np.s_[1:-1], np.s_[::2]):
        a = np.ones((300, 401), np.float32)
        COMPILED["fill_"](a[part], 0)
        b = np.ones((300, 401), np.float32)
        COMPILED["assign"](b[part], np.float32(0).reshape(()))
        wanted = np.ones((300, 401), np.float32)
        wanted[part] = 0
        np.testing.assert_array_equal(a, wanted)
        np.testing.assert_array_equal(b, wanted)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("size", [10, LARGE, FRESH, PAST])
def test_a_copy_may_overlap_what_it_copies(size, count, threads):
    threads(count)
    for to, of in ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[:], np.s_[::-1])):
        a = numbers(size, np.float32)
        wanted = a.copy()
        wanted[to] = a[of].copy()
        COMPILED["assign"](a[to], a[of])
        np.testing.assert_array_equal(a, wanted)
    other = np.zeros(size)
    COMPILED["assign"](other, a)
    np.testing.assert_array_equal(other, a)
    COMPILED["assign"](a, wanted)
    np.testing.assert_array_equal(a, wanted)


@pytest.mark.parametrize("exponent", [2, 0.5, -0.5, -1, -2, 3, 1.5])
@pytest.mark.parametrize("dtype", [*DTYPES, np.int64])
def test_large_powers_are_exactly_those_of_numpy(dtype, exponent):
    x = (np.abs(numbers(LARGE, np.float64)) + 1).astype(dtype)
    b = np.asarray(exponent, dtype)
    np.testing.assert_array_equal(COMPILED["pow"](x, b), NUMPY["pow"](x, b))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("exponent", [2, 3, 4, 0.5, -0.5, -1, -2, 1, 0, 2.5])
@pytest.mark.parametrize("dtype", [*DTYPES, np.float16, np.int64])
def test_powers_of_any_layout_are_those_of_numpy_without_a_warning(dtype, exponent):
    values = [0.0, -0.0, 1.5, -2.0, 3e25, -7e300, 65504.0, np.inf, -np.inf, np.nan, 1e-30]
    with np.errstate(all="ignore"):
        row = np.array(values * 300).astype(dtype)
        b = np.asarray(exponent, np.float64).astype(dtype)
    for x in (row, row[:1].reshape(()), row[:0], row[::3], row[:3297].reshape(157, 21).T):
        found, wanted = COMPILED["pow"](x, b), NUMPY["pow"](x, b)
        np.testing.assert_array_equal(found, wanted)
        assert type(found) is not np.ndarray or found.dtype == dtype


OPERANDS = [
    ((LARGE,), (LARGE,)),
    ((FRESH,), (FRESH,)),
    ((PAST,), (PAST,)),
    ((FRESH,), ()),
    ((LARGE,), (1,)),
    ((400, 500), (500,)),
    ((400, 500), (1, 500)),
    ((1, 500), (400, 500)),
    ((90, 70, 65), (70, 65)),
    ((90, 70, 65), (65,)),
    ((1000, 40), (40,)),
    ((400, 500), (400, 1)),
    ((1, LARGE), (LARGE,)),
]


@pytest.mark.parametrize("shapes", OPERANDS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_large_arithmetic_is_exactly_that_of_numpy(name, dtype, shapes):
    a, b = (numbers(shape, dtype, seed) for seed, shape in enumerate(shapes))
    a.reshape(-1)[:30], b.reshape(-1)[5:20] = np.nan, np.inf
    for x, y in ((a, b), (b, a), (a[::2], a[::2])):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(COMPILED[name](x, y), NUMPY[name](x, y))


@pytest.mark.parametrize("size", [FRESH, PAST])
@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "sigmoid", "gelu", "relu", "rsqrt"])
def test_results_written_past_the_caches_are_the_same(name, size, threads):
    x = np.abs(numbers(size, np.float32)) + np.float32(0.1)
    x[::1000] = 1e5
    options = ("none",) if name == "gelu" else ()
    pieces = [COMPILED[name](part.copy(), *options) for part in np.array_split(x, 8)]
    for count in (1, 2):
        threads(count)
        np.testing.assert_array_equal(COMPILED[name](x, *options), np.concatenate(pieces))


@pytest.mark.parametrize("size", [LARGE, FRESH, PAST])
@pytest.mark.parametrize(("before", "after"), [("f4", "f8"), ("f8", "f4"), ("f4", "i4")])
def test_large_casts(before, after, size):
    x = numbers(size, before)
    x[:4] = np.nan, 1e30, -0.0, 1e-42
    found = NUMPY["cast"](x, FROM_NUMPY[np.dtype(after)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, x.astype(after))


@pytest.mark.parametrize("size", [LARGE, FRESH, PAST])
@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.int64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2],
)
def test_large_copies_and_joins(dtype, size):
    x = numbers((size,), np.float32).astype(dtype)
    for name in ("clone", "contiguous"):
        found = COMPILED[name](x)
        assert not np.shares_memory(found, x)
        np.testing.assert_array_equal(found, x)
    pair = (x.reshape(1, -1), x[::-1].copy().reshape(1, -1))
    three = (pair[1], *pair)
    np.testing.assert_array_equal(COMPILED["cat"](three, 0), np.concatenate(three))
    for dim in (0, 1):
        np.testing.assert_array_equal(COMPILED["cat"](pair, dim), np.concatenate(pair, dim))
        np.testing.assert_array_equal(COMPILED["stack"](pair, dim), np.stack(pair, dim))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", [*DTYPES, np.int64, np.bool_, np.complex128, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(0,), (7,), (0, 3), (70_001,), (40, 1_001)])
def test_reversed_copies(shape, dtype, count, threads):
    threads(count)
    a = (numbers(shape, np.float64) * 9).astype(dtype)
    for dims in ((len(shape) - 1,), (0,), tuple(range(len(shape)))):
        for x in (a, a.T, a[::-1]):
            np.testing.assert_array_equal(COMPILED["flip"](x, dims), np.flip(x, dims))


def test_the_range_of_indices():
    for size in (1023, 1024, 70_001):
        places = np.random.default_rng(size).integers(-(1 << 62), 1 << 62, (1, size))
        for keepdim in (False, True):
            for name in ("amin", "amax"):
                for dims in ((0, 1), (1,)):
                    found = COMPILED[name](places, dims, keepdim)
                    np.testing.assert_array_equal(found, NUMPY[name](places, dims, keepdim))


@pytest.mark.parametrize("bad", [-1, 1024])
def test_reading_out_of_range_fails_in_any_row(bad, threads):
    a, places = numbers((976, 1024), np.float32), np.zeros((976, 1024), np.int64)
    places[700, 3] = bad
    for count in (1, 2):
        threads(count)
        with pytest.raises(IndexError, match="index out of range"):
            COMPILED["gather"](a, 1, places)


@pytest.mark.parametrize("bad", [-1, 33, -(1 << 62), 1 << 40])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reading_out_of_range_fails_at_any_place_of_a_row(dtype, bad):
    a = numbers((2, 33), dtype)
    for count in (1, 15, 16, 17, 40):
        for place in {0, count // 2, count - 1}:
            places = np.full((2, count), 32)
            assert (COMPILED["gather"](a, 1, places) == a[:, 32:]).all()
            places[1, place] = bad
            with pytest.raises(IndexError, match="index out of range"):
                COMPILED["gather"](a, 1, places)
    with pytest.raises(IndexError, match="index out of range"):
        COMPILED["gather"](a[:, :0].copy(), 1, places)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (), (7,), (300, 401), (1 << 21,)])
def test_squared_errors(shape, dtype, reduction):
    a, b = numbers(shape, dtype), numbers(shape, dtype, 1)
    with np.errstate(all="ignore"):
        agree("mse_loss", a, np.asarray(b), reduction)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "dims"), [((5, 33), (1,)), ((5, 33), (0,)), ((3, 4, 50), (1, 2)), ((9,), (0,))]
)
def test_logsumexp(shape, dims, dtype):
    x = numbers(shape, dtype) * 20
    for keepdim in (False, True):
        agree("logsumexp", x, dims, keepdim, scale=3)
    edges = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [-np.inf, 1], [900, 900]])
    found = COMPILED["logsumexp"](edges.astype(dtype), (1,), False)
    wanted = np.array([-np.inf, np.inf, np.nan, 1, 900 + np.log(2)])
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def askew(a):
    """A copy of `a` whose items begin at odd addresses."""
    memory = np.zeros(a.nbytes + 1, np.uint8)
    copy = memory[1:].view(a.dtype).reshape(a.shape)
    copy[...] = a
    return copy


OVER_ANY = [
    ((7, 5), 0),
    ((300, 4), 0),
    ((3, 21, 5, 7), 1),
    ((2, 3, 400), 1),
    ((1, 9, 129), 1),
    ((700, 130), 0),
    ((4, 1, 6), 1),
    ((3, 4, 1), 1),
    ((6, 8), -2),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), OVER_ANY)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_over_any_dimension_is_that_over_the_last(name, shape, dim, dtype):
    a, g = numbers(shape, dtype) * 20, numbers(shape, dtype, 1)
    a.reshape(-1)[[1, 5]], a.reshape(-1)[-1] = -np.inf, 1e30
    dim %= len(shape)
    turned = [np.ascontiguousarray(np.moveaxis(x, dim, -1)) for x in (g, a)]
    last, backward = len(shape) - 1, f"{name}_backward"
    with np.errstate(all="ignore"):
        found = COMPILED[name](a, dim)
        wanted = np.moveaxis(COMPILED[name](turned[1], last), -1, dim)
        steps = COMPILED[backward](g, found, dim)
        turned[1] = np.ascontiguousarray(np.moveaxis(found, dim, -1))
        wanted_steps = np.moveaxis(COMPILED[backward](*turned, last), -1, dim)
    close = 1e-5 if dtype == np.float32 else 1e-13
    assert found.flags.c_contiguous and found.dtype == dtype
    np.testing.assert_allclose(found, wanted, close, close)
    np.testing.assert_allclose(steps, wanted_steps, 10 * close, 10 * close)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_column_of_softmax_without_a_greatest_is_no_number_and_leaves_the_others(name):
    a = numbers((5, 40), np.float32)
    a[2, 3], a[:, 7], a[1, 30] = np.nan, -np.inf, np.inf
    with np.errstate(all="ignore"):
        found, wanted = COMPILED[name](a, 0), COMPILED[name](a.T.copy(), 1).T
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)
    missing = np.isnan(found).any(0).nonzero()[0].tolist()
    assert missing == [3, 7, 30]


MATRIX, PLACES = numbers((40, 50), np.float64), np.arange(2000).reshape(40, 50) % 40
ASKEW = {
    "sigmoid": (MATRIX,),
    "threshold_backward": (MATRIX, MATRIX, 0.5),
    "sum": (MATRIX, (0,), False),
    "softmax": (MATRIX, 1),
    "layer_norm": (MATRIX, MATRIX[0], MATRIX[1], (50,), 1e-5),
    "batch_norm_train": (MATRIX.reshape(2, 2, 500), MATRIX[0, :2], MATRIX[1, :2], 1e-5),
    "cross_entropy": (MATRIX, PLACES[0, :40], -100),
    "max_pool2d": (MATRIX[None], (2, 2), (2, 2), (0, 0), (1, 1), False),
    "gather": (MATRIX, 0, PLACES),
    "index": (MATRIX, (PLACES[0],)),
    "index_put": (MATRIX, (PLACES[:2, 0],), MATRIX[:2], True),
    "scatter_add": (MATRIX, 0, PLACES, MATRIX),
    "embedding_backward": (MATRIX, PLACES[0, :40], 60),
    "var": (MATRIX, (1,), 1, False),
    "sort": (MATRIX, 1, False, True),
    "contiguous": (MATRIX,),
    "clamp": (MATRIX, -1.0, 1.0),
}


ASKEW_CASES = [
    *((name, dtype) for name in ASKEW for dtype in (*DTYPES, ml_dtypes.bfloat16)),
    *((name, np.complex128) for name in ("gather", "index", "contiguous")),
]


@pytest.mark.parametrize(("name", "dtype"), ASKEW_CASES)
def test_items_at_odd_addresses_are_read_as_others(name, dtype):
    def given(place):
        def array(a):
            if isinstance(a, tuple):
                return tuple(map(array, a))
            if not isinstance(a, np.ndarray):
                return a
            return place(a.astype(dtype) if a.dtype == np.float64 else a)

        args = [array(a) for a in ASKEW[name]]
        if name == "contiguous":
            args = [args[0].T]
        return args

    moved = given(askew)
    assert not moved[0].flags.aligned
    found, wanted = results(COMPILED[name](*moved)), results(COMPILED[name](*given(np.copy)))
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_items_at_odd_addresses_are_written_as_others(dtype):
    sides = []
    for place in (askew, np.copy):
        p, m, v = (place(numbers(1001, dtype, seed) ** 2) for seed in range(3))
        grad, steps = place(numbers(1001, dtype, 3)), [np.zeros((), np.float32)]
        COMPILED["sgd_step_"]([p], [grad], [m], 0.1, 0.9, 0.0, 0.1, False, False)
        options = (1e-2, 0.9, 0.99, 1e-8, 0.0, False, False, False)
        COMPILED["adam_step_"]([p], [grad], [m], [v], [], steps, *options)
        sides.append((p, m, v, grad))
    for found, wanted in zip(*sides, strict=True):
        assert not found.flags.aligned
        np.testing.assert_array_equal(found, wanted)


REDUCED = [
    ((), ()),
    ((1,), (0,)),
    ((7,), (0,)),
    ((40_001,), (0,)),
    ((5, 1001), (1,)),
    ((1001, 5), (0,)),
    ((3, 700, 5), (1,)),
    ((3, 4, 5), (0, 2)),
    ((3, 4, 5), (1, 2)),
    ((3, 4, 5), (2, 1, 0)),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_norms_of_half_precision_are_rounded_once(dtype):
    x = numbers((200, 18), np.float32).astype(dtype)
    exact = np.sqrt(np.square(x.astype(np.float64)).sum(1))
    np.testing.assert_array_equal(COMPILED["norm2"](x, (1,), False), exact.astype(dtype))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dims"), REDUCED)
@pytest.mark.parametrize("name", ["sum", "mean", "norm2", "prod"])
def test_reductions(name, shape, dims, dtype, keepdim):
    x = numbers(shape, dtype)
    if name == "prod":
        x = np.asarray(1 + x / 100 / max(1, x.size) ** 0.5, dtype)
    reference = None
    if name == "norm2":

        def reference(a, dims, keepdim):
            return np.sqrt(np.sum(a * a, axis=dims, keepdims=keepdim))

    with np.errstate(all="ignore"):
        agree(name, x, dims, keepdim, scale=20, reference=reference)


@pytest.mark.parametrize("name", ["sum", "mean", "norm2", "prod"])
def test_reductions_pass_nan_and_infinity_on(name):
    x = numbers((3, 600), np.float32)
    x[0, 300], x[1, 599] = np.nan, np.inf
    found = COMPILED[name](x, (1,), False)
    assert np.isnan(found[0])
    assert np.isinf(found[1])
    assert np.isfinite(found[2]) or name == "prod"


@pytest.mark.parametrize(
    ("shape", "dim"), [((9,), 0), ((5, 300), 1), ((300, 5), 0), ((2, 3, 4), 1)]
)
def test_running_sums(shape, dim):
    for dtype in DTYPES:
        agree("cumsum", numbers(shape, dtype), dim, scale=30)


@pytest.mark.parametrize("dtype", [*DTYPES, np.float16])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum"])
def test_reductions_of_any_order_of_memory(name, dtype):
    x = np.round(numbers((2, 3, 4, 5), dtype)).clip(-1, 1)  # whose sums are exact
    x[0, 1, 2, 3] = 1 if name == "mean" else np.nan
    for order in permutations(range(4)):
        turned = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
        for dims in ((0,), (3, 1), (2, 3), (0, 2, 3), (0, 1, 2, 3)):
            for keepdim in (False, True):
                found = COMPILED[name](turned, dims, keepdim)
                np.testing.assert_array_equal(found, NUMPY[name](x, dims, keepdim))
                assert np.asarray(found).flags.c_contiguous


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (70, 33), (2, 5, 64)])
def test_layer_norm(shape, affine, dtype):
    x, g = numbers(shape, dtype) + 5, numbers(shape, dtype, 1)
    kind = shape[-1:]
    weight, bias = (numbers(kind, dtype, 2), numbers(kind, dtype, 3)) if affine else (None, None)
    agree("layer_norm", x, weight, bias, kind, 1e-5, scale=40)
    _, mean, invstd = NUMPY["layer_norm"](x, weight, bias, kind, 1e-5)
    agree("layer_norm_backward", g, x, weight, mean, invstd, kind, scale=200)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(4, 3, 3, 5), (1, 1, 40), (2, 5), (3, 2, 2, 2), (0, 3, 9)])
def test_batch_norm(shape, affine, dtype):
    x, g = numbers(shape, dtype) + 5, numbers(shape, dtype, 1)
    kind = shape[1:2]
    weight, bias = (numbers(kind, dtype, 2), numbers(kind, dtype, 3)) if affine else (None, None)
    agree("batch_norm_train", x, weight, bias, 1e-5, scale=40)
    if not x.size:
        return
    _, mean, invstd = NUMPY["batch_norm_train"](x, weight, bias, 1e-5)
    agree("batch_norm", x, weight, bias, mean, invstd, scale=40)
    agree("batch_norm_backward", g, x, weight, mean, invstd, scale=200)


def channels_last(a):
    """The same images or volumes, whose channels vary fastest in memory."""
    back = (0, a.ndim - 1, *range(1, a.ndim - 1))
    return np.ascontiguousarray(np.moveaxis(a, 1, -1)).transpose(back)


PIXELS = [
    (2, 3, 9, 8),
    (1, 33, 2, 3),
    (3, 64, 20, 7),
    (2, 600, 3, 3),
    (2, 5, 3, 4, 5),
    (40, 7, 9, 9),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [*PIXELS, (5000, 3), (40, 300), (64, 33), (2, 51), (101, 1)])
def test_batch_norm_of_channels_side_by_side(shape, affine, dtype):
    x, g = numbers(shape, dtype) + dtype(5), numbers(shape, dtype, 1)
    if len(shape) > 2:
        x, g = channels_last(x), channels_last(g)
    kind = shape[1:2]
    weight, bias = (numbers(kind, dtype, 2), numbers(kind, dtype, 3)) if affine else (None, None)
    agree("batch_norm_train", x, weight, bias, 1e-5, scale=40)
    out, mean, invstd = COMPILED["batch_norm_train"](x, weight, bias, 1e-5)
    agree("batch_norm", x, weight, bias, mean, invstd, scale=40)
    agree("batch_norm_backward", g, x, weight, mean, invstd, scale=2000)
    assert out.strides == x.strides
    for operand in (x, np.array(x, order="C")):
        over, *_ = COMPILED["batch_norm_backward"](g, operand, weight, mean, invstd)
        assert over.strides == operand.strides


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_batch_norm_of_pixels_of_halves_is_that_of_planes(dtype):
    x, g = (
        channels_last(numbers((2, 3, 5, 4), dtype)),
        channels_last(numbers((2, 3, 5, 4), dtype, 1)),
    )
    weight = numbers(3, dtype, 2)
    found = COMPILED["batch_norm_train"](x, weight, None, 1e-5)
    expected = NUMPY["batch_norm_train"](x, weight, None, 1e-5)
    found += COMPILED["batch_norm_backward"](g, x, weight, *found[1:])
    expected += NUMPY["batch_norm_backward"](g, x, weight, *expected[1:])
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(wide(have), wide(want))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["rows", "pixels", "expanded"])
@pytest.mark.parametrize("shape", [(2, 6, 5, 4), (0, 6, 2, 2), (2, 6, 0, 3), (1, 12, 31, 33)])
def test_group_norms_take_every_order_in_memory(shape, order, dtype):
    x, g = numbers(shape, dtype), numbers(shape, dtype, 1)
    if order == "pixels":
        x, g = channels_last(x), channels_last(g)
    elif order == "expanded":
        g = np.broadcast_to(g[:, :, :, :1], shape)
    weight, bias = numbers(shape[1:2], dtype, 2), numbers(shape[1:2], dtype, 3)
    agree("group_norm", x, weight, bias, 3, 1e-5, scale=40)
    _, mean, invstd = NUMPY["group_norm"](x, weight, None, 3, 1e-5)
    agree("group_norm_backward", g, x, weight, mean, invstd, 3, scale=400)
    agree("group_norm_backward", g, x, None, mean, invstd, 3, scale=400)


def test_a_nan_stays_in_its_channel_of_pixels():
    x = channels_last(numbers((2, 5, 4, 4), np.float32))
    x[1, 3, 2, 2] = np.nan
    out, mean, _ = COMPILED["batch_norm_train"](x, None, None, 1e-5)
    assert np.isnan(mean).tolist() == [False, False, False, True, False]
    assert np.isnan(out).any((0, 2, 3)).tolist() == [False, False, False, True, False]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (64, 1000), (9,)])
def test_cross_entropy(shape, dtype):
    x = numbers(shape, dtype) * 5
    target = np.asarray(np.random.default_rng(0).integers(0, shape[-1], shape[:-1]))
    if target.size > 2:
        target[1] = -100
    agree("cross_entropy", x, target, -100, scale=10)
    _, log_probs, count = NUMPY["cross_entropy"](x, target, -100)
    grad = np.asarray(1.5, dtype)
    agree(
        "cross_entropy_backward", grad, log_probs, target, -100, np.asarray(count, dtype), scale=5
    )


POOLS = [
    ((2, 2), (2, 2), (0, 0), (1, 1), False),
    ((2, 2), (2, 2), (0, 0), (1, 1), True),
    ((3, 3), (2, 2), (1, 1), (1, 1), False),
    ((3, 2), (1, 3), (1, 0), (2, 1), True),
    ((5, 5), (1, 1), (2, 2), (1, 1), False),
    ((2, 3), (3, 4), (1, 1), (1, 2), True),
]


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("shape", [(2, 3, 9, 11), (1, 8, 8), (2, 1, 6, 34), (1, 1, 5, 700)])
def test_pooling(shape, pool):
    kernel, stride, padding, _, ceil_mode = pool
    for dtype in DTYPES:
        x = np.round(numbers(shape, dtype))  # with many equal elements
        agree("max_pool2d", x, *pool)
        x[..., 2, 3], x[..., 4, 4], x[..., 4, 3] = np.nan, np.nan, -np.inf
        agree("max_pool2d", x, *pool)
        values, places = NUMPY["max_pool2d"](x, *pool)
        agree("max_pool2d_backward", numbers(values.shape, dtype), places, shape)
        for counted, divisor in ((True, None), (False, None), (True, 3)):
            x = numbers(shape, dtype)
            options = (kernel, stride, padding, ceil_mode, counted, divisor)
            agree("avg_pool2d", x, *options)
            out = NUMPY["avg_pool2d"](x, *options)
            agree("avg_pool2d_backward", numbers(out.shape, dtype), shape, *options)


@pytest.mark.parametrize("planes", [1, 7])
@pytest.mark.parametrize(
    "size", [(1, 1), (1, 5), (2, 2), (4, 4), (8, 4), (4, 8), (8, 8), (16, 16), (8, 6)]
)
@pytest.mark.parametrize("side", [1, 2, 3, 16, 17])
def test_the_greatest_of_windows_of_small_images_of_which_some_lie_in_the_padding(
    planes, size, side
):
    """Several rows of windows at a time, rows of half a vector, and windows that end outside."""
    x = np.round(numbers((planes, *size), np.float32))
    random = np.random.default_rng(1)
    x[random.random(x.shape) < 0.2] = -np.inf
    x[random.random(x.shape) < 0.05] = np.nan
    for stride, padding, dilation, ceil_mode in product((1, 2), (0, side // 2), (1, 2), (0, 1)):
        reach = dilation * (side - 1)
        if min(size) + 2 * padding > reach:
            pairs = [(n, n) for n in (side, stride, padding, dilation)]
            agree("max_pool2d", x, *pairs, bool(ceil_mode))


@pytest.mark.parametrize("dtype", [*DTYPES, np.int32, np.int64, np.uint8, np.complex128])
def test_reading_by_index(dtype):
    a = (numbers((6, 5, 4), np.float64) * 9).astype(dtype)
    rows = np.array([[0, 5], [3, 3]])
    np.testing.assert_array_equal(COMPILED["index"](a, (rows,)), a[rows])
    np.testing.assert_array_equal(COMPILED["index"](a[:, 0, 0].copy(), (rows,)), a[:, 0, 0][rows])
    np.testing.assert_array_equal(COMPILED["embedding"](a, rows, -1, False), a[rows])
    for dim in range(3):
        for read in (a, a.T, a[::2]):
            for places in ([], [1, 0, 1, 1], [[1], [0]]):
                given = *[None] * dim, np.array(places, np.int64)
                found, wanted = COMPILED["index"](read, given), NUMPY["index"](read, given)
                np.testing.assert_array_equal(found, wanted)
                assert found.strides == wanted.strides or read is a
                assert found.flags.c_contiguous or read is not a
        shape = list(a.shape)
        shape[dim] = 7
        places = np.random.default_rng(0).integers(0, a.shape[dim], shape)
        wanted = np.take_along_axis(a, places, dim)
        np.testing.assert_array_equal(COMPILED["gather"](a, dim, places), wanted)
    smaller = places[:4, :2]
    wanted = NUMPY["gather"](a, 2, smaller)
    np.testing.assert_array_equal(COMPILED["gather"](a, 2, smaller), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_adding_by_index(dtype):
    a = numbers((6, 5), dtype)
    rows = np.array([0, 5, 3, 3, 0, 0])
    agree("index_put", a, (rows,), numbers((6, 5), dtype, 1), True)
    agree("index_put", a, (rows,), numbers(5, dtype, 1), True)
    agree("index_put", a, (rows[:2],), numbers((2, 5), dtype, 1), False)
    cube = numbers((3, 5, 4), dtype)
    agree("index_put", cube, (None, rows[3:]), numbers((3, 3, 4), dtype, 1), True)
    agree("index_put", cube, (None, rows[3:]), numbers((3, 1), dtype, 1), True)
    agree("index_put", cube, (None, None, rows[2:4].reshape(2, 1)), numbers((2, 1), dtype), True)
    agree("index_put", cube.T, (None, rows[3:]), numbers((4, 3, 3), dtype, 1), True)
    for dim in range(2):
        shape = (9, 5) if dim == 0 else (6, 9)
        places = np.random.default_rng(0).integers(0, a.shape[dim], shape)
        agree("scatter_add", a, dim, places, numbers(shape, dtype, 2))


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 50)])
def test_rows_of_a_gradient_are_added_to_those_of_a_table(shape, dtype):
    rows = np.random.default_rng(0).integers(0, 5, shape)
    for width in (0, 1, 40):
        grad = numbers((*shape, width), np.float32).astype(dtype)
        expanded = np.broadcast_to(np.ones((), dtype), grad.shape)
        for g in (grad, np.asarray(grad, order="F"), expanded):
            found = COMPILED["embedding_backward"](g, rows, 6)
            assert found.dtype == dtype
            wanted = np.zeros((6, width))
            np.add.at(wanted, rows, g.astype(np.float64))
            bound = 0.1 if dtype is ml_dtypes.bfloat16 else 1e-5
            np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=bound, atol=bound)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("mean", [0, 1e3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "dims"),
    [((2,), (0,)), ((9, 33), (1,)), ((5, 3, 2049), (2,)), ((5, 3, 49), (1, 2)), ((70_001,), (0,)),
     ((3, 1_500_001), (1,)), ((2_000_003,), (0,)), ((9, 33), (0,)), ((4, 5, 6), (0, 2))],
)  # fmt: skip
def test_variances(shape, dims, dtype, mean, count, threads):
    threads(count)
    x = numbers(shape, dtype) + dtype(mean)
    for correction, keepdim in ((1, False), (0, True), (0.5, False)):
        wanted = np.var(x.astype(np.float64), axis=dims, ddof=correction, keepdims=keepdim)
        found = COMPILED["var"](x, dims, correction, keepdim)
        assert found.dtype == dtype
        assert found.shape == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=3e-7 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_variances_of_large_numbers_and_of_none(dtype):
    x = np.array([[3e38, -3e38], [1e19, 3e19], [np.inf, 1], [np.nan, 1], [5, 5]], dtype)
    with np.errstate(all="ignore"):
        wanted = np.array([1.8e77, 2e38, np.nan, np.nan, 0]).astype(dtype)
        np.testing.assert_allclose(COMPILED["var"](x, (1,), 1, False), wanted, rtol=1e-6)
        for correction in (2, 3):
            agree("var", x[4:], (1,), correction, False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 4099])
def test_running_sums_of_blocks_and_of_what_is_no_number(size, dtype):
    x = numbers((3, size), dtype)
    agree("cumsum", x, 1)
    x[1, size // 2], x[2, -1] = np.inf, np.nan
    agree("cumsum", x, 1)
    x[1, -1] = -np.inf
    with np.errstate(all="ignore"):
        agree("cumsum", x, 1)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, np.int32, np.int64])
def test_sorting_is_stable_and_puts_nan_last(dtype, descending):
    x = (numbers((3, 5000), np.float64) * 100).round().astype(dtype)
    if x.dtype.kind == "f":
        x[:, 77:99], x[0, 5], x[1, 6] = np.nan, np.inf, -np.inf
        x[2, 300:400] = -0.0
    found, wanted = (table["sort"](x, 1, descending, True) for table in (COMPILED, NUMPY))
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])
    assert found[1].dtype == np.int64


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 4, 128, 129])
@pytest.mark.parametrize("dtype", [*DTYPES, np.int32, np.int64])
def test_the_first_of_an_order_are_those_of_the_sort(dtype, k, largest):
    x = (numbers((3, 1500), np.float64) * 100).round().astype(dtype)
    if x.dtype.kind == "f":
        x[0, 77:79], x[0, 5], x[1, 6] = np.nan, np.inf, -np.inf
    found, wanted = COMPILED["topk"](x, k, 1, largest), NUMPY["sort"](x, 1, largest, True)
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(have, want[:, :k])


@pytest.mark.parametrize("limits", [(-0.5, 0.5), (None, 0.5), (-0.5, None), (1.0, -1.0)])
@pytest.mark.parametrize("dtype", [*DTYPES, np.int64])
def test_clamp(dtype, limits):
    x = (numbers(3001, np.float64) * 3).astype(dtype)
    if x.dtype.kind == "f":
        x[:5] = np.nan, np.inf, -np.inf, -0.0, 0.0
        np.testing.assert_array_equal(COMPILED["clamp"](x, *limits), NUMPY["clamp"](x, *limits))
    else:
        limits = [None if limit is None else int(limit) for limit in limits]
        np.testing.assert_array_equal(COMPILED["clamp"](x, *limits), NUMPY["clamp"](x, *limits))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64])
@pytest.mark.parametrize(
    "shape", [(40, 70), (33, 65), (2, 40, 31), (1, 2000), (64, 100), (3, 96, 64), (2, 3, 700)]
)
def test_copies_of_transposed_matrices(shape, dtype):
    x = numbers(shape, np.float64).astype(dtype)
    found = COMPILED["contiguous"](x.swapaxes(-1, -2))
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, x.swapaxes(-1, -2))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(2, 3, 20, 30), (5, 40, 1, 33), (1, 7, 2, 300)])
def test_copies_of_images_in_any_order(shape, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for order in permutations(range(4)):
        for images in (
            x.transpose(order),
            x[:, ::-1].transpose(order),
            x[..., ::2].transpose(order),
        ):
            found = COMPILED["contiguous"](images)
            assert found.flags.c_contiguous
            assert not np.may_share_memory(found, x)
            np.testing.assert_array_equal(wide(found), wide(images))


@pytest.mark.parametrize("dtype", DTYPES)
def test_weighted_sums_of_places(dtype):
    planes, weight = numbers((2, 3, 30), dtype), numbers((2, 4, 17), dtype, 1)
    index = np.random.default_rng(0).integers(0, 30, (2, 4, 17))
    agree("tap_sum", planes, index, weight, scale=5)
    agree("tap_spread", numbers((2, 3, 17), dtype), index, weight, 30, scale=5)
    agree("tap_dot", numbers((2, 3, 17), dtype), planes, index, scale=5)


OPTIONS = [
    {"momentum": 0.0},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
    {"momentum": 0.9, "nesterov": True, "maximize": True, "weight_decay": 0.1},
]


def fused(dtype):
    """a·b + c rounded once, element by element, as the C library computes it."""
    kind = ctypes.c_float if dtype is np.float32 else ctypes.c_double
    function = getattr(
        ctypes.CDLL(ctypes.util.find_library("m")), "fma" + "f" * (kind is ctypes.c_float)
    )
    function.restype, function.argtypes = kind, [kind] * 3
    return np.vectorize(function, otypes=[dtype])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sgd_multiplies_and_adds_at_once(dtype, options):
    defaults = {"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False}
    given = defaults | {"maximize": False} | options
    momentum, kept, decay, rate = (
        dtype(x) for x in (given["momentum"], 1 - given["dampening"], given["weight_decay"], -0.03)
    )
    fma = fused(dtype)
    params = [numbers(1001, dtype), numbers((30, 40), dtype).T]
    grads = [numbers(1001, dtype, 1), numbers((30, 40), dtype, 2).T]
    buffers = [np.zeros_like(p) for p in params]
    wanted = [p.copy() for p in params]
    kept_buffers = [b.copy() for b in buffers]
    for _ in range(3):
        COMPILED["sgd_step_"](params, grads, buffers, 0.03, *given.values())
        for i, grad in enumerate(grads):
            d = -grad if given["maximize"] else grad
            d = fma(wanted[i], decay, d) if decay else d
            if momentum:
                kept_buffers[i] = m = fma(d, kept, kept_buffers[i] * momentum)
                d = fma(m, momentum, d) if given["nesterov"] else m
            wanted[i] = fma(d, rate, wanted[i])
    for found, expected in zip([*params, *buffers], [*wanted, *kept_buffers], strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("beta1", [0.9, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_adam_multiplies_and_adds_at_once(dtype, beta1, maximize, decoupled, amsgrad):
    fma, lr, beta2, eps, decay = fused(dtype), 1e-2, 0.99, 1e-8, 0.1
    params, grads = [numbers(1001, dtype)], [numbers(1001, dtype, 1)]
    state, steps = [[np.zeros(1001, dtype)] for _ in range(3)], [np.zeros((), np.float32)]
    p, (m, v, largest) = params[0].copy(), (s[0].copy() for s in state)
    first, second = dtype(1 - beta1), dtype(1 - beta2)
    for step in (1, 2, 3):
        options = (lr, beta1, beta2, eps, decay, decoupled, amsgrad, maximize)
        COMPILED["adam_step_"](params, grads, *state, steps, *options)
        d = -grads[0] if maximize else grads[0]
        if decoupled:
            p = p * dtype(1 - lr * decay)
        else:
            d = fma(p, dtype(decay), d)
        way = d - m
        m = fma(way, first, m) if first < 0.5 else fma(way, first - dtype(1), d)
        v = fma(second * d, d, v * dtype(beta2))
        largest = np.maximum(largest, v) if amsgrad else largest
        root = np.sqrt(largest if amsgrad else v) / dtype((1 - beta2**step) ** 0.5)
        p = p + dtype(-lr / (1 - beta1**step)) * m / (root + dtype(eps))
    assert steps[0] == 3
    for found, expected in zip(
        [params[0], *(s[0] for s in state)], [p, m, v, largest], strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (40, 31), (0, 3), ()])
def test_products_are_added_in_place_as_in_a_copy(dtype, shape):
    a, b, c = (numbers(shape, dtype, seed) for seed in range(3))
    turned = np.asfortranarray(a)
    for second in (c, np.asarray(0.3, dtype)):
        expected = COMPILED["multiply_add"](a, b, second)
        for first in (a.copy(), turned.copy("K"), np.repeat(a, 2, 0)[::2] if shape else a.copy()):
            COMPILED["multiply_add_"](first, b, second)
            np.testing.assert_array_equal(first, expected)


@pytest.mark.parametrize("shape", [(3, 2, 0), (0, 2, 5), (3, 2, 1), (2, 3, 17), (70, 2, 40)])
def test_batch_norm_of_planes_of_any_size(shape):
    x, grad = numbers(np.prod(shape), np.float32).reshape(shape), np.ones(shape, np.float32)
    weight = np.ones(shape[1], np.float32)
    with np.errstate(all="ignore"):
        found = COMPILED["batch_norm_train"](x, weight, None, 1e-5)
        wanted = NUMPY["batch_norm_train"](x, weight, None, 1e-5)
        if x.size:
            found += COMPILED["batch_norm_backward"](grad, x, weight, *found[1:])
            wanted += NUMPY["batch_norm_backward"](grad, x, weight, *wanted[1:])
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=2e-4, atol=2e-4)
