"""Compiled random numbers are those of the NumPy kernels, bit for bit, and leave the same state."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flambeau as fb
from flambeau import plugin
from flambeau._dispatch.bound import bind
from flambeau.ops import OPS
from flambeau_native.extension import native
from flambeau_native.kernels import random
from flambeau_numpy._box_muller import BoxMuller32
from flambeau_numpy.dtypes import TO_NUMPY
from flambeau_numpy.generator import MT19937
from flambeau_numpy.kernels.random import KERNELS as NUMPY

SIZES = [0, 1, 5, 15, 16, 17, 31, 33, 624, 1000, 2047, 2048, 2049, 10_007]


class Generator:
    def __init__(self):
        self.lock, self.engine, self.next_normal = threading.RLock(), MT19937(7), None


def same(name, *args):
    ours, theirs = Generator(), Generator()
    for _ in range(2):
        found, wanted = random.KERNELS[name](*args, ours), NUMPY[name](*args, theirs)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        assert ours.engine.get_words() == theirs.engine.get_words()
        assert ours.next_normal == theirs.next_normal


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [plugin.float32, plugin.float64, plugin.float16])
def test_uniform(size, dtype):
    for low, high in ((0.0, 1.0), (-1.5, 2.7), (3.0, 3.0)):
        same("uniform", (size,), low, high, dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [plugin.float32, plugin.float64, plugin.float16])
def test_normal(size, dtype):
    for mean, std in ((0.0, 1.0), (0.3, 1.7), (0.0, 0.1), (5.0, 0.0)):
        same("normal", (size,), mean, std, dtype)


FLOATS = [plugin.float32, plugin.float64, plugin.float16, plugin.bfloat16]
WHOLE = [plugin.int32, plugin.int64, plugin.uint8, plugin.int16]
NUMBERS = {
    "uniform": (FLOATS, [(0.0, 1.0), (-1.5, 2.7)]),
    "normal": (FLOATS, [(0.3, 1.7)]),
    "normal_serial": (FLOATS, [(0.3, 1.7)]),
    "log_normal": (FLOATS, [(1.0, 2.0), (0.0, 400.0)]),
    "cauchy": (FLOATS, [(0.0, 1.0), (0.3, 1e30)]),
    "geometric": ([*FLOATS, *WHOLE], [(0.3,), (1e-12,), (1 - 1e-9,), (1e-300,)]),
    "exponential": (FLOATS, [(1.0,), (1e-30,)]),
    "bernoulli_scalar": ([*FLOATS, *WHOLE, plugin.bool_], [(0.3,)]),
    "random_full": ([*FLOATS, *WHOLE, plugin.bool_], [()]),
    "randint": (
        [*FLOATS, *WHOLE],
        [(0, 5), (-3, 100), (0, 1), (0, 1 << 7), (0, (1 << 28) - 1), (0, 1 << 28), (-9, 1 << 33)],
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 33, 2049, 10_007])
def test_what_fills_an_array_draws_what_makes_one_draws(name, size):
    dtypes, numbers = NUMBERS[name]
    for dtype in dtypes:
        for given in numbers:
            if name == "randint" and max(map(abs, given)) > 1 << (8 * dtype.itemsize - 2):
                continue
            shape = (*given, (size,)) if name == "randint" else ((size,), *given)
            ours, theirs = Generator(), Generator()
            for _ in range(2):
                wanted = NUMPY[name](*shape, dtype, theirs)
                made = random.KERNELS[name](*shape, dtype, ours)
                assert made.dtype == wanted.dtype
                np.testing.assert_array_equal(made.view("u1"), wanted.view("u1"))
                filled, wanted = np.ones_like(made), NUMPY[name](*shape, dtype, theirs)
                assert random.KERNELS[f"{name}_"](filled, *given, ours) is None
                np.testing.assert_array_equal(filled.view("u1"), wanted.view("u1"))
                assert ours.engine.get_words() == theirs.engine.get_words()
                assert ours.next_normal == theirs.next_normal


@pytest.mark.parametrize("bounds", [(-(1 << 63), 1 << 63), (-(1 << 63), 5), (0, (1 << 63) - 1)])
def test_integers_of_the_widest_ranges(bounds):
    same("randint", *bounds, (1000,), plugin.int64)


@pytest.mark.parametrize("dtype", [plugin.float32, plugin.float64, plugin.float16], ids=str)
def test_normals_one_by_one_leave_the_second_of_a_pair_to_the_next_call(dtype):
    ours, theirs = Generator(), Generator()
    for size in (1, 2, 0, 3, 15, 4, 1, 1025, 2, 20_001):
        for name in ("normal_serial",) if size > 15 else ("normal_serial", "normal"):
            arguments = ((size,), 0.3, 1.7, dtype)
            found = random.KERNELS[name](*arguments, ours)
            wanted = NUMPY[name](*arguments, theirs)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
            assert ours.next_normal == theirs.next_normal
    assert ours.engine.get_words() == theirs.engine.get_words()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [plugin.float32, plugin.float64, plugin.bool_, plugin.int64])
def test_bernoulli(size, dtype):
    for p in (0.0, 0.3, 1.0):
        same("bernoulli_scalar", (size,), p, dtype)


LAYOUTS = {
    "rows": lambda a: a,
    "turned": lambda a: a.transpose(2, 0, 1),
    "steps": lambda a: a[::2, :, ::-1],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "nothing": lambda a: a[:0],
    "number": lambda a: a[0, 0, 0:1].reshape(()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "dtype", [plugin.float32, plugin.float64, plugin.float16, plugin.bfloat16], ids=str
)
def test_dropout_is_its_decomposition(layout, dtype):
    values = np.random.default_rng(1).normal(size=(13, 7, 50))
    values[0, 0, :4] = np.nan, np.inf, -np.inf, -0.0
    x = LAYOUTS[layout](values.astype(TO_NUMPY[dtype]))
    decomposed = OPS["dropout"].decomposed(bind("cpu"))
    for p in (0.1, 0.5, 0.9):
        ours, theirs = fb.Generator().manual_seed(3), fb.Generator().manual_seed(3)
        found, noise = random.KERNELS["dropout"](x, p, ours)
        wanted = decomposed(x, p, theirs)
        for mine, other in zip((found, noise), wanted, strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine.astype("f8"), other.astype("f8"))
            if mine.size:
                assert mine.strides == other.strides
        assert ours.get_state().tolist() == theirs.get_state().tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [plugin.float32, plugin.float64, plugin.float16])
def test_exponential(size, dtype):
    for rate in (1.0, 2.5, 1e-30):
        same("exponential", (size,), rate, dtype)


SHAPES = [(1,), (2,), (9,), (3, 4), (40, 3), (5, 1000), (1, 3000), (3, 1025)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_multinomial(shape, dtype):
    weights = np.random.default_rng(0).random(shape)
    several = weights * (weights > 0.5) + (np.arange(shape[-1]) == 0)
    tiny = np.maximum(
        weights * (1e-42 if dtype == np.float32 else 1e-320), np.finfo(dtype).tiny / 8
    )
    for given in (weights, weights**20 + 1e-7, several, tiny if dtype != np.float16 else several):
        probs = given.astype(dtype)
        for samples in (1, 2, 17, 2000 if dtype != np.float16 else 3):
            same("multinomial", probs, samples, True)
        for samples in {1, (shape[-1] + 1) // 2, shape[-1]}:
            same("multinomial", probs, samples, False)
        if probs.ndim == 2:
            same("multinomial", np.asfortranarray(probs), 1, True)


@pytest.mark.parametrize("wrong", [[1.0, np.nan], [2.0, -1.0], [0.0, 0.0], [np.inf, 1.0]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_weights_that_are_none_are_refused_before_anything_is_drawn(wrong, dtype):
    generator = Generator()
    for samples, replacement in ((1, True), (3, True), (2, False)):
        with pytest.raises(ValueError):  # noqa: PT011 - the core has the words
            random.KERNELS["multinomial"](
                np.array([[1.0, 1.0], wrong], dtype), samples, replacement, generator
            )
    drawn, fresh = generator.engine.random_bits(5), Generator().engine.random_bits(5)
    assert drawn.tolist() == fresh.tolist()
    with pytest.raises(RuntimeError, match="probability tensor contains|sum of probabilities"):
        fb.multinomial(fb.tensor(wrong), 1)


@pytest.mark.parametrize("n", SIZES)
def test_randperm(n):
    same("randperm", n, plugin.int64)
    same("randperm", n, plugin.int32)


def test_a_stream_may_change_hands_at_any_word():
    ours, theirs = MT19937(3), MT19937(3)
    for n in (1, 3, 620, 1, 624, 625):
        out = np.empty(n, np.uint32)
        native.words(out, ours.memory(), n)
        np.testing.assert_array_equal(out, theirs.random_bits(n))
        np.testing.assert_array_equal(ours.random_bits64(2), theirs.random_bits64(2))


def test_normals_of_all_24_bits_in_steps_of_61():
    words = np.arange(0, 1 << 24, 61, dtype=np.uint32)
    words = words[: words.size // 16 * 16]
    wanted = np.empty(words.size, np.float32)
    BoxMuller32(words.size // 2).fill(words.copy(), wanted)
    found = np.empty_like(wanted)
    native.normals_of(found, words, words.size)
    np.testing.assert_array_equal(found, wanted)


class Broken(Generator):
    """A generator that fails in one place and counts who holds it."""

    def __init__(self, place):
        super().__init__()
        self.place, self.holders, self.entered, made = place, 0, 0, self.engine
        outer = self

        class Lock:
            def acquire(self):
                if place == "acquire":
                    raise LookupError("acquire")
                outer.holders += 1
                outer.entered += 1

            def release(self):
                outer.holders -= 1
                if place == "release":
                    raise LookupError("release")

        class Engine:
            def memory(self):
                if place == "memory":
                    raise LookupError("memory")
                return 0 if place == "nowhere" else made.memory()

        self.lock, self.engine = Lock(), Engine()
        if place == "waiting":
            self.next_normal = "no number"


@pytest.mark.parametrize("place", ["acquire", "release", "memory", "nowhere", "waiting"])
@pytest.mark.parametrize("name", ["normal", "normal_"])
def test_a_generator_is_free_again_after_what_fails(name, place):
    generator = Broken(place)
    given = ((3,), 0.0, 1.0, plugin.float32) if name == "normal" else (np.ones(3, "f4"), 0.0, 1.0)
    for call in (1, 2):
        with pytest.raises((LookupError, RuntimeError, TypeError)) as error:
            random.KERNELS[name](*given, generator)
        if place in ("acquire", "release", "memory"):
            assert error.value.args == (place,)
        assert generator.holders == 0 and generator.entered == (0 if place == "acquire" else call)


def test_nothing_is_locked_where_nothing_is_drawn():
    generator = Broken("acquire")
    assert random.KERNELS["uniform"]((0, 3), 0.0, 1.0, plugin.float32, generator).shape == (0, 3)
    random.KERNELS["uniform_"](np.ones((2, 0), "f4"), 0.0, 1.0, generator)


@pytest.mark.parametrize("name", ["uniform", "normal", "cauchy"])
def test_arrays_with_gaps_or_of_no_known_class_are_filled_the_general_way(name):
    class Other(np.ndarray):
        pass

    ours, theirs = Generator(), Generator()
    wanted = NUMPY[name]((6,), 0.5, 2.0, plugin.float32, theirs)
    a = np.zeros(6, "f4").view(Other)
    random.KERNELS[f"{name}_"](a, 0.5, 2.0, ours)
    assert a.tobytes() == wanted.tobytes()
    fixed = np.zeros(6, "f4")
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        random.KERNELS[f"{name}_"](fixed, 0.5, 2.0, ours)


@pytest.mark.parametrize(
    "cases",
    [
        (),
        (1,),
        ((1, 2, len, None),),
        ((1, 2, native.silu_f32, None),),
        ((1, 2, native.uniform_f32, native.uniform_f32),),
        ((1, 2, native.exponential_f32, native.normal_serial_f32),),
        ((1, 2, native.uniform_f32, None), (1, 2, native.exponential_f32, None)),
        ((1, 2, native.uniform_f32, None),) * 7,
    ],
)
def test_what_draws_no_numbers_is_refused(cases):
    with pytest.raises((ValueError, TypeError), match=r"drawing\(\)|argument"):
        native.drawing(cases, 16, len, len, len, 1)


@pytest.mark.parametrize("n", [0, 1, 2, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("dtype", [plugin.int64, plugin.int32, plugin.float32, plugin.int16])
def test_permutations_are_those_of_numpy_in_every_dtype(n, dtype):
    same("randperm", n, dtype)
