"""Seed for seed: generators and random streams equal PyTorch's, values and states, bit for bit.

Each stream is compared twice: as the CPU backend's kernel computes it and as the core's plain
Python does.  The streams are those of PyTorch on x86-64 with fused multiply-add.
"""

from __future__ import annotations

import itertools
import math
import struct
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import flambeau as fb  # noqa: E402
from flambeau._random.generator import Generator  # noqa: E402
from flambeau._random.mt19937 import MT19937 as PlainMT19937  # noqa: E402, N811
from flambeau._types import dtype as D  # noqa: E402
from flambeau.ops.randomness import random as streams  # noqa: E402
from flambeau_numpy._box_muller import BoxMuller32  # noqa: E402
from flambeau_numpy.dtypes import TO_NUMPY  # noqa: E402
from flambeau_numpy.generator import MT19937  # noqa: E402
from flambeau_numpy.kernels.random import KERNELS  # noqa: E402

# All sizes draw from one generator, so that odd normals and half-used blocks carry over.
SIZES = [0, 1, 2, 15, 16, 17, 31, 33, 100, 1000]
SEEDS = [0, 1, 2**40 + 5]
FLOATS = [D.float16, D.bfloat16, D.float32, D.float64]
DTYPES = [*FLOATS, *D.INTEGER, D.bool_]


needs_fma = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="PyTorch rounds these streams otherwise without fused multiply-add",
)


def their(dtype: D.dtype) -> Any:
    return getattr(torch, dtype.name)


def their_bytes(tensor: Any) -> bytes:
    flat = tensor.flatten().clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def their_state() -> bytes:
    return torch.get_rng_state().numpy().tobytes()


def seeded(seed: int, engine: type) -> Generator:
    generator = Generator()
    generator._engine = engine()
    return generator.manual_seed(seed)


class Both:
    """PyTorch's default generator and ours, fast and plain, kept in step."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.fast, self.plain = seeded(seed, MT19937), seeded(seed, PlainMT19937)

    def compare(self, dtype: D.dtype, theirs: Any, name: str, *args: Any) -> None:
        state = their_state()
        array = np.asarray(KERNELS[name](*args, self.fast))
        assert array.shape == tuple(theirs.shape)
        assert array.tobytes() == their_bytes(theirs), (name, args, "kernel")
        assert self.fast.state_bytes() == state, (name, args, "state after the kernel")
        self.compare_plain(dtype, theirs, name, *args)

    def compare_plain(self, dtype: D.dtype, theirs: Any, name: str, *args: Any) -> None:
        values = getattr(streams, name)(*args, self.plain)
        assert D.pack(list(values), dtype) == their_bytes(theirs), (name, args, "plain")
        assert self.plain.state_bytes() == their_state(), (name, args, "state after plain")


@pytest.fixture(params=SEEDS, ids=[f"seed{s}" for s in SEEDS])
def both(request: pytest.FixtureRequest) -> Iterator[Both]:
    before = torch.get_rng_state()
    yield Both(request.param)
    torch.set_rng_state(before)


@needs_fma
@pytest.mark.parametrize("dtype", [*FLOATS, D.complex64, D.complex128])
def test_rand_and_randn(both, dtype):
    for n in SIZES:
        both.compare(dtype, torch.rand(n, dtype=their(dtype)), "uniform", (n,), 0.0, 1.0, dtype)
        both.compare(dtype, torch.randn(n, dtype=their(dtype)), "normal", (n,), 0.0, 1.0, dtype)


@needs_fma
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), [(-0.37, 1.91), (0.0, 0.1), (-0.05, 0.05), (2.0, 2.0)])
def test_uniform_(both, dtype, low, high):
    for n in SIZES:
        theirs = torch.empty(n, dtype=their(dtype)).uniform_(low, high)
        both.compare(dtype, theirs, "uniform", (n,), low, high, dtype)


@needs_fma
@pytest.mark.parametrize("dtype", [*FLOATS, D.complex64])
@pytest.mark.parametrize(("mean", "std"), [(0.3, 1.7), (0.0, 0.02), (-3.0, 1.0), (1e-3, 0.25)])
def test_normal_(both, dtype, mean, std):
    for n in SIZES:
        theirs = torch.empty(n, dtype=their(dtype)).normal_(mean, std)
        both.compare(dtype, theirs, "normal", (n,), mean, std, dtype)


@needs_fma
@pytest.mark.parametrize("dtype", [*FLOATS, D.complex64, D.complex128])
def test_normal_of_a_tensor_that_is_not_contiguous(both, dtype):
    for n in SIZES:
        theirs = torch.empty(2 * n + 2, dtype=their(dtype))[2::2].normal_(0.3, 1.7)
        both.compare(dtype, theirs, "normal_serial", (n,), 0.3, 1.7, dtype)


@needs_fma
@pytest.mark.parametrize("dtype", FLOATS)
def test_cauchy_and_log_normal(both, dtype):
    for n in SIZES:
        theirs = torch.empty(n, dtype=their(dtype)).cauchy_(0.7, 1.3)
        both.compare(dtype, theirs, "cauchy", (n,), 0.7, 1.3, dtype)
        theirs = torch.empty(n, dtype=their(dtype)).log_normal_(0.7, 1.3)
        both.compare(dtype, theirs, "log_normal", (n,), 0.7, 1.3, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rate", [1.0, 0.7, 30.0])
def test_exponential_(both, dtype, rate):
    for n in SIZES:
        theirs = torch.empty(n, dtype=their(dtype)).exponential_(rate)
        both.compare(dtype, theirs, "exponential", (n,), rate, dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *D.INTEGER])
@pytest.mark.parametrize("p", [0.2, 0.002])
def test_geometric_(both, dtype, p):
    for n in SIZES:
        theirs = torch.empty(n, dtype=their(dtype)).geometric_(p)
        both.compare(dtype, theirs, "geometric", (n,), p, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli_with_a_number(both, dtype, p):
    for n in SIZES:
        theirs = torch.empty(n, dtype=their(dtype)).bernoulli_(p)
        both.compare(dtype, theirs, "bernoulli_scalar", (n,), p, dtype)


def test_dropout_keeps_what_bernoulli_with_a_number_draws(both):
    theirs = torch.nn.functional.dropout(torch.ones(1000), 0.3) != 0
    both.compare(D.bool_, theirs, "bernoulli_scalar", (1000,), 0.7, D.bool_)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_with_a_tensor(both, dtype):
    for n in SIZES:
        p = torch.linspace(0, 1, n, dtype=torch.float64).to(their(dtype))
        theirs = torch.bernoulli(p)
        drawn = KERNELS["bernoulli"](as_numpy(p, dtype), both.fast)
        assert drawn.tobytes() == their_bytes(theirs)
        assert both.fast.state_bytes() == their_state()
        both.compare_plain(dtype, theirs, "bernoulli", p.tolist(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_without_bounds(both, dtype):
    for n in SIZES:
        theirs = torch.empty(n, dtype=their(dtype)).random_()
        both.compare(dtype, theirs, "random_full", (n,), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 2),
        (-5, 200),
        (0, 60000),
        (3, 2**28 + 2),
        (3, 2**28 + 3),
        (0, 2**40),
        (-100, None),
        (-(2**63), 2**63 - 1),
        (-(2**63), None),
    ],
)
def test_random_with_bounds(both, dtype, low, high):
    for n in SIZES:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                theirs = torch.empty(n, dtype=their(dtype)).random_(low, high)
            except RuntimeError:
                theirs = None
        if low == -(2**63) and high is None and dtype is not D.int64:
            return  # PyTorch takes this for a 64-bit range in every dtype; we, for int64
        if theirs is None:
            with pytest.raises(RuntimeError):
                streams.integer_range(low, high, dtype)
            return
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            bounds = streams.integer_range(low, high, dtype)
        assert len(ours) >= min(len(told), 1)
        both.compare(dtype, theirs, "randint", *bounds, (n,), dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *D.INTEGER])
def test_randperm(both, dtype):
    for n in [*SIZES, 399, 400, 5000]:
        if dtype in (D.int64, D.int32, D.float32) or n <= 100:
            both.compare(dtype, torch.randperm(n, dtype=their(dtype)), "randperm", n, dtype)


def as_numpy(tensor: Any, dtype: D.dtype) -> Any:
    return np.frombuffer(their_bytes(tensor), TO_NUMPY[dtype]).reshape(tuple(tensor.shape))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("replacement", "count"), [(True, 1), (True, 7), (False, 1), (False, 3)])
def test_multinomial(both, dtype, replacement, count):
    for shape in [(3,), (40,), (1000,), (2, 17), (3, 3)]:
        # Weights without common factors keep equal quotients away, whose order PyTorch leaves open.
        weights = torch.sqrt(torch.arange(2.0, 2.0 + math.prod(shape))).reshape(shape)
        weights = weights.to(their(dtype))
        theirs = torch.multinomial(weights, count, replacement)
        drawn = KERNELS["multinomial"](as_numpy(weights, dtype), count, replacement, both.fast)
        assert drawn.tolist() == theirs.tolist()
        assert both.fast.state_bytes() == their_state()
        both.compare_plain(
            D.int64,
            theirs,
            "multinomial",
            weights.flatten().tolist(),
            shape,
            count,
            replacement,
            dtype,
        )


def test_multinomial_draws_in_the_order_of_memory(both):
    weights = torch.arange(1.0, 31.0).reshape(6, 5).t()
    theirs = torch.multinomial(weights, 3)
    drawn = KERNELS["multinomial"](weights.numpy(), 3, False, both.fast)
    assert drawn.tolist() == theirs.tolist()


@needs_fma
def test_a_mixture_of_calls_stays_in_step(both):
    calls: list[Callable[[int], tuple[Any, ...]]] = [
        lambda n: (D.float32, torch.rand(n), "uniform", (n,), 0.0, 1.0, D.float32),
        lambda n: (D.float32, torch.randn(n), "normal", (n,), 0.0, 1.0, D.float32),
        lambda n: (D.int64, torch.randint(5, (n,)), "randint", 0, 5, (n,), D.int64),
        lambda n: (D.int64, torch.randperm(n), "randperm", n, D.int64),
        lambda n: (
            D.float32,
            torch.empty(n).bernoulli_(0.4),
            "bernoulli_scalar",
            (n,),
            0.4,
            D.float32,
        ),
        lambda n: (
            D.float64,
            torch.randn(n, dtype=torch.float64),
            "normal",
            (n,),
            0.0,
            1.0,
            D.float64,
        ),
        lambda n: (
            D.float32,
            torch.empty(n).log_normal_(0.0, 1.0),
            "log_normal",
            (n,),
            0.0,
            1.0,
            D.float32,
        ),
    ]
    for step in range(70):
        both.compare(*calls[step * 3 % 7]((step * 37) % 41))


@needs_fma
def test_streams_of_many_blocks(both):
    for n in (140_003, 65_536, 65_537):
        for dtype in FLOATS:
            theirs = torch.empty(n, dtype=their(dtype)).normal_(0.1, 2.0)
            ours = KERNELS["normal"]((n,), 0.1, 2.0, dtype, both.fast)
            assert ours.tobytes() == their_bytes(theirs)
            assert both.fast.state_bytes() == their_state()
    assert (
        KERNELS["randperm"](70_000, D.int64, both.fast).tolist() == torch.randperm(70_000).tolist()
    )


@needs_fma
def test_chosen_radii_and_angles_equal_torchs():
    """Normals from chosen words: PyTorch is handed a state whose next outputs are those words."""
    hard = [0, 1, 2**24 - 1, 745996, 7084592, 13097110, 5423920, 11003136, 16777205]
    hard += [12582909, 12582912, 12582913, 4194304, 8388608]
    k = np.array(hard + np.arange(0, 1 << 24, 389).tolist(), np.uint32)
    generator = torch.Generator()
    state = bytearray(generator.get_state().numpy().tobytes())
    struct.pack_into("<iiQ", state, 8, 624, 1, 1)
    for start in range(0, k.size - 608, 608):
        words = k[start : start + 608]
        struct.pack_into("<608Q", state, 32, *untempered(words).tolist())
        generator.set_state(torch.frombuffer(state, dtype=torch.uint8).clone())
        theirs = torch.empty(608).normal_(generator=generator).numpy()
        ours = np.empty(608, np.float32)
        BoxMuller32(304).fill(words, ours)
        assert np.array_equal(ours, theirs)


def untempered(words: Any) -> Any:
    """The words of state from which MT19937 makes `words`."""
    y = words.astype(np.uint64)
    y ^= y >> np.uint64(18)
    y ^= (y << np.uint64(15)) & np.uint64(0xEFC60000)
    x = y.copy()
    for _ in range(5):
        x = y ^ ((x << np.uint64(7)) & np.uint64(0x9D2C5680))
    y = x & np.uint64(0xFFFFFFFF)
    x = y.copy()
    for _ in range(3):
        x = y ^ (x >> np.uint64(11))
    return x


@pytest.mark.parametrize("shape", [(2, 3), (4, 5, 6), (1, 3, 2), (3, 1, 2, 4)])
@pytest.mark.parametrize("gap", [1, 2])
def test_in_place_filling_follows_fill_order(shape, gap):
    for dims in itertools.permutations(range(len(shape))):
        sizes = [shape[d] for d in dims]
        dense = torch.zeros([*sizes[:-1], sizes[-1] * gap])[..., ::gap]
        target = dense.permute([dims.index(d) for d in range(len(shape))])
        order = streams.fill_order(tuple(target.shape), target.stride())
        torch.manual_seed(1)
        target.uniform_()
        torch.manual_seed(1)
        drawn = torch.rand([shape[d] for d in order])
        assert torch.equal(target.permute(order), drawn)


@pytest.mark.parametrize("seed", [0, 1, -1, -5, 2**32, 2**63, 2**64 - 1, -(2**63)])
@pytest.mark.parametrize("engine", [MT19937, PlainMT19937])
def test_states_after_seeding_are_equal(seed, engine):
    theirs = torch.Generator().manual_seed(seed)
    ours = seeded(seed, engine)
    assert ours.initial_seed() == theirs.initial_seed()
    assert ours.state_bytes() == theirs.get_state().numpy().tobytes()


@pytest.mark.parametrize("drawn", [0, 1, 2, 623, 624, 625, 1249])
@pytest.mark.parametrize("engine", [MT19937, PlainMT19937])
def test_states_travel_both_ways(drawn, engine):
    theirs = torch.Generator().manual_seed(5)
    torch.rand(drawn, generator=theirs)
    torch.randn(drawn % 2, generator=theirs)
    ours = seeded(99, engine)
    ours.set_state_bytes(theirs.get_state().numpy().tobytes())
    assert ours.state_bytes() == theirs.get_state().numpy().tobytes()

    streams.normal_serial((drawn % 5,), 0.0, 1.0, D.float64, ours)
    back = torch.Generator()
    back.set_state(torch.frombuffer(bytearray(ours.state_bytes()), dtype=torch.uint8))
    expected = torch.randn(700, generator=back)
    assert D.pack(streams.normal((700,), 0.0, 1.0, D.float32, ours), D.float32) == their_bytes(
        expected
    )


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5, "a", True, None])
def test_manual_seed_raises_what_torch_raises(seed):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - the class is compared below
        torch.Generator().manual_seed(seed)
    with pytest.raises(theirs.type):
        Generator().manual_seed(seed)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.bernoulli(lib.tensor([0.5, 1.5])),
        lambda lib: lib.bernoulli(lib.tensor([float("nan")])),
        lambda lib: lib.poisson(lib.tensor([-0.5])),
        lambda lib: lib.poisson(lib.tensor([float("nan")])),
        lambda lib: lib.multinomial(lib.tensor([1.0, float("inf")]), 1),
        lambda lib: lib.multinomial(lib.tensor([[0.0, 1.0], [0.0, 0.0]]), 2, True),
        lambda lib: lib.normal(lib.zeros(2), lib.tensor([1.0, -1.0])),
        lambda lib: lib.normal(lib.zeros(2), lib.tensor([1.0, float("nan")])),
        lambda lib: lib.normal(lib.zeros(2), lib.tensor([1j, 1.0])),
    ],
)
def test_what_is_no_probability_rate_or_deviation_raises_as_in_torch(call):
    import flambeau as fb

    for lib in (torch, fb):
        with pytest.raises(RuntimeError):
            call(lib)


def test_no_rows_of_weights_give_no_samples():
    import flambeau as fb

    for lib in (torch, fb):
        assert lib.multinomial(lib.zeros(0, 3), 2).shape == (0, 2)
        assert lib.multinomial(lib.zeros(0, 3), 2, True).shape == (0, 2)


def test_public_functions_give_torchs_numbers():
    import flambeau as fb

    def program(lib: Any) -> list[Any]:
        lib.manual_seed(3)
        out = [
            lib.rand(5),
            lib.randn(20),
            lib.randint(0, 10, (5,)),
            lib.randperm(10),
            lib.rand(3, dtype=lib.float64),
            lib.bernoulli(lib.full((9,), 0.4)),
            lib.multinomial(lib.tensor([0.1, 0.2, 0.7]), 4, replacement=True),
            lib.normal(0.5, 2.0, (17,)),
            lib.zeros(3, 4).uniform_(-1.0, 1.0),
        ]
        state = lib.get_rng_state()
        with lib.random.fork_rng():
            lib.rand(100)
        out.append(lib.rand(2))
        lib.set_rng_state(state)
        return [*out, lib.rand(2), lib.get_rng_state()]

    assert [t.tolist() for t in program(fb)] == [t.tolist() for t in program(torch)]


def test_public_fills_of_transposed_tensors_give_torchs_numbers():
    import flambeau as fb

    def program(lib: Any) -> list[Any]:
        lib.manual_seed(3)
        weights = lib.arange(1.0, 31.0).reshape(6, 5).t()
        return [
            lib.zeros(4, 5).t().uniform_(),
            lib.zeros(4, 5).t().normal_(),
            lib.zeros(8, 5)[::2].normal_(),
            lib.zeros(4, 5).t().random_(0, 10),
            lib.zeros(4, 5).t().bernoulli_(0.5),
            lib.zeros(4, 5).t().bernoulli_(lib.arange(20.0).reshape(5, 4) / 20),
            lib.bernoulli((lib.arange(20.0) / 20).reshape(4, 5).t()),
            lib.rand_like(lib.zeros(4, 5).t()),
            lib.randn_like(lib.zeros(4, 5).t()),
            lib.multinomial(weights, 3),
        ]

    ours, theirs = program(fb), program(torch)
    assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]


FILLS = {
    "uniform_": [(), (-1.5, 2.7)],
    "normal_": [(), (0.3, 1.7)],
    "log_normal_": [(), (0.1, 0.2)],
    "cauchy_": [(), (0.3, 2.0)],
    "exponential_": [(), (2.5,)],
    "geometric_": [(0.3,)],
    "random_": [(), (5,), (-3, 100)],
    "bernoulli_": [(), (0.3,)],
}
LAYOUTS = {
    "row": lambda x: x[0],
    "number": lambda x: x[0, 0],
    "nothing": lambda x: x[:0],
    "all": lambda x: x,
    "turned": lambda x: x.t(),
    "steps": lambda x: x[::2, 1::3],
    "column": lambda x: x[:, 2],
    "behind others": lambda x: x[3:],
    "long row of a view": lambda x: x.view(-1)[5:],
}


FILLED = [
    *itertools.product([torch.float32, torch.float64, torch.bfloat16], FILLS),
    *itertools.product([torch.complex64, torch.complex128], ["uniform_", "normal_"]),
]


@needs_fma
@pytest.mark.parametrize(("dtype", "name"), FILLED)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensors_of_any_layout_are_filled_as_pytorch_fills_them(name, layout, dtype):
    before = torch.get_rng_state()
    torch.manual_seed(3)
    generator = fb.Generator().manual_seed(3)
    ours = fb.zeros(8, 9, dtype=getattr(fb, str(dtype).removeprefix("torch.")))
    theirs = torch.zeros(8, 9, dtype=dtype)
    for given in FILLS[name] * 2:
        view, other = LAYOUTS[layout](ours), LAYOUTS[layout](theirs)
        version = view._version
        assert getattr(view, name)(*given, generator=generator) is view
        getattr(other, name)(*given)
        assert view._version == ours._version == version + 1
        assert ours.tolist() == theirs.tolist()
        assert generator.get_state().tolist() == torch.get_rng_state().tolist()
    torch.set_rng_state(before)


@needs_fma
@pytest.mark.parametrize("kind", ["same", "turned", "one", "row", "itself", "double", "float"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_tensors_of_any_layout_are_filled_with_the_probabilities_of_a_tensor(kind, layout, dtype):
    before = torch.get_rng_state()
    torch.manual_seed(3)
    generator = fb.Generator().manual_seed(3)

    def given(lib: Any, view: Any) -> Any:
        p = (lib.arange(float(view.numel())) / max(view.numel(), 1)).reshape(view.shape)
        p = p.to(view.dtype)
        kinds: dict[str, Callable[[], Any]] = {
            "same": lambda: p,
            "turned": lambda: p.t().contiguous().t() if p.dim() == 2 else p,
            "one": lambda: p.new_tensor(0.4),
            "row": lambda: p[:1] if p.dim() else p,
            "itself": lambda: view.copy_(p),
            "double": p.double,
            "float": p.float,
        }
        return kinds[kind]()

    ours = fb.zeros(8, 9, dtype=getattr(fb, str(dtype).removeprefix("torch.")))
    theirs = torch.zeros(8, 9, dtype=dtype)
    for _ in range(2):
        view, other = LAYOUTS[layout](ours), LAYOUTS[layout](theirs)
        p, q = given(fb, view), given(torch, other)
        version = view._version
        assert view.bernoulli_(p, generator=generator) is view
        other.bernoulli_(q)
        assert view._version == ours._version == version + 1
        assert ours.double().tolist() == theirs.double().tolist()
        assert generator.get_state().tolist() == torch.get_rng_state().tolist()
    torch.set_rng_state(before)


@pytest.mark.parametrize("name", sorted(FILLS.keys() - {"uniform_", "normal_"}))
def test_complex_tensors_are_refused_where_pytorch_refuses_them(name):
    for given in FILLS[name]:
        with pytest.raises((RuntimeError, NotImplementedError)) as theirs:
            getattr(torch.zeros(3, dtype=torch.complex64), name)(*given)
        with pytest.raises(theirs.type):
            getattr(fb.zeros(3, dtype=fb.complex64), name)(*given)


@pytest.mark.parametrize(
    "text",
    [
        "normal(x, 1.0)",
        "normal(x, y)",
        "normal(0.0, y)",
        "normal(x, y[:, :1])",
        "poisson(y)",
        "bernoulli(x)",
    ],
)
def test_what_numbers_are_drawn_with_has_the_gradient_zero(text):
    for t in (torch, fb):
        x, y = t.full((3,), 0.5, requires_grad=True), t.ones(2, 3, requires_grad=True)
        names = [name for name in ("x", "y") if f"{name}" in text.partition("(")[2]]
        drawn = eval(f"t.{text}", {"t": t, "x": x, "y": y})
        found = t.autograd.grad((drawn * 3).sum(), [{"x": x, "y": y}[name] for name in names])
        assert [g.tolist() for g in found] == [
            t.zeros((3,) if name == "x" else (2, 3)).tolist() for name in names
        ]


@pytest.mark.parametrize("wrong", [[0.5, 1.5, 0.5], [0.5, float("nan"), 0.5], [-0.1, 0.5, 0.5]])
def test_probabilities_that_are_none_are_refused_before_anything_is_written(wrong):
    x, state = fb.full((3,), 7.0), fb.get_rng_state().tolist()
    for p in (fb.tensor(wrong), fb.tensor(wrong, dtype=fb.float64)):
        with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1"):
            x.bernoulli_(p)
    with pytest.raises(RuntimeError, match="expand"):
        x.bernoulli_(fb.full((2,), 0.5))
    assert x.tolist() == [7.0] * 3
    assert fb.get_rng_state().tolist() == state


@pytest.mark.parametrize("name", FILLS)
def test_what_may_not_be_filled_is_as_it_was(name):
    given = FILLS[name][-1]
    leaf = fb.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        getattr(leaf, name)(*given)
    with pytest.raises(RuntimeError, match="single memory location"):
        getattr(fb.zeros(1).expand(3), name)(*given)
    with fb.no_grad():
        getattr(leaf, name)(*given)
    assert leaf.requires_grad
    grown = leaf * 2
    getattr(grown, name)(*given)
    grown.sum().backward()
    assert leaf.grad.tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="generator"):
        getattr(fb.zeros(3), name)(*given, generator=7)
