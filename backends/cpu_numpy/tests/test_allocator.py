"""The caching allocator: memory is reused, never while somebody sees it, and within bounds."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from flambeau_numpy import allocator
from flambeau_numpy.allocator import empty, empty_cache, is_pooled, memory_stats, zeros

LARGE = (512, 300)
SIZE = 512 * 300 * 4


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


@pytest.fixture(autouse=True)
def fresh_pool() -> Iterator[None]:
    empty_cache()
    yield
    empty_cache()


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
        assert memory_stats()["cached_bytes"] == 0
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
    assert 0 < memory_stats()["cached_bytes"] <= 3 * SIZE


def test_statistics_count_hits_misses_and_bytes() -> None:
    before = memory_stats()
    a = empty(LARGE, np.float32)
    assert memory_stats()["misses"] == before["misses"] + 1
    assert memory_stats()["cached_bytes"] == 0
    del a
    assert SIZE <= memory_stats()["cached_bytes"] <= SIZE * 9 // 8
    a = empty(LARGE, np.float32)
    assert memory_stats()["hits"] == before["hits"] + 1
    del a
    empty_cache()
    assert memory_stats()["cached_bytes"] == 0


def test_a_lease_that_ends_inside_the_pool_does_not_deadlock() -> None:
    a = empty(LARGE, np.float32)
    with allocator._pool.lock:
        del a
        b = empty(LARGE, np.float32)
    assert b.shape == LARGE


def test_threads_never_share_memory() -> None:
    errors: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        kept: list[tuple[np.ndarray, float]] = []
        for i in range(150):
            a = empty((int(rng.integers(200, 260)), 300), np.float32)
            mark = float(seed * 1000 + i)
            a.fill(mark)
            kept.append((a[rng.integers(0, 100) :], mark))
            if len(kept) > 5:
                view, expected = kept.pop(int(rng.integers(0, 5)))
                if not (view == expected).all():
                    errors.append(f"thread {seed}: step {i}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_environment_switches_the_pool(value: str) -> None:
    program = (
        "from flambeau_numpy.allocator import empty, is_pooled, memory_stats;"
        "a = empty((1000, 1000), 'f4'); print(is_pooled(a), memory_stats()['limit_bytes'] >> 20)"
    )
    settings = {"FLAMBEAU_CPU_CACHE": value, "FLAMBEAU_CPU_CACHE_MB": "7"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **settings},
    )
    assert done.stdout.split() == [str(value == "1"), "7"]
