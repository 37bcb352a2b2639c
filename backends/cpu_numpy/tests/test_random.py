"""The NumPy engine and random kernels give, bit for bit, what the core's plain streams give."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import numpy as np
import pytest

from flambeau._random import streams as _streams
from flambeau._random.generator import Generator
from flambeau._random.mt19937 import MT19937 as PlainMT19937  # noqa: N811
from flambeau._types import dtype as D
from flambeau.ops.randomness import random as streams
from flambeau_numpy._box_muller import BoxMuller32
from flambeau_numpy._fused import fma32, fma64
from flambeau_numpy._permutation import _at_once, _one_by_one, swapped
from flambeau_numpy.dtypes import TO_NUMPY
from flambeau_numpy.generator import MT19937
from flambeau_numpy.kernels.random import KERNELS

FLOATS = [D.float16, D.bfloat16, D.float32, D.float64]
SHAPES = [(0,), (1,), (15,), (16,), (17,), (31,), (33,), (100,), (), (3, 5, 7)]


def seeded(seed: int, engine: type) -> Generator:
    generator = Generator()
    generator._engine = engine()
    return generator.manual_seed(seed)


def assert_same_stream(name, dtype, *args, result_dtype=None, seed=3):
    """The kernel and the plain stream agree in values and in the state that they leave behind."""
    fast, plain = seeded(seed, MT19937), seeded(seed, PlainMT19937)
    for generator in (fast, plain):  # an odd normal waits, and the block of words is not fresh
        streams.normal_serial((3,), 0.0, 1.0, D.float64, generator)
    array = np.asarray(KERNELS[name](*args, fast))
    values = getattr(streams, name)(*args, plain)
    dtype = result_dtype or dtype
    assert array.dtype == TO_NUMPY[dtype]
    assert array.tobytes() == D.pack(list(values), dtype)
    assert fast.state_bytes() == plain.state_bytes()
    return array


@pytest.mark.parametrize("cuts", [[1] * 700, [623, 1, 1, 75], [624, 76], [0, 700, 0]])
def test_words_do_not_depend_on_how_draws_are_cut(cuts):
    engine = MT19937(7)
    words = [w for n in cuts for w in engine.random_bits(n).tolist()]
    assert words == PlainMT19937(7).random_bits(700).tolist()


@pytest.mark.parametrize("n", [0, 1, 127, 128, 1000])
def test_64_bits_are_two_words_the_first_on_top(n):
    words = MT19937(7).random_bits(2 * n).astype(np.uint64)
    assert np.array_equal(MT19937(7).random_bits64(n), (words[::2] << 32) | words[1::2])


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**40 + 5, 2**64 - 1])
@pytest.mark.parametrize("drawn", [0, 1, 624, 625])
def test_states_are_interchangeable_with_the_cores_engine(seed, drawn):
    fast, plain = MT19937(seed), PlainMT19937(seed)
    fast.random_bits(drawn)
    plain.random_bits(drawn)
    assert fast.get_words() == plain.get_words()
    other = MT19937(0)
    other.set_words(*plain.get_words())
    assert other.get_words() == plain.get_words()
    assert other.random_bits(700).tolist() == plain.random_bits(700).tolist()


def test_drawing_nothing_from_a_seeded_engine_leaves_it_seeded():
    engine = MT19937(1)
    engine.random_bits(0)
    engine.random_bits64(0)
    assert engine.get_words()[1] == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*FLOATS, D.complex64, D.complex128])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.37, 1.91), (0.0, 0.1), (2.0, 2.0)])
def test_uniform(shape, dtype, low, high):
    assert assert_same_stream("uniform", dtype, shape, low, high, dtype).shape == shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*FLOATS, D.complex64, D.complex128])
@pytest.mark.parametrize(
    ("mean", "std"), [(0.0, 1.0), (0.3, 1.7), (0.0, 0.02), (-3.0, 1.0), (0.1, 2.0)]
)
def test_normal(shape, dtype, mean, std):
    assert assert_same_stream("normal", dtype, shape, mean, std, dtype).shape == shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["normal_serial", "log_normal"])
def test_serial_normals(shape, dtype, name):
    assert assert_same_stream(name, dtype, shape, 0.3, 1.7, dtype).shape == shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential_and_cauchy(shape, dtype):
    assert assert_same_stream("exponential", dtype, shape, 0.7, dtype).shape == shape
    assert assert_same_stream("cauchy", dtype, shape, 0.5, 1.3, dtype).shape == shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*FLOATS, *D.INTEGER])
@pytest.mark.parametrize("p", [0.3, 0.002])
def test_geometric(shape, dtype, p):
    assert assert_same_stream("geometric", dtype, shape, p, dtype).shape == shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*FLOATS, *D.INTEGER, D.bool_])
def test_bernoulli_scalar_and_random_full(shape, dtype):
    for p in (0.0, 0.3, 1.0):
        assert assert_same_stream("bernoulli_scalar", dtype, shape, p, dtype).shape == shape
    assert assert_same_stream("random_full", dtype, shape, dtype).shape == shape


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli(dtype):
    for shape in SHAPES:
        p = KERNELS["uniform"](shape, 0.0, 1.0, dtype, seeded(8, MT19937))
        fast, plain = seeded(3, MT19937), seeded(3, PlainMT19937)
        drawn = np.asarray(KERNELS["bernoulli"](p, fast))
        flat = p.astype(np.float64).ravel().tolist()
        assert drawn.shape == shape
        assert drawn.dtype == p.dtype
        assert drawn.ravel().astype(int).tolist() == streams.bernoulli(flat, dtype, plain)
        assert fast.state_bytes() == plain.state_bytes()


@pytest.mark.parametrize("dtype", [*FLOATS, *D.INTEGER])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1), (0, 2), (-5, 100), (3, 2**28 + 2), (3, 2**28 + 3), (0, 2**40), (-(2**63), 2**63)],
)
def test_randint(dtype, low, high):
    for shape in SHAPES:
        assert assert_same_stream("randint", dtype, low, high, shape, dtype).shape == shape


@pytest.mark.parametrize("n", [0, 1, 2, 17, 399, 400, 1000])
@pytest.mark.parametrize("dtype", [D.int64, D.int16, D.float32, D.float16])
def test_randperm(n, dtype):
    assert assert_same_stream("randperm", dtype, n, dtype).shape == (n,)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1,), (17,), (100,), (3, 20)])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("count", [1, 5])
def test_multinomial(dtype, shape, replacement, count):
    if count > shape[-1] and not replacement:
        return
    weights = KERNELS["uniform"](shape, 0.0, 1.0, dtype, seeded(8, MT19937))
    fast, plain = seeded(3, MT19937), seeded(3, PlainMT19937)
    drawn = KERNELS["multinomial"](weights, count, replacement, fast)
    flat = weights.astype(np.float64).ravel().tolist()
    expected = streams.multinomial(flat, shape, count, replacement, dtype, plain)
    assert drawn.dtype == np.int64
    assert drawn.shape == (*shape[:-1], count)
    assert drawn.ravel().tolist() == expected
    assert fast.state_bytes() == plain.state_bytes()


@pytest.mark.parametrize("name", ["uniform", "normal", "normal_serial", "log_normal"])
@pytest.mark.parametrize("dtype", [D.float32, D.float64, D.bfloat16])
def test_results_of_many_blocks_continue_the_stream(name, dtype):
    # Longer than any kernel's block, and ragged.
    n = 140_003
    whole = KERNELS[name]((n,), 0.25, 1.5, dtype, seeded(3, MT19937))
    generator = seeded(3, MT19937)
    split = 131_072
    first = KERNELS[name]((split,), 0.25, 1.5, dtype, generator)
    assert np.array_equal(whole[:split], first)
    if name != "normal":  # its ragged end depends on the length
        rest = KERNELS[name]((n - split,), 0.25, 1.5, dtype, generator)
        assert np.array_equal(whole[split:], rest)


def test_overflow_to_infinity_is_silent():
    values = KERNELS["log_normal"]((1000,), 9.0, 5.0, D.float16, seeded(3, MT19937))
    assert np.isinf(values.astype(np.float32)).any()


def test_every_kernel_names_a_stream_with_the_same_arguments():
    import inspect

    for name, kernel in KERNELS.items():
        ours = list(inspect.signature(kernel).parameters)
        theirs = list(inspect.signature(getattr(streams, name)).parameters)
        if name == "bernoulli":  # the array carries its dtype and shape
            theirs.remove("dtype")
        elif name == "multinomial":
            theirs = [p for p in theirs if p not in ("shape", "dtype")]
        assert ours == theirs, name


def test_threads_share_one_stream_without_loss():
    generator = seeded(3, MT19937)
    drawn: list[np.ndarray] = []

    def draw() -> None:
        for _ in range(20):
            drawn.append(KERNELS["normal_serial"]((33,), 0.0, 1.0, D.float64, generator))

    threads = [threading.Thread(target=draw, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    alone = KERNELS["normal_serial"]((33 * 80,), 0.0, 1.0, D.float64, seeded(3, MT19937))
    assert np.array_equal(np.sort(np.concatenate(drawn)), np.sort(alone))


def test_radii_and_angles_equal_the_stepwise_rounded_ones():
    # Besides a sample: the ends, and inputs where a tie or a missing fused step shows.
    hard = [0, 1, 2**24 - 1, 745996, 7084592, 13097110, 5423920, 11003136, 16777205]
    hard += [12582909, 12582912, 12582913, 4194304, 8388608, 9828598]
    sample = np.arange(0, 1 << 24, 40009).tolist()
    words = np.array((hard + sample)[: (len(hard) + len(sample)) // 16 * 16], np.uint32)
    out = np.empty(words.size, np.float32)
    BoxMuller32(words.size // 2).fill(words, out)
    units = (words * 2.0**-24).tolist()
    expected: list[float] = []
    for start in range(0, len(units), 16):
        expected += _streams._block32(units[start : start + 16], 0.0, 1.0)
    assert np.array_equal(out, np.array(expected, np.float32))


def exact(a: float, b: float, c: float) -> Fraction:
    return Fraction(a) * Fraction(b) + Fraction(c)


@pytest.mark.parametrize(
    ("scale", "shift"),
    [(1.7, 0.3), (2.0, 0.1), (1.0, 5.5), (0.3, 0.0), (1e-9, 1.0), (3.3, -3.0), (0.0, 2.0)],
)
def test_fma64_rounds_once(scale, shift):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal(300), [0.0, -0.0, 1.0, -shift, 2.0**-53]])
    expected = [float(exact(v, scale, shift)) for v in x.tolist()]
    assert fma64(x, scale, shift).tolist() == expected


@pytest.mark.parametrize(
    ("scale", "shift"), [(1.7, 0.3), (2.0, 0.1), (1.0, 5.5), (0.3, 0.0), (3.3, -3.0)]
)
def test_fma32_rounds_once(scale, shift):
    scale, shift = float(np.float32(scale)), float(np.float32(shift))
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2000).astype(np.float32)
    expected = [_streams.fma32(v, scale, shift) for v in x.tolist()]
    fma32(x, scale, shift)
    assert x.tolist() == expected


def test_fma32_breaks_a_tie_by_what_the_sum_loses():
    # 1 + 2⁻²⁴ lies halfway between two float32 numbers; ±2⁻⁷⁰ decides, and float64 cannot hold it.
    near = np.float32(2.0**-35)
    for sign, above in ((1, True), (-1, False)):
        x = np.array([sign * near], np.float32)
        product = float(near) * float(near)
        assert Fraction(product) == Fraction(1, 2**70)
        shift = 1.0 + 2.0**-24
        fma32(x, float(near), shift)
        assert (x[0] > 1) == above


def test_fma64_of_infinite_bounds_stays_infinite():
    assert fma64(np.array([0.5]), 3.0, math.inf)[0] == math.inf


@pytest.mark.parametrize("n", [1, 2, 3, 50, 400, 70_000])
def test_swaps_at_once_equal_swaps_one_by_one(n):
    rng = np.random.default_rng(n)
    for places in (np.arange(n), np.full(n, n - 1), rng.integers(np.arange(n), n)):
        expected = _one_by_one(places.tolist())
        assert _at_once(places).tolist() == expected
        assert swapped(places).tolist() == expected
