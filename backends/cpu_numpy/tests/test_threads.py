"""One number of threads governs all of the CPU; idle threads sleep; forked children have one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import flambeau as fb
from flambeau.utils.data import DataLoader, Dataset
from flambeau_numpy import threads

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def program(text: str, **variables: str) -> str:
    """What a new interpreter prints, whose environment says nothing of threads but `variables`."""
    silent = (*threads.COUNTS, *threads.WAITING, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    environment = {k: v for k, v in os.environ.items() if k not in silent}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)} | variables
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def two_threads():
    before = fb.get_num_threads()
    fb.set_num_threads(2)
    yield
    fb.set_num_threads(before)


ALL = """
import flambeau as fb, threadpoolctl
fb.ones(1) + 1
def counts():
    blas = {l["num_threads"] for l in threadpoolctl.threadpool_info() if l["user_api"] == "blas"}
    from flambeau_numpy.threads import followers
    try:
        from flambeau_native.extension import native
    except ImportError:
        native = None
    assert native is None or "flambeau-native" in followers
    return sorted(blas | {fb.get_num_threads()} | ({native.get_threads()} if native else set()))
before = counts()
fb.set_num_threads(%s)
print(before, counts())
"""


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
def test_every_pool_begins_with_one_number_and_follows(variable) -> None:
    # OpenBLAS has no more threads at the start than there are processors.
    assert program(ALL % 2, **{variable: "1"}) == "[1] [2]"
    assert program(ALL % 1) == f"[{threads.processors()}] [1]"


def test_the_number_at_the_start_is_read_as_openblas_does(monkeypatch) -> None:
    for name in threads.COUNTS:
        monkeypatch.delenv(name, raising=False)
    assert threads.at_start() == threads.processors()
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert threads.at_start() == 3
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    assert threads.at_start() == 5
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "many")
    assert threads.at_start() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "0")
    assert threads.at_start() == threads.processors()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "max 100000"}, 1 << 20),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 1 << 20),
        ({}, 1 << 20),
    ],
)
def test_a_containers_quota_bounds_the_processors(tmp_path: Path, files, expected) -> None:
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    assert threads._quota(tmp_path) == expected


def test_who_follows_is_told_at_once_and_at_every_change(monkeypatch, two_threads) -> None:
    told: list[int] = []
    monkeypatch.setattr(threads, "followers", {})
    threads.follow("somebody", told.append)
    threads.set_num_threads(1)
    threads.set_num_threads(2)
    assert told == [2, 1, 2]


def test_libraries_are_loaded_so_that_idle_threads_sleep(monkeypatch) -> None:
    for name in ("OPENBLAS_THREAD_TIMEOUT", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with suppress(KeyError), threads.sleeping_when_idle():
        assert {name: os.environ[name] for name in threads.WAITING} == threads.WAITING
        raise KeyError
    assert dict(os.environ) == before


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"])
def test_what_the_user_says_of_waiting_stays(monkeypatch, name) -> None:
    for other in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "active")
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "20")
    before = dict(os.environ)
    with threads.sleeping_when_idle():
        assert dict(os.environ) == before
    assert dict(os.environ) == before


IDLE = """
import os, time
import flambeau as fb
fb.set_num_threads(2)
x, y = fb.rand(600, 600), fb.rand(1_000_000)
spent = slept = 0.0
for _ in range(30):
    x @ x
    y.sigmoid()
    cpu, wall = time.process_time(), time.perf_counter()
    time.sleep(0.01)
    spent += time.process_time() - cpu
    slept += time.perf_counter() - wall
print(spent / slept)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems' libraries have other variables")
def test_idle_threads_take_no_time() -> None:
    assert float(program(IDLE)) < 0.1


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_one_thread_for_good_and_computes(two_threads) -> None:
    x = np.random.default_rng(0).random((600, 600), np.float32)
    x = fb.from_numpy(x / 600)
    wanted = (x @ x).softmax(1)  # the pools exist now
    child = os.fork()
    if not child:
        good = False
        try:
            fb.set_num_threads(4)
            found = (x @ x).softmax(1)
            found_in = [each for each in threadpool_info() if each["user_api"] == "blas"]
            blas = {each["num_threads"] for each in found_in} - {None}
            good = fb.get_num_threads() == 1 and blas == {1} and fb.allclose(found, wanted)
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert fb.get_num_threads() == 2


CHILD = """
import ctypes, os, signal
import flambeau as fb
from threadpoolctl import ThreadpoolController

x = fb.rand(300, 300, dtype=fb.float64)
%s
x @ x, fb.linalg.inv(x)
child = os.fork()
if not child:
    signal.alarm(60)
    fb.set_num_threads(3)
    y = x @ x, x @ x[0], fb.linalg.inv(x)
    found = ThreadpoolController().select(internal_api="openblas").lib_controllers
    names = "blas_server_avail", "blas_cpu_number"
    states = {tuple(ctypes.c_int.in_dll(x.dynlib, name).value for name in names) for x in found}
    os._exit(10 if states == {(0, 1)} else 11 if states else 12)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@needs_fork
@pytest.mark.skipif(sys.platform != "linux", reason="other wheels of NumPy have other libraries")
@pytest.mark.parametrize("before", ["", "fb.set_num_threads(2)"])
def test_a_child_asks_openblas_for_no_thread_and_for_no_lock_of_its_pool(before) -> None:
    # Its parent's pool ended with the fork, and a thread of the parent may hold the lock.
    found = program(CHILD % before, OPENBLAS_NUM_THREADS="2")
    if found == "12":
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    assert found == "10"


def test_any_thread_sets_the_number_of_threads(two_threads) -> None:
    for count in (1, 3, 2):
        worker = threading.Thread(target=fb.set_num_threads, args=(count,))
        worker.start()
        worker.join()
        blas = {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}
        assert fb.get_num_threads() == count
        assert blas == {count}


class Busy(Dataset):
    """Items that every pool of threads takes part in."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> fb.Tensor:
        x = fb.full((500, 500), float(index))
        y = (x @ x).softmax(1).sum() + fb.rand(300_000).sigmoid().sum() * 0
        return fb.stack([y, fb.tensor(float(fb.get_num_threads()))])


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_workers_of_a_data_loader_have_one_thread_and_do_not_hang(two_threads, context) -> None:
    if context == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    Busy()[1]  # the parent's pools exist now
    loader = DataLoader(Busy(), 2, num_workers=2, multiprocessing_context=context, timeout=60)
    found = fb.cat(list(loader))
    assert found[:, 1].tolist() == [1.0] * 6
    assert fb.allclose(found[:, 0], fb.full((6,), 500.0))
    assert fb.get_num_threads() == 2
