"""The caching allocator: memory is reused, never while somebody sees it, and within bounds."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import flambeau as fb
from flambeau_numpy import allocator
from flambeau_numpy.allocator import empty, empty_cache, is_pooled, statistics, zeros

LARGE = (512, 300)
SIZE = 512 * 300 * 4


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def kept() -> int:
    """Bytes in free blocks."""
    found = statistics()
    return found.reserved - found.allocated


@pytest.fixture(autouse=True, params=["its own", "lent by a package"])
def fresh_pool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both kinds of pools, where a package is installed that lends memory."""
    if request.param == "its own" or "turn" in request.node.name:
        fb.ones(1)  # the device, whose packages would replace it otherwise
        monkeypatch.setattr(
            allocator, "_pool", allocator._Pool(allocator._default_limit(), enabled=True)
        )
    empty_cache()
    yield
    empty_cache()


def test_a_number_before_a_large_tensor_leaves_the_result_to_the_pool() -> None:
    x = fb.ones(LARGE)
    assert all(is_pooled(made._a) for made in (x * 0.5, 0.5 * x, 2 * x, 1 + x))


def test_small_arrays_bypass_the_pool() -> None:
    assert not is_pooled(empty((10, 10), np.float64))
    assert is_pooled(empty(LARGE, np.float32))


def test_memory_is_reused_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        a = empty(LARGE, np.float32)
        first = address(a)
        del a
        b = empty(LARGE, np.float32)
        assert address(b) == first
        assert b.flags.c_contiguous and b.flags.writeable and b.dtype == np.float32
        assert type(b) is np.ndarray
    finally:
        gc.enable()


@pytest.mark.parametrize("shape", [(200_000,), (1, 200_000, 1), (50, 4, 1000), (1,) * 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64", ">f4"])
def test_arrays_of_the_pool_are_those_of_numpy(shape: tuple[int, ...], dtype: str) -> None:
    """However they are made: the pool's own way may leave some to NumPy."""
    before = statistics().allocated
    plain = np.zeros(shape, dtype)
    made = allocator._pool.array(plain.shape, plain.dtype)
    if made is None:
        made = np.ndarray(plain.shape, plain.dtype, allocator._pool.lease(max(8, plain.nbytes)))
    assert type(made) is np.ndarray and made.dtype is plain.dtype
    assert made.shape == plain.shape and made.strides == plain.strides
    for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "ALIGNED", "WRITEABLE"):
        assert made.flags[flag] == plain.flags[flag]
    assert is_pooled(made) and not made.flags.owndata
    made[...] = 1
    view = made.reshape(-1)[-1:]
    del made
    empty(shape, dtype).fill(0)
    assert view[0] == 1 and statistics().allocated > before
    del view
    assert statistics().allocated == before


@pytest.mark.parametrize("shape", [(0, 5), (-1, 8), (1 << 40, 1 << 40), ("8",), (8.0,), [8, 8]])
def test_the_pool_makes_no_arrays_of_odd_shapes(shape: object) -> None:
    before = statistics().allocated
    assert allocator._pool.array(shape, np.dtype(np.float32)) is None  # type: ignore[arg-type]
    assert statistics().allocated == before


@pytest.mark.parametrize("dtype", [np.dtype("O"), np.dtype("f4,f4"), np.dtype("V0"), "f4", None])
def test_the_pool_makes_no_arrays_of_odd_items(dtype: object) -> None:
    before = statistics().allocated
    assert allocator._pool.array((9000, 9), dtype) is None  # type: ignore[arg-type]
    assert statistics().allocated == before


def test_every_view_keeps_the_memory() -> None:
    a = empty(LARGE, np.float32)
    a.fill(1)
    views = [
        a[3:],
        a.reshape(-1)[5:],
        a.T,
        a.view(np.int32),
        np.ndarray(3, np.uint8, a),
        a[0][None],
    ]
    copies = [v.copy() for v in views]
    del a
    while views:
        other = empty(LARGE, np.float32)
        other.fill(2)
        np.testing.assert_array_equal(views[-1], copies[-1])
        assert kept() == 0
        views.pop()
        copies.pop()
        del other
        empty_cache()


def test_memory_of_one_size_serves_every_dtype_and_shape() -> None:
    a = empty(LARGE, np.float32)
    first = address(a)
    del a
    b = empty((SIZE // 8,), np.complex64)
    assert address(b) == first


def test_zeros_are_zeros_in_recycled_memory() -> None:
    for _ in range(3):
        a = zeros(LARGE, np.float32)
        assert not a.any()
        a.fill(9)
        del a


def test_a_block_wastes_at_most_an_eighth() -> None:
    for size in (allocator.THRESHOLD, 10**6, 2**20, 2**20 + 1, 3 * 10**7 + 1):
        assert size <= allocator._bucket(size) <= size * 9 / 8 + 1


def test_the_pool_keeps_within_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator._pool, "limit", 3 * SIZE)
    arrays = [empty(LARGE, np.float32) for _ in range(10)]
    del arrays
    assert 0 < kept() <= 3 * SIZE


def test_where_the_pool_is_full_the_sizes_unused_for_longest_go_first(monkeypatch) -> None:
    monkeypatch.setattr(allocator._pool, "limit", 3 * SIZE)
    sizes = [(SIZE + i * (SIZE // 4),) for i in range(4)]
    for size in sizes:
        empty(size, np.uint8)
    hits = statistics().hits
    empty(sizes[-1], np.uint8)
    assert statistics().hits == hits + 1, "the size used last was dropped"
    empty(sizes[0], np.uint8)
    assert statistics().hits == hits + 1, "the size unused for longest was kept"


def test_an_array_beyond_the_limit_goes_back_to_the_system(monkeypatch) -> None:
    monkeypatch.setattr(allocator._pool, "limit", SIZE // 2)
    empty(LARGE, np.float32)
    assert kept() == 0


def test_statistics_count_hits_misses_and_bytes() -> None:
    allocator.reset_peak(allocated=True, reserved=True)
    before = statistics()
    a = empty(LARGE, np.float32)
    one = statistics()
    size = one.allocated - before.allocated
    assert one.misses == before.misses + 1 and SIZE <= size <= SIZE * 9 // 8
    assert kept() == 0
    b = empty(LARGE, np.float32)
    del a, b
    assert statistics().allocated == before.allocated and kept() == 2 * size
    a = empty(LARGE, np.float32)
    now = statistics()
    assert now.hits == before.hits + 1 and now.misses == before.misses + 2
    assert now.max_allocated == before.allocated + 2 * size
    del a
    empty_cache()
    assert kept() == 0
    assert statistics().max_reserved == before.reserved + 2 * size
    allocator.reset_peak(allocated=True, reserved=False)
    assert statistics().max_allocated == before.allocated
    assert statistics().max_reserved == before.reserved + 2 * size
    allocator.reset_peak(allocated=False, reserved=True)
    assert statistics().max_reserved == statistics().reserved


def test_memory_begins_at_a_cache_line_also_when_it_is_reused() -> None:
    for _ in range(3):
        arrays = [empty((n,), np.uint8) for n in range(SIZE, SIZE + 5)]
        assert all(address(a) % allocator.ALIGNMENT == 0 for a in arrays)
        del arrays


def test_when_memory_is_out_the_pool_is_emptied_and_it_is_tried_again(monkeypatch) -> None:
    empty(LARGE, np.float32)
    assert kept() > 0
    ordinary, failures = allocator._plain, [MemoryError]

    def plain(*arguments: object) -> np.ndarray:
        if failures:
            raise failures.pop()
        return ordinary(*arguments)

    monkeypatch.setattr(allocator, "_plain", plain)
    a = empty((2 * SIZE,), np.uint8)
    assert is_pooled(a) and kept() == 0
    failures += [MemoryError, MemoryError]
    with pytest.raises(MemoryError):
        empty((3 * SIZE,), np.uint8)


def test_switched_off_the_pool_keeps_nothing_and_what_comes_back_is_freed() -> None:
    lent = empty(LARGE, np.float32)
    empty((2 * SIZE,), np.uint8)
    assert kept() > 0
    try:
        allocator.set_enabled(False)
        assert not allocator.is_enabled() and kept() == 0
        assert not is_pooled(empty(LARGE, np.float32)) and not is_pooled(zeros(LARGE, np.float32))
        allocated = statistics().allocated
        del lent
        assert kept() == 0 and statistics().allocated < allocated
        assert statistics().limit == 0
    finally:
        allocator.set_enabled(True)
    assert is_pooled(empty(LARGE, np.float32)) and statistics().limit > 0


def test_a_buffer_that_is_seen_keeps_the_memory() -> None:
    a = empty(LARGE, np.float32)
    a.fill(7)
    seen, lease = memoryview(a).cast("B"), a.base
    first = address(a)
    del a
    assert address(empty(LARGE, np.float32)) != first and set(seen) == set(np.float32(7).tobytes())
    del seen
    assert kept() >= SIZE  # of the other
    del lease
    assert kept() >= 2 * SIZE


def test_what_no_memory_can_hold_is_refused_and_nothing_is_counted() -> None:
    gc.collect()  # what tests before this left in cycles would come back meanwhile
    before = statistics()
    for size in (1 << 61, (1 << 62) + 1, 1 << 63, 1 << 100):
        with pytest.raises(MemoryError, match="out of memory"):
            empty((size,), np.uint8)
    assert statistics() == before


def test_a_package_lends_memory_only_where_none_was_lent_before(monkeypatch) -> None:
    class Lender(allocator._Pool):
        def __init__(self, limit: int, enabled: bool, make: object) -> None:
            super().__init__(limit, enabled)

    fresh = allocator._Pool(5, enabled=True)
    monkeypatch.setattr(allocator, "_pool", fresh)
    monkeypatch.setattr(allocator, "_leases", set(allocator._leases))
    kept = empty(LARGE, np.float32)
    allocator.offer_pool(Lender, bytes)
    assert allocator._pool is fresh and is_pooled(kept)
    monkeypatch.setattr(allocator, "_pool", allocator._Pool(5, enabled=False))
    allocator.offer_pool(Lender, bytes)
    assert type(allocator._pool) is Lender
    assert (allocator._pool.limit, allocator._pool.enabled) == (5, False)
    lending = allocator._pool
    allocator.offer_pool(Lender, bytes)
    assert allocator._pool is lending


@contextmanager
def turn_taken() -> Iterator[None]:
    """As somebody has the turn to change the pool."""
    del allocator._pool.turn[0]
    try:
        yield
    finally:
        allocator._pool.turn = [None]


def test_a_lease_that_ends_while_the_turn_is_taken_does_not_deadlock() -> None:
    a = empty(LARGE, np.float32)
    with turn_taken():
        del a
        b = empty(LARGE, np.float32)
    assert b.shape == LARGE
    living = statistics().allocated  # what happened while the turn was taken is counted
    assert kept() >= SIZE
    del b
    assert statistics().allocated < living


def test_threads_never_share_memory_and_no_byte_is_lost(monkeypatch) -> None:
    monkeypatch.setattr(allocator._pool, "limit", 4 * SIZE)  # so that blocks are dropped as well
    errors: list[str] = []
    gc.collect()
    before = statistics().allocated

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        held: list[tuple[np.ndarray, float]] = []
        for i in range(300):
            a = empty((int(rng.integers(120, 260)), 300), np.float32)
            mark = float(seed * 1000 + i)
            a.fill(mark)
            held.append((a[rng.integers(0, 100) :], mark))
            if i % 7 == 0:
                cycle: list[object] = [a]
                cycle.append(cycle)  # the collector ends its lease, anywhere
            if i % 50 == seed:
                empty_cache()
            if len(held) > 5:
                view, expected = held.pop(int(rng.integers(0, 5)))
                if not (view == expected).all():
                    errors.append(f"thread {seed}: step {i}")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    gc.collect()
    assert statistics().allocated == before
    assert kept() <= 4 * SIZE
    if isinstance(allocator._pool, allocator._Pool):
        assert kept() == sum(size * len(free) for size, free in allocator._pool.free.items())
    empty_cache()
    assert kept() == 0


class Stopped(BaseException):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
def test_the_pool_serves_and_counts_after_interrupts() -> None:
    def stop(*_: object) -> None:
        raise Stopped

    gc.collect()
    before, random = statistics().allocated, np.random.default_rng(0)
    previous = signal.signal(signal.SIGALRM, stop)
    stopped = 0
    try:
        while stopped < 2000:
            held = []
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 4e-4))
                try:
                    while True:
                        held.append(empty(LARGE, np.float32))
                        held[random.integers(-len(held), len(held)) :] = []
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Stopped:
                stopped += 1
    finally:
        signal.signal(signal.SIGALRM, previous)
    del held
    assert statistics().allocated == before
    if isinstance(allocator._pool, allocator._Pool):
        assert allocator._pool.turn == [None] and not allocator._pool.notes
    a = empty(LARGE, np.float32)
    first = address(a)
    del a
    assert address(empty(LARGE, np.float32)) == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_while_the_turn_is_taken_has_a_working_pool() -> None:
    a = empty(LARGE, np.float32)
    a.fill(3)
    with turn_taken():
        child = os.fork()
        if not child:
            good = False
            try:
                b = empty(LARGE, np.float32)
                first = address(b)
                del b
                good = address(empty(LARGE, np.float32)) == first and bool((a == 3).all())
                empty_cache()
            finally:
                os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_begins_without_free_blocks_and_keeps_what_is_lent() -> None:
    a = empty(LARGE, np.float32)
    a.fill(3)
    empty((2 * SIZE,), np.uint8)
    assert kept() > 0
    child = os.fork()
    if not child:
        good = False
        try:
            good = kept() == 0 and bool((a == 3).all())
            del a
            good = good and kept() >= SIZE
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept() > 0 and (a == 3).all()


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_environment_switches_the_pool(value: str) -> None:
    program = (
        "from flambeau_numpy.allocator import _pool, empty, is_pooled;"
        "a = empty((1000, 1000), 'f4'); print(is_pooled(a), _pool.limit >> 20)"
    )
    settings = {"FLAMBEAU_CPU_CACHE": value, "FLAMBEAU_CPU_CACHE_MB": "7"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **settings},
    )
    assert done.stdout.split() == [str(value == "1"), "7"]


def test_a_limit_that_is_no_number_is_refused_by_name(monkeypatch) -> None:
    monkeypatch.setenv(allocator.LIMIT_MB, "2G")
    with pytest.raises(ValueError, match="FLAMBEAU_CPU_CACHE_MB must be a number of megabytes"):
        allocator._default_limit()


STALE = """
import sys
import warnings
import numpy as np
from flambeau_numpy import allocator

def empty(shape, dtype):
    made = np.empty(shape, dtype)
    made.reshape(-1).view(np.uint8).fill(int(sys.argv[1]))
    return made

def zeros(shape, dtype):
    made = empty(shape, dtype)
    made.fill(0)
    return made

# Before the kernels import them by name; the threshold lets arrays of every size come here.
allocator.empty, allocator.zeros, allocator.THRESHOLD = empty, zeros, 0

import hashlib
import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.testing.samples import DTYPES, SAMPLES, realise

warnings.simplefilter("ignore")
cpu = bind("cpu")

def make(values, shape, dtype):
    return fb.tensor(values, dtype=dtype).reshape(shape)._a

def text(value):
    if isinstance(value, (list, tuple)):
        return b"".join(map(text, value))
    return np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else b""

for op, samples in SAMPLES.items():
    found = hashlib.sha256()
    for dtype in DTYPES[op]:
        for sample in samples:
            generator = fb.Generator().manual_seed(0)
            arguments = realise(sample.args, make, dtype, generator=generator)
            try:
                found.update(text(getattr(cpu, op)(*arguments)))
            except (RuntimeError, TypeError, ValueError, NotImplementedError):
                continue  # not for this dtype
    print(op, found.hexdigest())
"""


def test_no_op_shows_what_its_memory_held_before() -> None:
    def run(filling: int) -> list[str]:
        command = [sys.executable, "-c", STALE, str(filling)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    found, again = run(0), run(255)
    assert len(found) > 200
    assert [line.split()[0] for line in found] == [line.split()[0] for line in again]
    assert not [a.split()[0] for a, b in zip(found, again, strict=True) if a != b]
