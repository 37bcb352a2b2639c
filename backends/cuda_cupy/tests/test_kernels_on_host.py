"""The kernels in CUDA C, launched by themselves on the host; `test_ops` launches them by ops."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path

import ml_dtypes
import numpy as np
import on_host
import pytest

from flambeau_cupy.device import philox
from flambeau_cupy.device.launch import Struct
from flambeau_cupy.fusion.elementwise import Elementwise
from flambeau_cupy.fusion.expressions import alone
from flambeau_cupy.fusion.steps import C_TYPES
from flambeau_cupy.kernels import indexing
from flambeau_cupy.layer import NumpyLayer
from flambeau_cupy.source import FAMILIES, FAMILY_OF, TYPES, families, text

pytestmark = pytest.mark.skipif(
    on_host.COMPILER is None or sys.platform != "linux",
    reason="needs g++ or clang++ on Linux",
)
HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
KINDS = {name: HALVES.get(name, np.dtype(name)) for name in TYPES}
I64, I32, F64, U64 = np.int64, np.int32, np.float64, np.uint64


def launch(dtype, name, grid, block, *arguments):
    on_host.library(dtype)(name, grid, block, *arguments)


def test_every_kernel_has_a_name_of_its_own():
    assert len(FAMILY_OF) == sum(map(len, FAMILIES.values()))
    assert families("float32") == list(FAMILIES)


def test_every_kernel_of_every_source_is_listed():
    """Those listed are compiled for devices (`test_sources`) and run here (`asan_cases`)."""
    folder = files("flambeau_cupy.source")
    found = {p.name for p in folder.iterdir() if p.name.endswith((".cu", ".cuh"))}
    assert found == {"common.cuh", "elementwise.cuh", *(f"{family}.cu" for family in FAMILIES)}
    for family, listed in FAMILIES.items():
        command = [on_host.COMPILER, "-E", "-P", "-x", "c++", "-"]  # some come from macros
        done = subprocess.run(command, input=text(family), capture_output=True, text=True)
        names = re.findall(r"__global__\s+void\s+(\w+)\s*\(", done.stdout)
        assert done.stdout.count("__global__") == len(names)
        assert sorted(names) == sorted(listed), family


def converted(numbers, dtype):
    """float32 numbers in a half and back, by a kernel that multiplies by nothing."""
    out = np.empty(numbers.size, KINDS[dtype])
    source = (
        '\nextern "C" __global__ void round_trip(T* out, const float* x, int64 n)'
        " { GRID_LOOP(i, n) out[i] = (T)x[i]; }"
    )
    run = on_host.Library(text("selection", dtype) + source, ["round_trip"])
    run("round_trip", 1, 32, out, numbers, I64(numbers.size))
    return out


@pytest.mark.parametrize("dtype", sorted(HALVES))
def test_halves_round_as_numpy_rounds_them(dtype):
    kind = KINDS[dtype]
    every = np.arange(1 << 16, dtype=np.uint16).view(kind).astype(np.float32)
    bits = np.random.default_rng(0).integers(0, 1 << 32, 50000, np.uint32)
    finite = np.sort(every[np.isfinite(every)])
    with np.errstate(all="ignore"):
        middles = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
        numbers = np.concatenate([every, bits.view(np.float32), middles, [65519.0, 65520.0, 7e4]])
        numbers = np.ascontiguousarray(numbers, np.float32)
        found, wanted = converted(numbers, dtype), numbers.astype(kind)
    nan = np.isnan(numbers)
    assert (np.isnan(found.astype(np.float32)) == nan).all()
    np.testing.assert_array_equal(found.view(np.uint16)[~nan], wanted.view(np.uint16)[~nan])


@pytest.mark.parametrize("dtype", sorted(HALVES))
def test_every_half_is_read_exactly(dtype):
    x = np.arange(1 << 16, dtype=np.uint16).view(KINDS[dtype])
    out = Elementwise(NumpyLayer(on_host.HostLauncher())).run(
        alone("cast", (dtype,), "float32"), [x]
    )
    np.testing.assert_array_equal(out[0], x.astype(np.float32))


@pytest.mark.parametrize("dtype", sorted(C_TYPES))
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1001])
def test_packs_leave_no_element_out_wherever_arrays_begin(dtype, start, n):
    """Kernels read 16 bytes at a time where all arrays are aligned, and the rest one by one."""
    kind = HALVES.get(dtype) or np.dtype(dtype)
    memory = np.random.default_rng(0).normal(0, 3, n + 33).astype(kind)
    skip = -(memory.ctypes.data // memory.itemsize) % (16 // memory.itemsize) + start
    x, out = memory[skip:][:n], np.full(n, 7).astype(kind)
    run = Elementwise(NumpyLayer(on_host.HostLauncher())).run
    run(alone("maximum", (dtype, dtype), dtype), [x, np.zeros((), kind)], out)
    assert (out == np.maximum(x, kind.type(0))).all()


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (3, 64), (40, 128)])
def test_the_size_of_a_grid_changes_no_result(grid, block):
    x = np.random.default_rng(0).normal(size=(37, 129))
    for name, inner in (("softmax_forward", 1), ("log_softmax_forward", 3)):
        rows, columns = (37, 129) if inner == 1 else (37 * 3, 43)
        results = []
        for shape in ((grid, block), (37, 256)):
            out = np.empty_like(x)
            launch("float64", name, *shape, out, x, I64(rows), I64(columns), I64(inner))
            results.append(out)
        np.testing.assert_allclose(*results, 1e-13)


def first_of_a_stable_sort(x, k, dim, largest):
    """By NumPy: the elements as numbers of their order, NaN the largest and zeros the same."""
    _, rank = np.unique(
        x.astype(np.float32) if x.dtype in HALVES.values() else x, return_inverse=True
    )
    rank = rank.reshape(x.shape)
    places = np.argsort(-rank if largest else rank, axis=dim, kind="stable")
    places = np.take(places, range(k), axis=dim)
    return np.take_along_axis(x, places, dim), places


def drawn(rng, shape, kind, how):
    """Numbers of all sizes, few different ones, or one, with both zeros, NaN and infinities."""
    n = math.prod(shape)
    if kind.kind in "iu":
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        limits = {"wide": (low, high), "ties": (low, low + 2), "equal": (high, high)}[how]
        return rng.integers(*limits, n, kind, endpoint=True).reshape(shape)
    made = {"wide": rng.normal(size=n), "ties": rng.integers(-1, 2, n), "equal": np.full(n, 0.0)}
    x = made[how].astype(kind)
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(kind)
    some = rng.random(n) < 0.1
    x[some] = rng.choice(odd if how != "equal" else odd[4:], some.sum())
    return x.reshape(shape)


def check_first(x, k, dim, largest):
    """By the kernels, against NumPy's sort: the same places, and bit by bit what is there."""
    launcher = on_host.HostLauncher()
    values, places = NumpyLayer(launcher).bound(indexing.KERNELS)["topk"](x, k, dim, largest)
    wanted, first = first_of_a_stable_sort(x, k, dim, largest)
    assert values.dtype == x.dtype and places.dtype == np.int64
    assert values.flags.c_contiguous and places.flags.c_contiguous
    np.testing.assert_array_equal(places, first)
    bits = np.dtype(f"u{x.itemsize}")
    np.testing.assert_array_equal(values.view(bits), np.ascontiguousarray(wanted).view(bits))
    return {name for _, name in launcher.launched}


TOGETHER = {"count_digits", "collect_first", "order_first"}


@pytest.mark.parametrize("how", ["wide", "ties", "equal"])
@pytest.mark.parametrize("dtype", sorted(KINDS))
def test_the_first_k_are_those_of_a_stable_sort(dtype, how, monkeypatch):
    rng, kind = np.random.default_rng(len(dtype)), KINDS[dtype]
    monkeypatch.setattr(indexing, "PER_BLOCK", 200)
    for columns in (1, 2, 31, 257, 1023, 2305):
        for k in sorted({1, min(7, columns), (columns + 1) // 2, columns}):
            largest, x = bool((columns + k) % 2), drawn(rng, (2, columns), kind, how)
            if k > 2048:  # of which two sorts would be more work than one of all
                assert not check_first(x, k, 1, largest) & {"select_many", "count_digits"}
                continue
            monkeypatch.setattr(indexing, "LONG_ROW", columns + 1)
            assert check_first(x, k, 1, largest) == {"select_many" if k > 256 else "select_few"}
            monkeypatch.setattr(indexing, "LONG_ROW", 1)
            assert check_first(x, k, 1, not largest) == TOGETHER


@pytest.mark.parametrize("how", ["wide", "ties", "equal"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8"])
@pytest.mark.parametrize("long", [1, 1 << 17])
def test_more_of_the_first_k_than_a_block_puts_in_order(dtype, how, long, monkeypatch):
    monkeypatch.setattr(indexing, "LONG_ROW", long)
    rng, kind = np.random.default_rng(3), KINDS[dtype]
    for shape, k in (((2, 4098), 2049), ((1, 20011), 5000)):
        names = check_first(drawn(rng, shape, kind, how), k, 1, bool(long & 1))
        assert names >= ({"count_digits", "collect_first"} if long == 1 else {"select_many"})
        assert "order_first" not in names


@pytest.mark.parametrize("seed", range(12))
def test_the_first_k_of_any_rows_wherever_they_lie(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    kinds = list(KINDS.values())
    for _ in range(6):
        kind, how = kinds[rng.integers(len(kinds))], str(rng.choice(["wide", "ties"]))
        rank, columns = int(rng.integers(1, 4)), int(np.exp(rng.uniform(0, 9)))
        dim = int(rng.integers(rank))
        shape = [columns if d == dim else int(rng.integers(1, 4)) for d in range(rank)]
        memory = drawn(rng, (math.prod(shape) * 2 + 3,), kind, how)
        start, step = int(rng.integers(4)), int(rng.integers(1, 3))
        x = memory[start:][: math.prod(shape) * step : step].reshape(shape)
        if rng.random() < 0.3:
            x = x[..., ::-1]
        monkeypatch.setattr(indexing, "LONG_ROW", int(rng.choice([1, 1 << 17])))
        monkeypatch.setattr(indexing, "PER_BLOCK", int(rng.choice([100, 1000])))
        check_first(x, int(rng.integers(columns + 1)), dim, bool(rng.integers(2)))


@pytest.mark.parametrize(("dtype", "how"), [("float32", "wide"), ("bfloat16", "ties")])
def test_the_first_k_of_a_million(dtype, how):
    x = drawn(np.random.default_rng(1), (1, 1_000_003), KINDS[dtype], how)
    assert check_first(x, 1000, 1, True) == TOGETHER
    assert check_first(x[0], 5000, 0, False) >= {"count_digits", "collect_first"}


def test_each_row_of_several_blocks_has_its_own_counts(monkeypatch):
    """Rows that need different digits: one by one they end after other passes."""
    monkeypatch.setattr(indexing, "LONG_ROW", 1)
    monkeypatch.setattr(indexing, "PER_BLOCK", 1000)
    rng = np.random.default_rng(2)
    rows = [drawn(rng, (5003,), np.dtype(np.float32), how) for how in ("wide", "ties", "equal")]
    x = np.stack([*rows, rows[0] * np.float32(1e-30), np.arange(5003, dtype=np.float32)])
    for k in (1, 255, 300, 2048, 2500):
        for largest in (False, True):
            assert check_first(x, k, 1, largest) >= {"count_digits", "collect_first"}


@pytest.mark.parametrize(
    ("shape", "k", "dim"),
    [((3, 5), 0, 1), ((0, 5), 3, 1), ((3, 0), 0, 1), ((4, 0, 2), 3, 0), ((0,), 0, 0)],
)
def test_nothing_is_launched_for_the_first_k_of_nothing(shape, k, dim):
    assert check_first(np.zeros(shape, np.float32), k, dim, True) == set()


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (1, 1024), (3, 64), (9, 128)])
def test_the_size_of_a_grid_changes_no_selection(grid, block, monkeypatch):
    """One block for several rows uses its shared memory again."""
    monkeypatch.setattr(indexing, "rows_for", lambda rows, columns: (grid, block))
    rng = np.random.default_rng(4)
    for long in (1, 1 << 17):
        monkeypatch.setattr(indexing, "LONG_ROW", long)
        for k in (5, 300, 600):
            check_first(drawn(rng, (5, 1300), np.dtype(np.float32), "wide"), k, 1, True)
            check_first(drawn(rng, (5, 1300), np.dtype(np.int16), "ties"), k, 1, False)


def extremes(a, dim, index, src, largest):
    """One by one: a NaN beyond all, and -0 less than 0."""

    def rank(v):
        v = v.item() if v.dtype.kind in "iub" else float(v)
        beyond = math.isnan(v)
        order = 0 if beyond else v, 0 if isinstance(v, int) else math.copysign(1, v)
        return beyond, order if largest else (-order[0], -order[1])

    out = a.copy()
    for place in np.ndindex(index.shape):
        at = (*place[:dim], index[place], *place[dim + 1 :])
        if rank(src[place]) > rank(out[at]):
            out[at] = src[place]
    return out


def same_bits(found, wanted):
    """Whether two arrays are the same bit by bit, but for the bits of NaN."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    nan = wanted != wanted
    bits = np.dtype(f"u{found.itemsize}")
    np.testing.assert_array_equal(found != found, nan)
    np.testing.assert_array_equal(found.view(bits)[~nan], wanted.copy("C").view(bits)[~nan])


def check_extremes(a, dim, index, src):
    launcher = on_host.HostLauncher()
    kernel = partial(indexing.scatter_extremum, NumpyLayer(launcher))
    before = a.copy()
    for largest in (True, False):
        found = kernel(a, dim, index, src, largest)
        assert found.flags.c_contiguous and not np.shares_memory(found, a)
        same_bits(found, extremes(a, dim, index, src, largest))
        turned = np.flip(index, dim), np.flip(src, dim)
        same_bits(kernel(a, dim, turned[0], turned[1], largest), found)
    same_bits(a, before)
    return {name for _, name in launcher.launched}


ORDERED = {**KINDS, "bool": np.dtype(bool)}


@pytest.mark.parametrize("how", ["wide", "ties", "equal"])
@pytest.mark.parametrize("dtype", sorted(ORDERED))
def test_the_greatest_and_the_least_by_index_wherever_they_lie(dtype, how):
    rng, kind = np.random.default_rng(len(dtype)), ORDERED[dtype]

    def some(*shape):
        if kind.kind == "b":
            return rng.random(shape) < {"wide": 0.5, "ties": 0.1, "equal": 1.0}[how]
        return drawn(rng, shape, kind, how)

    for rank in (1, 2, 3):
        for dim in range(rank):
            sizes = rng.integers(1, 6, rank)
            counts = rng.integers(1, sizes + 1)  # may be fewer in other dimensions too
            for count in (1, 40):
                counts[dim] = count
                index = rng.integers(0, sizes[dim], counts)
                launched = check_extremes(some(*sizes), dim, index, some(*counts))
                assert launched == {"scatter_extremum_along"}
                whole = sizes.copy()
                whole[dim] = count
                index = rng.integers(0, sizes[dim], 2 * whole)[(slice(None, None, 2),) * rank]
                views = some(*sizes[::-1]).T, some(*whole[::-1]).T
                check_extremes(views[0], dim, index, views[1])
                check_extremes(views[0][..., ::-1], dim, index, views[1])


@pytest.mark.parametrize(
    ("shape", "counts", "dim"),
    [
        ((3, 5), (0, 5), 0),
        ((3, 5), (0, 2), 0),
        ((3, 5), (3, 0), 0),
        ((0, 5), (0, 5), 1),
        ((0,), (0,), 0),
    ],
)
def test_nothing_is_launched_for_the_greatest_of_nothing(shape, counts, dim):
    a = np.full(shape, -0.0, np.float16)
    assert check_extremes(a, dim, np.zeros(counts, np.int64), np.zeros(counts, np.float16)) == set()


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (3, 64), (7, 1024)])
def test_the_size_of_a_grid_changes_no_extremum(grid, block, monkeypatch):
    monkeypatch.setattr(indexing, "blocks_for", lambda n: (grid, block))
    rng = np.random.default_rng(5)
    for dtype in ("float64", "bfloat16", "int64"):
        a, src = (drawn(rng, (n, 3), KINDS[dtype], "ties") for n in (5, 700))
        check_extremes(a, 0, rng.integers(0, 5, (700, 3)), src)


@pytest.mark.parametrize("n", [0, 1, 4, 5, 1001])
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (7, 4), (2**64 - 1, 2**34 + 8)])
def test_philox_on_the_device_is_the_reference(n, seed, offset):
    wanted = [w for b in range((n + 3) // 4) for w in philox.block(seed, offset // 4 + b)][:n]
    by_value, by_memory = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
    launch("float32", "philox_words", 3, 32, by_value, U64(seed), U64(offset), None, I64(n))
    base = np.array([seed, offset - 4 if offset else 0], np.uint64)
    further = U64(4 if offset else 0)
    launch("float32", "philox_words", 3, 32, by_memory, U64(9), further, base, I64(n))
    assert by_value.tolist() == wanted == by_memory.tolist()


def test_a_barrier_that_not_all_threads_reach_is_found(tmp_path):
    source = 'extern "C" __global__ void fault() { if (threadIdx.x < 5) __syncthreads(); }'
    run = on_host.Library(source, ["fault"], tmp_path)
    with pytest.raises(RuntimeError, match="not all threads reach"):
        run("fault", 1, 32)


def test_structures_and_null_pointers_arrive(tmp_path):
    source = (
        "struct Two { double a; int b; };\n"
        'extern "C" __global__ void probe(double* out, Two two, const int* none)'
        " { if (threadIdx.x == 0) out[0] = two.a + two.b + (none ? 100 : 0); }"
    )
    two = np.zeros((), np.dtype([("a", np.float64), ("b", np.int32)], align=True))
    two["a"], two["b"] = 0.5, 3
    out = np.zeros(1)
    on_host.Library(source, ["probe"], tmp_path)("probe", 1, 32, out, Struct(two), None)
    assert out[0] == 3.5


@pytest.mark.slow
def test_kernels_stay_in_their_memory():
    """Every kernel once more under AddressSanitizer, which must be loaded before Python."""
    assert on_host.COMPILER is not None
    question = [on_host.COMPILER, "-print-file-name=libasan.so"]
    runtime = subprocess.run(question, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("the compiler has no libasan.so")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("asan_cases.py"))],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LD_PRELOAD": runtime,
            "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
            "FLAMBEAU_HOST_FLAGS": "-fsanitize=address -g",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
