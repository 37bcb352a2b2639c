"""Generators, their state, the default ones, and the random streams in plain Python."""

from __future__ import annotations

import copy
import math
import pickle
import struct
import threading

import pytest

import flambeau as fb
from flambeau import random
from flambeau._random.generator import (
    DefaultGenerators,
    Generator,
    default_generator,
    generator_for,
)
from flambeau._random.mt19937 import MT19937
from flambeau._types import dtype as D
from flambeau._types.device import device
from flambeau.ops.randomness import random as streams

SEEDS = [0, 1, 5489, 2**32 - 1]


def seeded(seed: int) -> Generator:
    """A generator that draws from the core's own engine."""
    generator = Generator()
    generator._engine = MT19937()
    return generator.manual_seed(seed)


def float32_bits(values: list[float]) -> list[int]:
    return list(struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values)))


def test_engine_gives_the_published_ten_thousandth_word():
    # The C++ standard requires this of std::mt19937 (26.6.4.2 in C++11).
    assert MT19937(5489).random_bits(10_000).tolist()[-1] == 4123659995


@pytest.mark.parametrize("cuts", [[1] * 700, [623, 1, 1, 75], [624, 76], [0, 700, 0]])
def test_words_do_not_depend_on_how_draws_are_cut(cuts):
    engine = MT19937(7)
    assert [w for n in cuts for w in engine.random_bits(n)] == MT19937(7).random_bits(700).tolist()


def test_only_the_low_32_bits_of_a_seed_matter():
    assert MT19937(5 + 2**32).random_bits(5) == MT19937(5).random_bits(5)


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 1248])
def test_an_engine_continues_from_the_words_of_another(drawn):
    first, second = MT19937(3), MT19937(4)
    first.random_bits(drawn)
    second.set_words(*first.get_words())
    assert second.random_bits(700) == first.random_bits(700)
    assert second.get_words() == first.get_words()


def test_an_unseeded_generator_starts_from_the_same_seed_as_pytorchs():
    assert Generator().initial_seed() == 67280421310721


@pytest.mark.parametrize(
    ("seed", "kept"),
    [(0, 0), (2**64 - 1, 2**64 - 1), (-1, 2**64 - 1), (-(2**63), 2**63)],
)
def test_negative_seeds_count_from_two_to_the_64th(seed, kept):
    assert seeded(seed).initial_seed() == kept


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_out_of_range_is_a_value_error_that_names_it(seed):
    with pytest.raises(ValueError, match=f"Overflow when unpacking long long: seed {seed}"):
        Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", [1.0, "1", True, None])
def test_a_seed_that_is_no_integer_is_a_runtime_error_that_names_its_type(seed):
    expected = f"manual_seed expected a long, but got {type(seed).__name__}"
    with pytest.raises(RuntimeError, match=expected):
        Generator().manual_seed(seed)


def test_manual_seed_returns_the_generator_and_restarts_the_stream():
    generator = seeded(1)
    first = streams.normal_serial((3,), 0.0, 1.0, D.float64, generator)
    assert generator.manual_seed(1) is generator
    assert streams.normal_serial((3,), 0.0, 1.0, D.float64, generator) == first


def test_seed_draws_a_seed_and_keeps_it():
    generator = seeded(0)
    drawn = {generator.seed() for _ in range(4)}
    assert len(drawn) == 4
    assert generator.initial_seed() in drawn


def test_seeding_needs_no_engine():
    generator = Generator().manual_seed(3)
    assert generator._engine is None


def test_a_generator_of_the_meta_device_is_refused():
    with pytest.raises(RuntimeError, match="meta has no values"):
        Generator("meta")


def test_the_first_cpu_is_the_cpu():
    assert Generator("cpu:0").device == device("cpu")


def test_a_state_lies_where_pytorch_keeps_it():
    generator = seeded(-2)
    streams.normal_serial((1,), 0.0, 1.0, D.float64, generator)
    state = generator.state_bytes()
    words, position = generator.engine.get_words()
    assert len(state) == 5056
    assert struct.unpack_from("<QiiQ", state) == (2**64 - 2, 625 - position, 1, position)
    assert list(struct.unpack_from("<624Q", state, 24)) == words
    assert struct.unpack_from("<3di", state, 5016) == (0.0, generator.next_normal, 0.0, 1)
    assert state[5044:] == bytes(12)


def test_a_state_directly_after_seeding_counts_no_drawn_word():
    assert struct.unpack_from("<iiQ", seeded(0).state_bytes(), 8) == (1, 1, 0)


@pytest.mark.parametrize("drawn", [0, 1, 3, 624, 1000])
def test_a_state_restores_seed_words_and_waiting_normal(drawn):
    generator, other = seeded(11), seeded(12)
    streams.normal_serial((drawn,), 0.0, 1.0, D.float64, generator)
    other.set_state_bytes(generator.state_bytes())
    assert other.initial_seed() == 11
    assert other.next_normal == generator.next_normal
    assert other.state_bytes() == generator.state_bytes()
    args = ((50,), 0.0, 1.0, D.float64)
    assert streams.normal_serial(*args, other) == streams.normal_serial(*args, generator)


def test_a_waiting_float32_normal_survives_a_round_trip():
    state = bytearray(seeded(0).state_bytes())
    struct.pack_into("<f?", state, 5048, 0.25, True)
    generator = seeded(1)
    generator.set_state_bytes(bytes(state))
    assert generator.state_bytes() == bytes(state)


@pytest.mark.parametrize("size", [0, 5055, 5057])
def test_a_state_of_the_wrong_size_is_refused(size):
    with pytest.raises(RuntimeError, match=f"size 5056 but found .* {size}"):
        seeded(0).set_state_bytes(bytes(size))


@pytest.mark.parametrize("field", [(8, 0), (8, 625), (12, 0), (16, 625)])
def test_bytes_that_are_no_state_are_refused(field):
    state = bytearray(seeded(0).state_bytes())
    struct.pack_into("<i", state, *field)
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        seeded(0).set_state_bytes(bytes(state))


def test_a_clone_continues_alike_and_on_its_own():
    generator = seeded(5)
    streams.randperm(10, D.int64, generator)
    clone = generator.clone_state()
    assert clone is not generator
    assert clone.state_bytes() == generator.state_bytes()
    first = streams.randperm(10, D.int64, clone)
    assert streams.randperm(10, D.int64, generator) == first


def test_a_state_tensor_is_bytes_on_the_cpu_and_restores():
    import flambeau as fb

    generator = fb.Generator().manual_seed(5)
    state = generator.get_state()
    assert (state.dtype, tuple(state.shape), state.device.type) == (fb.uint8, (5056,), "cpu")
    drawn = fb.rand(5, generator=generator).tolist()
    assert generator.set_state(state) is generator
    assert fb.rand(5, generator=generator).tolist() == drawn


def test_set_state_says_what_is_wrong_with_a_tensor():
    import flambeau as fb

    generator = fb.Generator()
    with pytest.raises(TypeError, match=r"expected a torch\.ByteTensor, but got list"):
        generator.set_state([1, 2])
    with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        generator.set_state(fb.zeros(5056))
    with pytest.raises(RuntimeError, match=r"size 5056 but found .* 10"):
        generator.set_state(fb.zeros(10, dtype=fb.uint8))
    with pytest.raises(RuntimeError, match="contiguous"):
        generator.set_state(fb.zeros(10112, dtype=fb.uint8)[::2])


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_and_pickles_carry_the_state(copied):
    import flambeau as fb

    generator = fb.Generator().manual_seed(5)
    fb.randn(3, generator=generator)
    twin = copied(generator)
    assert twin.state_bytes() == generator.state_bytes()
    assert twin.device == generator.device


@pytest.mark.parametrize("call", [lambda g: g.get_offset(), lambda g: g.set_offset(1)])
def test_the_cpu_generator_has_no_offset(call):
    with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
        call(Generator())


_WORDS = [1] * 624
_NO_PLACES = [-1, None, "ab", (), ([1], 0), ([-1] * 624, 0), ([2**32] * 624, 0)]


@pytest.mark.parametrize(
    "place",
    [*_NO_PLACES, *[(_WORDS, position) for position in (625, -1, 2**31 - 1, 2**70, 1.5)]],
    ids=lambda place: f"{str(place)[:4]} {str(place)[-6:]}",
)
def test_a_generator_returns_only_to_places_of_its_stream(place):
    generator = Generator().manual_seed(5)
    state = generator.state_bytes()
    with pytest.raises(RuntimeError, match="no place in the stream of a generator on cpu"):
        generator.return_to(place)
    assert generator.state_bytes() == state


def test_manual_seed_seeds_the_default_generator_and_returns_it():
    assert random.manual_seed(42) is default_generator
    assert random.initial_seed() == 42
    assert random.seed() == random.initial_seed() != 42


def test_manual_seed_takes_what_int_takes():
    assert random.manual_seed(7.9).initial_seed() == 7
    with pytest.raises(ValueError, match="invalid literal"):
        random.manual_seed("seven")


def test_the_module_knows_its_public_names():
    assert set(random.__all__) <= set(dir(random))


def test_a_device_first_used_after_seeding_starts_from_that_seed():
    defaults = DefaultGenerators()
    defaults.manual_seed(9)
    assert defaults.of(device("ref")).initial_seed() == 9
    defaults.manual_seed(10)
    assert defaults.of(device("ref")).initial_seed() == 10


def test_restoring_a_snapshot_forgets_generators_made_since():
    defaults = DefaultGenerators()
    defaults.manual_seed(9)
    saved = defaults.snapshot()
    defaults.manual_seed(10)
    made_inside = defaults.of(device("ref"))
    defaults.restore(saved)
    assert defaults.cpu.initial_seed() == 9
    assert defaults.of(device("ref")) is not made_inside
    assert defaults.of(device("ref")).initial_seed() == 9


def test_fork_rng_leaves_no_trace_even_of_an_error():
    random.manual_seed(1)
    before = default_generator.state_bytes()

    def draw_and_fail() -> None:
        with random.fork_rng():
            random.manual_seed(2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        draw_and_fail()
    assert default_generator.state_bytes() == before


@pytest.mark.parametrize("switch", [{"enabled": False}, {"device_type": "meta"}])
def test_fork_rng_can_be_switched_off(switch):
    random.manual_seed(1)
    with random.fork_rng(**switch):
        random.manual_seed(2)
    assert random.initial_seed() == 2


def test_a_generator_of_another_device_type_is_refused():
    assert generator_for(device("cpu"), None) is default_generator
    mine = Generator()
    assert generator_for(device("cpu"), mine) is mine
    with pytest.raises(RuntimeError, match=r"Expected a 'ref' device type .* found 'cpu'"):
        generator_for(device("ref"), mine)


def test_uniform_float32_gives_pytorchs_numbers():
    values = streams.uniform((3,), 0.0, 1.0, D.float32, seeded(0))
    assert float32_bits(values) == [0x3EFE1558, 0x3F44AA2F, 0x3DB533A8]


def test_normal_float32_gives_pytorchs_numbers_below_and_above_a_block():
    few = streams.normal((3,), 0.0, 1.0, D.float32, seeded(0))
    assert float32_bits(few) == [0x3FC53F5C, 0xBE963C50, 0xC00B7149]
    many = streams.normal((17,), 0.0, 1.0, D.float32, seeded(0))
    assert float32_bits([many[0], many[1], many[16]]) == [0xBF901B85, 0xBFD91446, 0x3F6E8C30]


def test_randperm_and_randint_give_pytorchs_numbers():
    assert streams.randperm(8, D.int64, seeded(0)) == [4, 0, 7, 3, 2, 5, 1, 6]
    assert streams.randint(0, 10, (6,), D.int64, seeded(0)) == [4, 9, 3, 0, 3, 9]


@pytest.mark.parametrize("cuts", [[1] * 9, [2, 7], [3, 3, 3], [0, 9]])
def test_serial_normals_do_not_depend_on_how_draws_are_cut(cuts):
    generator, whole = seeded(3), seeded(3)
    args = (0.5, 2.0, D.float64)
    pieces = [v for n in cuts for v in streams.normal_serial((n,), *args, generator)]
    assert pieces == streams.normal_serial((9,), *args, whole)
    assert generator.state_bytes() == whole.state_bytes()


def test_concurrent_draws_share_one_stream_without_loss():
    generator, alone = seeded(3), seeded(3)
    drawn: list[float] = []

    def draw() -> None:
        for _ in range(50):
            drawn.extend(streams.normal_serial((3,), 0.0, 1.0, D.float64, generator))

    threads = [threading.Thread(target=draw, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert sorted(drawn) == sorted(streams.normal_serial((600,), 0.0, 1.0, D.float64, alone))


@pytest.mark.parametrize("dtype", [D.float16, D.bfloat16, D.float32, D.float64])
def test_uniforms_stay_below_the_open_end_in_every_precision(dtype):
    values = streams.uniform((3000,), 0.0, 1.0, dtype, seeded(0))
    assert all(0 <= v < 1 for v in values)
    assert values == [streams.S.rounded(v, dtype) for v in values]


def test_large_integers_are_rounded_to_float32_once():
    # 2⁶⁰ + 2³⁶ is a tie of float32; one more decides it, and float64 loses that one.
    tie = 2**60 + 2**36
    assert float32_bits([streams.S.sticky(tie)]) == float32_bits([2.0**60])
    for sign in (1, -1):
        rounded = streams.S.round32(streams.S.sticky(sign * (tie + 1)))
        assert rounded == sign * (2.0**60 + 2.0**37)


def test_an_interval_of_one_point_gives_that_point():
    assert streams.uniform((4,), 2.5, 2.5, D.float32, seeded(0)) == [2.5] * 4


@pytest.mark.parametrize("op", [streams.uniform, streams.normal])
def test_complex_numbers_take_real_and_imaginary_parts_in_turn(op):
    scale = math.sqrt(2.0) if op is streams.normal else 1.0
    parts = op((20,), 0.0, 1.0 / scale, D.float64, seeded(4))
    numbers = op((10,), 0.0, 1.0, D.complex128, seeded(4))
    if op is streams.normal:
        assert [p for z in numbers for p in (z.real, z.imag)] == pytest.approx(parts)
    else:
        assert [p for z in numbers for p in (z.real, z.imag)] == parts


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: streams.uniform((0,), 0.0, 1.0, D.float32, g),
        lambda g: streams.normal((3, 0), 0.0, 1.0, D.float32, g),
        lambda g: streams.normal_serial((0,), 0.0, 1.0, D.float32, g),
        lambda g: streams.randperm(0, D.int64, g),
        lambda g: streams.randperm(1, D.int64, g),
        lambda g: streams.randint(0, 10, (0,), D.int64, g),
        lambda g: streams.bernoulli([], D.float32, g),
    ],
)
def test_an_empty_draw_leaves_the_generator_alone(draw):
    generator = seeded(0)
    before = generator.state_bytes()
    assert draw(generator) in ([], [0])
    assert generator.state_bytes() == before


def test_a_number_is_a_draw_of_shape_nothing():
    assert streams.uniform((), 0.0, 1.0, D.float32, seeded(0)) == streams.uniform(
        (1,), 0.0, 1.0, D.float32, seeded(0)
    )


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_events_are_certain(p):
    assert set(streams.bernoulli_scalar((100,), p, D.float32, seeded(0))) == {int(p)}
    assert set(streams.bernoulli([p] * 100, D.float32, seeded(0))) == {int(p)}


def test_a_draw_without_replacement_repeats_nothing_and_skips_what_has_no_weight():
    weights = [0.0, 1.0, 2.0, 0.0, 3.0, 4.0]
    drawn = streams.multinomial(weights, (6,), 4, False, D.float32, seeded(0))
    assert sorted(drawn) == [1, 2, 4, 5]


def test_rows_of_weights_are_sampled_each_on_its_own():
    weights = [1.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    assert streams.multinomial(weights, (2, 3), 2, True, D.float32, seeded(0)) == [0, 0, 2, 2]


@pytest.mark.parametrize("device", ["cpu", "ref"])
@pytest.mark.parametrize(
    ("row", "text"),
    [
        ((-1.0, 2.0), "either `inf`, `nan` or element < 0"),
        ((0.0, math.inf), "either `inf`, `nan` or element < 0"),
        ((1.0, math.nan), "either `inf`, `nan` or element < 0"),
        ((0.0, 0.0), "invalid distribution"),
    ],
)
def test_weights_that_are_no_distribution_are_refused(row, text, device):
    for dtype in (fb.float16, fb.float32, fb.float64):
        weights = fb.tensor([(0.0, 0.5), row], dtype=dtype, device=device)
        for how in ((1,), (2, True)):
            with pytest.raises(RuntimeError, match=f"multinomial: .*{text}"):
                fb.multinomial(weights, *how)
            assert fb.multinomial(weights[:1], *how).tolist() == [[1] * how[0]]
            assert fb.multinomial(weights[:0], *how).shape == (0, how[0])
    smallest = fb.tensor([0.0, 5e-324], dtype=fb.float64, device=device)
    assert fb.multinomial(smallest, 1).tolist() == [1]


@pytest.mark.parametrize("device", ["cpu", "ref"])
def test_probabilities_rates_and_deviations_are_refused_outside_of_their_interval(device):
    def of(*values):
        return fb.tensor(values, device=device)

    for wrong in (-1e-6, math.nan, 1.0001, math.inf):
        with pytest.raises(RuntimeError, match="p_in >= 0 && p_in <= 1"):
            fb.bernoulli(of(0.5, wrong))
        with pytest.raises(RuntimeError, match="p_in >= 0 && p_in <= 1"):
            of(1.0, 1.0).bernoulli_(of(0.5, wrong))
    for wrong in (-1e-6, math.nan):
        with pytest.raises(RuntimeError, match="invalid Poisson rate"):
            fb.poisson(of(0.5, wrong))
        with pytest.raises(RuntimeError, match="all elements of std >= 0"):
            fb.normal(of(0.0, 0.0), of(1.0, wrong))
        with pytest.raises(RuntimeError, match="all elements of std >= 0"):
            fb.normal(0.0, of(wrong))
    with pytest.raises(RuntimeError, match="non-complex"):
        fb.normal(0.0, of(1j))
    assert fb.bernoulli(of(0.0, 1.0)).tolist() == [0, 1]
    assert fb.poisson(of(0.0, -0.0)).tolist() == [0, 0]
    assert fb.normal(of(2.0), of(0.0)).tolist() == [2]
    assert fb.normal(of(2, 3).double(), of(0, 0)).tolist() == [2, 3]
    for nothing in (fb.bernoulli(of()), fb.poisson(of()), fb.normal(of(), of())):
        assert nothing.tolist() == []


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (D.bool_, 2),
        (D.uint8, 2**8),
        (D.int8, 2**7),
        (D.int64, 2**63),
        (D.float16, 2**11 + 1),
        (D.bfloat16, 2**8 + 1),
        (D.float64, 2**53 + 1),
    ],
)
def test_the_full_range_is_what_a_dtype_counts_without_gaps(dtype, values):
    assert streams.full_range(dtype) == values
    assert all(0 <= v < values for v in streams.random_full((50,), dtype, seeded(0)))


def test_integer_range_keeps_bounds_that_the_dtype_holds():
    assert streams.integer_range(-5, 100, D.int8) == (-5, 100)
    assert streams.integer_range(3, None, D.uint8) == (3, 256)
    assert streams.integer_range(-(2**63), None, D.int64) == (-(2**63), 2**63)
    assert streams.integer_range(0, 2, D.bool_) == (0, 2)


def test_integer_range_moves_bounds_of_floats_to_numbers_inside():
    with pytest.warns(UserWarning, match="to - 1 is out of bounds"):
        low, high = streams.integer_range(0, 65504, D.float16)
    assert (low, high) == (0, 65472)


@pytest.mark.parametrize(
    ("low", "high", "dtype", "message"),
    [
        (5, 5, D.int64, "from=5 >= to=5"),
        (0, 300, D.uint8, "to - 1 is out of bounds for torch.uint8: 299"),
        (-1, 5, D.uint8, "from is out of bounds for torch.uint8: -1"),
        (0, 3, D.bool_, "to - 1 is out of bounds for torch.bool: 2"),
        (0, 70000, D.float16, "to - 1 is out of bounds for torch.float16"),
        (2049, None, D.float16, "less than or equal to 'to_inc'"),
    ],
)
def test_integer_range_says_which_bound_is_wrong(low, high, dtype, message):
    with pytest.raises(RuntimeError, match=message):
        streams.integer_range(low, high, dtype)


@pytest.mark.parametrize(
    ("shape", "stride", "order"),
    [
        ((), (), ()),
        ((2, 3), (3, 1), (0, 1)),
        ((2, 3), (1, 2), (1, 0)),
        ((2, 1, 3), (1, 99, 2), (2, 1, 0)),
        ((2, 3, 4), (4, 8, 1), (1, 0, 2)),
    ],
)
def test_filling_goes_from_the_largest_stride_to_the_smallest(shape, stride, order):
    assert streams.fill_order(shape, stride) == order
