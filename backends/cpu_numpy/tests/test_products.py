"""Large products are cut among threads, small ones and those of one thread are not."""

from __future__ import annotations

import os
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

import flambeau as fb
from flambeau_numpy import products, threads
from flambeau_numpy.products import multiply, product

rng = np.random.default_rng(0)


@pytest.fixture(params=[1, 2, 3])
def number(request, monkeypatch):
    """1, 2 or 3 threads, and parts of any size."""
    before = threads.get_num_threads()
    threads.set_num_threads(request.param)
    monkeypatch.setattr(products, "SERIAL", 0)
    monkeypatch.setattr(products, "SMALLEST", 1)
    yield request.param
    threads.set_num_threads(before)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((100, 30), (30, 20)),
        ((20, 30), (30, 100)),
        ((1, 5), (5, 1)),
        ((64, 1), (1, 64)),
        ((5, 0), (0, 4)),
        ((0, 5), (5, 4)),
        ((7, 8, 9), (7, 9, 10)),
        ((2, 40, 9), (2, 9, 10)),
        ((1, 4, 9), (6, 9, 33)),
        ((6, 4, 9), (1, 9, 33)),
        ((1, 2, 20, 9), (1, 2, 9, 100)),
        ((5, 1, 20, 9), (5, 2, 9, 3)),
        ((2, 20, 9), (12, 2, 9, 30)),
        ((2, 20, 9), (2, 2, 9, 30)),
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64, np.int64])
def test_parts_make_the_whole_product(number, a, b, kind) -> None:
    left, right = (rng.normal(size=shape, scale=9).astype(kind) for shape in (a, b))
    wanted = left @ right
    for x, y in (
        (left, right),
        (np.asfortranarray(left), right),
        (left, np.ascontiguousarray(right.swapaxes(-1, -2)).swapaxes(-1, -2)),
        (np.repeat(left, 2, -1)[..., ::2], right),
    ):
        out = np.full(wanted.shape, 7, kind)
        assert multiply(x, y, out) is out
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-3)


def test_parts_are_written_into_views(number) -> None:
    a, b = rng.normal(size=(50, 20)), rng.normal(size=(20, 60))
    large = np.zeros((100, 90))
    multiply(a, b, large[10:60, 5:65])
    np.testing.assert_allclose(large[10:60, 5:65], a @ b)
    assert not large[:10].any() and not large[60:].any()
    assert not large[:, :5].any() and not large[:, 65:].any()
    np.testing.assert_allclose(product(a, b), a @ b)


def test_ranges_are_nearly_equal_and_cover_everything() -> None:
    for length in (1, 15, 16, 17, 100, 1000):
        for count in (1, 2, 3, 8):
            ranges = products._cut(length, count, 16)
            assert len(ranges) <= count
            assert [i for a, b in ranges for i in range(a, b)] == list(range(length))
            assert max(b - a for a, b in ranges) <= -(-length // count) + 16


def test_blas_has_its_threads_back_afterwards_also_after_an_error(number) -> None:
    a = rng.normal(size=(300, 300))
    before = threads.get_num_threads()
    multiply(a, a, np.empty_like(a))
    assert threads.get_num_threads() == before
    with pytest.raises(ValueError, match="matmul"):
        multiply(a, a[:200], np.empty_like(a))
    assert threads.get_num_threads() == before and products._one_thread.depth == 0


def test_nan_in_a_part_warns_nobody(number) -> None:
    a = np.full((64, 64), np.inf)
    a[:, ::2] = -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fb.from_numpy(a) @ fb.from_numpy(a)
    assert found.isnan().all()


def test_callers_in_several_threads_do_not_disturb_each_other(number) -> None:
    wrong: list[int] = []
    before = threads.get_num_threads()

    def work(seed: int) -> None:
        own = np.random.default_rng(seed)
        for _ in range(20):
            a, b = own.normal(size=(60, 50)), own.normal(size=(50, 70))
            if not np.allclose(multiply(a, b, np.empty((60, 70))), a @ b):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert threads.get_num_threads() == before and products._one_thread.depth == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_within_a_product_multiplies(number) -> None:
    a = rng.normal(size=(200, 200))
    wanted = product(a, a)
    products._one_thread.depth += 1
    with products._one_thread.lock:
        child = os.fork()
        if not child:
            good = False
            try:
                good = np.allclose(product(a, a), wanted)
            finally:
                os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("number", [2, 3], indirect=True)
def test_a_part_whose_thread_is_busy_is_computed_by_the_caller(number) -> None:
    a = rng.normal(size=(100, 50))
    multiply(a, a.T, np.empty((100, 100)))  # the threads exist
    let_go, begun = threading.Event(), threading.Semaphore(0)

    def wait(*_: object) -> None:
        begun.release()
        let_go.wait(60)

    workers = products._workers
    for _ in range(workers):
        products._parts_to_do.put(products._Share((wait, (a, a, a))))
    try:
        assert workers >= number - 1
        assert all(begun.acquire(timeout=60) for _ in range(workers))
        np.testing.assert_allclose(multiply(a, a.T, np.empty((100, 100))), a @ a.T)
    finally:
        let_go.set()


@pytest.mark.parametrize("number", [3], indirect=True)
def test_nobody_writes_to_a_part_once_a_product_has_failed(number) -> None:
    a, writing, written = rng.normal(size=(100, 50)), threading.Event(), []

    def run(x: Any, y: Any, out: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            assert writing.wait(60)
            raise KeyboardInterrupt
        writing.set()
        time.sleep(0.05)
        written.append(len(x))

    with pytest.raises(KeyboardInterrupt):
        products._run(run, products._parts(a, a.T, np.empty((100, 100)), 3, True))
    known = len(written)
    time.sleep(0.2)
    assert len(written) == known > 0
