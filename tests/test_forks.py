"""Forked children: no lock, no import and no pool of threads of the parent stops them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import flambeau as fb
from flambeau.plugin import forks, make_lock

needs_fork = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]

UNDER_LOAD = """
import importlib, os, signal, sys, threading, time
import flambeau as fb
from flambeau import nn

fb.set_num_threads(2)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 300))
shared, images = fb.rand(300, 300, requires_grad=True), fb.rand(16, 3, 8, 8)
optimiser = fb.optim.Adam(model.parameters())
parent, ready, stop = os.getpid(), threading.Barrier(4), threading.Event()


def step():
    rows = model(fb.dropout(images, 0.1, True))
    loss = (rows @ shared).softmax(1).sum() + fb.rand(300, 300).mul(shared).sum()
    loss.backward()


def compute():
    step()
    ready.wait()
    while not stop.is_set():
        step()
        fb.manual_seed(1)


threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads:
    thread.start()
ready.wait()
end, hung, forks = time.monotonic() + float(sys.argv[2]), 0, 0
while forks < int(sys.argv[1]) and time.monotonic() < end:
    forks += 1
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            step()
            optimiser.step()
            fb.fft.fft(images)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        hung += 1
        print("child", forks, "ended with", status, flush=True)
stop.set()
for thread in threads:
    thread.join()
print(forks, hung)
"""

LATE_CHILD = """
import ctypes, os, signal, sys
from ctypes.util import find_library

gomp, c = ctypes.CDLL("libgomp.so.1"), ctypes.CDLL(None)
gomp.GOMP_parallel(ctypes.cast(c.abs, ctypes.c_void_p), None, 2, 0)  # a pool of two threads
child = os.fork()
if not child:
    signal.alarm(30)
    import flambeau as fb

    fb.set_num_threads(2)
    found = fb.conv2d(fb.ones(4, 8, 32, 32), fb.ones(8, 8, 3, 3))
    os._exit(0 if fb.equal(found, fb.full((4, 8, 30, 30), 72.0)) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

BACKWARD = """
import sys
import flambeau as fb
from flambeau import nn

layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5), nn.LSTM(5, 5)
loss = nn.Sequential(*layers[:4])(fb.rand(2, 3, 8, 8)).sum() + layers[4](fb.rand(2, 5))[0].sum()
wave = fb.rand(3, dtype=fb.complex64, requires_grad=True)
table = nn.Embedding(5, 3, sparse=True)
rows = table(fb.tensor([1, 2])).sum() + table(fb.tensor([1])).sum()
losses = loss, (wave * wave).abs().sum(), rows
before = set(sys.modules)
for loss in losses:
    loss.backward()
print(*sorted(set(sys.modules) - before))
"""


def program(text: str, *arguments: str) -> str:
    # Forks of processes with threads are what is tested; Python 3.12 and later warn of them.
    quiet = "-Wignore:This process:DeprecationWarning"
    child = subprocess.run(
        [sys.executable, quiet, "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-1000:] + child.stderr[-3000:]
    assert not child.stderr
    return child.stdout.strip()


def answer(compute) -> int:
    """The exit status of a forked child that calls `compute`, at most a minute later."""
    child = os.fork()
    if not child:
        status = 1
        try:
            compute()
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def use_everything() -> None:
    x = fb.rand(3, 3, requires_grad=True)
    (x @ x).sum().backward()
    fb.conv2d(fb.rand(1, 1, 9, 9), fb.rand(1, 1, 3, 3))
    fb.manual_seed(0)
    fb.zeros(2, device="ref").sum()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 0.05)


class Holder:
    """A thread that holds locks during a block."""

    def __init__(self, locks):
        self.locks, self.taken, self.done = locks, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)

    def hold(self):
        for lock in self.locks:
            lock.acquire()
        self.taken.set()
        self.done.wait()
        for lock in self.locks:
            lock.release()

    def __enter__(self):
        self.thread.start()
        self.taken.wait()

    def __exit__(self, *exc):
        self.done.set()
        self.thread.join()


class TestLocks:
    pytestmark = needs_fork

    def test_a_child_computes_though_every_lock_is_taken(self, impatient):
        use_everything()
        locks = list(forks._locks)
        assert len(locks) > 4
        with Holder(locks):
            assert answer(use_everything) == 0
        assert answer(use_everything) == 0

    def test_what_a_lock_guards_is_whole_in_the_child(self):
        lock, pair = make_lock(), [0, 0]
        stop = threading.Event()

        def change():
            while not stop.is_set():
                with lock:
                    pair[0] += 1
                    time.sleep(0.002)
                    pair[1] += 1
                time.sleep(0.001)  # locks are not fair: who forks would never get it, by bad luck

        def look():
            with lock:
                assert pair[0] == pair[1]

        thread = threading.Thread(target=change)
        thread.start()
        try:
            assert [answer(look) for _ in range(10)] == [0] * 10
        finally:
            stop.set()
            thread.join()

    def test_who_forks_keeps_what_it_holds(self):
        lock = make_lock()
        with lock:
            assert answer(lock.release) == 0
            taken = []
            thread = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
            thread.start()
            thread.join()
        assert taken == [False]
        assert lock.acquire(blocking=False)
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()


OWN_HOOKS = {  # modules whose locks are made anew in a child
    "backends/cpu_numpy/src/flambeau_numpy/products.py",
}
NOT_IN_CHILDREN = {  # CUDA itself does not work in a forked child; a store refuses
    "backends/cuda_cupy/src/flambeau_cupy/fusion/expressions.py",
    "backends/cuda_cupy/src/flambeau_cupy/layer.py",
    "core/src/flambeau/distributed/_tcp_store.py",
}
ENDS_WITH_ITS_CALL = {
    "core/src/flambeau/utils/cpp_extension/_compiling.py",
}


def test_locks_are_those_that_children_find_free():
    root = Path(__file__).resolve().parents[1]
    made = re.compile(r"\b(Lock|RLock|Condition|Semaphore|ThreadPoolExecutor)\(|@cached_property")
    found = {
        path.relative_to(root).as_posix()
        for folder in ("core/src", "nn/src", "backends")
        for path in (root / folder).rglob("*.py")
        if "/src/" in path.as_posix() and path.name != "forks.py" and made.search(path.read_text())
    }
    assert found == OWN_HOOKS | NOT_IN_CHILDREN | ENDS_WITH_ITS_CALL


class TestImports:
    pytestmark = needs_fork

    @pytest.fixture
    def slow(self, tmp_path, monkeypatch):
        """A thread that is importing a module, which takes a while."""
        (tmp_path / "flambeau_slow.py").write_text("import time\ntime.sleep(0.3)\nvalue = 1\n")
        monkeypatch.syspath_prepend(tmp_path)
        thread = threading.Thread(target=lambda: __import__("flambeau_slow"))
        thread.start()
        while "flambeau_slow" not in sys.modules:
            time.sleep(0.001)
        yield
        thread.join()
        del sys.modules["flambeau_slow"]

    def test_a_fork_waits_for_the_import_of_another_thread(self, slow):
        def use():
            import flambeau_slow  # type: ignore[import-not-found] - made above

            assert flambeau_slow.value == 1

        assert answer(use) == 0

    def test_a_module_that_forks_while_it_is_imported_does_not_wait_for_itself(
        self, tmp_path, monkeypatch
    ):
        code = "import os\nchild = os.fork()\nif not child:\n    os._exit(7)\n"
        (tmp_path / "flambeau_forking.py").write_text(code + "status = os.waitpid(child, 0)[1]\n")
        monkeypatch.syspath_prepend(tmp_path)
        begin = time.monotonic()
        import flambeau_forking  # type: ignore[import-not-found] - made above

        del sys.modules["flambeau_forking"]
        assert os.waitstatus_to_exitcode(flambeau_forking.status) == 7
        assert time.monotonic() - begin < forks.PATIENCE / 2

    def test_the_backward_pass_imports_nothing(self):
        assert program(BACKWARD) == ""


class TestLoad:
    pytestmark = needs_fork

    def test_children_of_a_process_that_computes_in_three_threads_do_not_hang(self):
        count, hung = program(UNDER_LOAD, "40", "20").splitlines()[-1].split()
        assert int(count) > 3
        assert hung == "0"

    @pytest.mark.skipif(sys.platform != "linux", reason="says how processes came to be")
    def test_a_child_convolves_though_only_its_parent_had_threads_of_openmp(self):
        try:
            __import__("ctypes").CDLL("libgomp.so.1")
        except OSError:
            pytest.skip("no libgomp on this system")
        assert program(LATE_CHILD) == "0"
