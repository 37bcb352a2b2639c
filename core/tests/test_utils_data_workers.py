"""Worker processes of the loader: batches, seeds, and every way in which a worker can fail."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import flambeau as fb
from flambeau.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from flambeau.utils.data._utils.worker import WorkerInfo

METHODS = [
    m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()
]
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals and descriptors of Unix"),
    pytest.mark.timeout(180),
]


class Numbers(Dataset):
    def __init__(self, n=10, size=3):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return fb.full((self.size,), float(index)), index, {"name": f"no {index}"}


class Failing(Numbers):
    """Does something bad at one index."""

    def __init__(self, how, at=5):
        super().__init__()
        self.how, self.at = how, at

    def __getitem__(self, index):
        if index == self.at:
            if isinstance(self.how, BaseException):
                raise self.how
            if self.how == "hang":
                time.sleep(60)
            elif self.how == "exit":
                os._exit(3)
            else:
                faulthandler.disable()
                os.kill(os.getpid(), self.how)
                time.sleep(10)
        return super().__getitem__(index)


class OddError(Exception):
    """Cannot be made from a message."""

    def __init__(self, a, b):
        super().__init__(a, b)


class Shared(IterableDataset):
    """Divides its numbers among the workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, self.n, info.num_workers))

    def __len__(self):
        return self.n


def facts(index):
    info = get_worker_info()
    return info.id, info.num_workers, info.seed, fb.get_num_threads(), fb.initial_seed()


class Facts(Numbers):
    def __getitem__(self, index):
        return facts(index)


def mark_worker(worker_id):
    get_worker_info().dataset.n = 100 + worker_id


class Marked(Numbers):
    def __getitem__(self, index):
        return get_worker_info().dataset.n


def children():
    return {p.pid for p in multiprocessing.active_children()}


def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def shared_files():
    folder = Path("/dev/shm")
    return {p.name for p in folder.glob("flambeau_*")} if folder.is_dir() else set()


def seconds_to_notice_an_end():
    """What it takes on this machine, as busy as it is, to start a process and see it end."""
    process = multiprocessing.get_context("fork").Process(target=int)
    began = time.monotonic()
    process.start()
    process.join()
    return time.monotonic() - began


def is_within(attempt, bound):
    """Whether one of three attempts takes less than `bound` seconds.

    Where more processes want to run than there are processors, twenty times what the end of one
    takes is granted beside it.
    """
    for _ in range(3):
        busy = os.getloadavg()[0] > (os.cpu_count() or 1)
        before = seconds_to_notice_an_end()
        seconds = attempt()
        granted = 20 * max(before, seconds_to_notice_an_end()) if busy else 0
        if seconds < bound + granted:
            return True
    return False


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    before, files = children(), shared_files()
    yield
    gc.collect()
    assert children() <= before
    assert shared_files() <= files


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [3, 5000])  # through the pipe, through shared memory
def test_batches_come_complete_and_in_order(method, size):
    loader = DataLoader(
        Numbers(10, size), batch_size=3, num_workers=2, multiprocessing_context=method
    )
    batches = list(loader)
    assert [b[1].tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    for values, index, names in batches:
        assert values.shape == (len(index), size)
        assert (values == index.reshape(-1, 1)).all()
        assert names["name"] == [f"no {i}" for i in index.tolist()]


def test_large_batches_lie_in_writable_shared_memory():
    (batch,) = DataLoader(TensorDataset(fb.zeros(4, 4096)), batch_size=4, num_workers=1)
    assert batch[0].is_shared()
    batch[0][0, 0] = 7.0
    assert batch[0].sum() == 7.0


def test_more_workers_than_batches_and_no_batches_at_all():
    assert len(list(DataLoader(Numbers(2), num_workers=4))) == 2
    assert list(DataLoader(TensorDataset(fb.zeros(0, 3)), num_workers=2)) == []


def test_any_order_has_the_same_batches():
    loader = DataLoader(Numbers(20), batch_size=2, num_workers=3, in_order=False)
    assert sorted(b[1].tolist() for b in loader) == [[i, i + 1] for i in range(0, 20, 2)]


@pytest.mark.parametrize("persistent", [False, True])
def test_streams_are_divided_by_worker_info_in_every_pass(persistent):
    loader = DataLoader(Shared(7), batch_size=2, num_workers=2, persistent_workers=persistent)
    for _ in range(2):
        found = [b.tolist() for b in loader]
        assert found == [[0, 2], [1, 3], [4, 6], [5]]
    del loader


def test_a_stream_that_every_worker_repeats_warns_of_its_length():
    class Copied(Shared):
        def __iter__(self):
            return iter(range(self.n))

    loader = DataLoader(Copied(3), num_workers=2, multiprocessing_context="fork")
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="get_worker_info"):
        assert len(list(loader)) == 6


def test_every_worker_knows_itself_and_computes_with_one_thread():
    loader = DataLoader(Facts(4), batch_size=None, num_workers=2)
    fb.manual_seed(11)
    found = list(loader)
    fb.manual_seed(11)
    base = fb.empty((), dtype=fb.int64).random_().item()
    assert found == [[i % 2, 2, base + i % 2, 1, base + i % 2] for i in range(4)]
    assert get_worker_info() is None


def test_the_init_function_runs_in_each_worker_before_its_first_sample():
    loader = DataLoader(Marked(4), batch_size=None, num_workers=2, worker_init_fn=mark_worker)
    assert list(loader) == [100, 101, 100, 101]


def test_persistent_workers_are_the_same_processes():
    loader = DataLoader(Numbers(4), num_workers=2, persistent_workers=True)
    first = iter(loader)
    pids = [p.pid for p in first._pool.processes]
    assert len(list(first)) == 4
    second = iter(loader)
    assert second is first
    assert [p.pid for p in second._pool.processes] == pids
    next(second)  # an abandoned pass does not disturb the next one
    assert [b[1].item() for b in loader] == [0, 1, 2, 3]
    assert len(list(pickle.loads(pickle.dumps(loader)))) == 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGTERM])
def test_a_killed_worker_is_named_with_its_signal_within_a_second(number):
    loader = DataLoader(Failing(number), num_workers=2, multiprocessing_context="fork")

    def attempt():
        found = iter(loader)
        next(found)
        began = time.monotonic()
        with pytest.raises(RuntimeError, match=rf"worker 1 \(pid \d+\).*{number.name}"):
            list(found)
        return time.monotonic() - began

    assert is_within(attempt, 1)


def test_a_worker_that_is_killed_from_outside_while_idle_is_noticed():
    found = iter(DataLoader(Numbers(100), num_workers=2, prefetch_factor=1))
    next(found)
    os.kill(found._pool.processes[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"worker 0 .*SIGKILL.*memory"):
        list(found)
    with pytest.raises(StopIteration):
        next(found)


def test_a_worker_that_exits_is_named_with_its_code():
    with pytest.raises(RuntimeError, match=r"worker 1 \(pid \d+\) exited unexpectedly.* code 3"):
        list(DataLoader(Failing("exit"), num_workers=2))


def test_a_hung_worker_is_ended_after_the_timeout():
    loader = DataLoader(Failing("hang", at=0), num_workers=1, timeout=0.3)

    def attempt():
        began = time.monotonic()
        message = r"timed out after 0.3 seconds.*worker 0 \(pid \d+\)"
        with pytest.raises(RuntimeError, match=message):
            list(loader)
        return time.monotonic() - began

    assert is_within(attempt, 1.3)


@pytest.mark.parametrize("method", METHODS)
def test_an_exception_arrives_with_its_class_and_traceback(method):
    loader = DataLoader(
        Failing(ValueError("bad sample")), num_workers=2, multiprocessing_context=method
    )
    with pytest.raises(ValueError, match="(?s)worker process 1.*__getitem__.*bad sample"):
        list(loader)


def test_key_errors_and_exceptions_that_cannot_be_made_anew_show_their_text():
    with pytest.raises(KeyError) as caught:
        list(DataLoader(Failing(KeyError("name")), num_workers=1))
    assert "\nOriginal Traceback" in str(caught.value)
    with pytest.raises(RuntimeError, match="Caught OddError in DataLoader worker process 0"):
        list(DataLoader(Failing(OddError(1, 2)), num_workers=1))


def test_persistent_workers_survive_an_exception():
    data = Failing(ValueError("bad sample"))
    loader = DataLoader(data, num_workers=2, persistent_workers=True)
    with pytest.raises(ValueError, match="bad sample"):
        list(loader)
    found = iter(loader)
    assert [next(found)[1].item() for _ in range(5)] == [0, 1, 2, 3, 4]
    del found, loader


def test_an_init_function_that_raises_is_reported():
    def broken(worker_id):
        raise OSError("no such disk")

    loader = DataLoader(
        Numbers(), num_workers=1, worker_init_fn=broken, multiprocessing_context="fork"
    )
    with pytest.raises(OSError, match="no such disk"):
        list(loader)


def test_a_batch_that_cannot_be_sent_is_reported():
    loader = DataLoader(
        Numbers(),
        num_workers=1,
        collate_fn=lambda x: threading.Lock(),
        multiprocessing_context="fork",
    )
    with pytest.raises(TypeError, match=r"could not be sent"):
        list(loader)


def test_full_shared_memory_is_an_error_that_says_so(monkeypatch):
    def full(fd, offset, length):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    loader = DataLoader(Numbers(2, 10_000), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="(?s)shared memory.*No space left"):
        list(loader)


def test_a_lambda_reaches_a_spawned_worker_by_cloudpickle():
    pytest.importorskip("cloudpickle")
    factor = 3
    loader = DataLoader(
        [1, 2], num_workers=1, collate_fn=lambda x: factor * x[0], multiprocessing_context="spawn"
    )
    assert list(loader) == [3, 6]


def test_without_cloudpickle_the_error_names_remedies(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    loader = DataLoader([1], num_workers=1, collate_fn=lambda x: x, multiprocessing_context="spawn")
    with pytest.raises(TypeError, match="install cloudpickle"):
        list(loader)


def test_an_abandoned_pass_ends_its_workers_at_once():
    found = iter(DataLoader(Numbers(1000, 5000), num_workers=2, prefetch_factor=4))
    next(found)
    pids = [p.pid for p in found._pool.processes]
    del found
    gc.collect()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_end_when_the_main_process_is_killed(tmp_path):
    if "fork" not in METHODS:
        pytest.skip("needs fork")
    ready, told = multiprocessing.Pipe()

    def main():
        found = iter(DataLoader(Failing("hang", at=50), num_workers=2))
        next(found)
        told.send([p.pid for p in found._pool.processes])
        time.sleep(60)

    process = multiprocessing.get_context("fork").Process(target=main)
    process.start()
    assert ready.poll(60), "the process that loads says nothing"
    pids = ready.recv()
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    deadline = time.monotonic() + 40
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline, "workers outlive the main process"
        time.sleep(0.05)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("context", "error"), [("no such method", ValueError), (3, TypeError), (object(), TypeError)]
)
def test_wrong_contexts_are_refused(context, error):
    with pytest.raises(error, match="multiprocessing_context"):
        DataLoader(Numbers(), num_workers=1, multiprocessing_context=context)


def test_many_passes_leak_no_descriptors():
    loader = DataLoader(Numbers(8, 5000), batch_size=2, num_workers=2)
    list(loader)
    gc.collect()
    before = descriptors()
    for _ in range(10):
        list(loader)
    gc.collect()
    assert descriptors() <= before + 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_batches_leak_nothing():
    loader = DataLoader(Numbers(20_000, 2048), batch_size=2, num_workers=2)
    found = iter(loader)
    next(found)
    before = descriptors()
    count = 1 + sum(1 for _ in found)
    assert count == 10_000
    gc.collect()
    assert descriptors() <= before


def test_no_warning_is_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(DataLoader(Numbers(4), num_workers=2))) == 4


def test_after_an_error_the_next_batches_come():
    found = iter(DataLoader(Failing(ValueError("bad sample")), num_workers=2))
    values, errors = [], 0
    while True:
        try:
            values.append(next(found)[1].item())
        except ValueError:
            errors += 1
        except StopIteration:
            break
    assert errors == 1 and len(values) == len(Failing(None)) - 1


def test_a_worker_that_could_not_start_says_so_once():
    def fails(number):
        raise ValueError(f"no worker {number}")

    found = iter(DataLoader(Numbers(8), num_workers=2, worker_init_fn=fails))
    for worker in range(2):
        with pytest.raises(ValueError, match=f"no worker {worker}"):
            next(found)
    assert list(found) == []


def test_workers_are_known_after_the_pass_and_have_ended():
    found = iter(DataLoader(Numbers(4), num_workers=2))
    assert len(list(found)) == 4
    assert len(found.workers) == 2
    assert all(worker.pid and not worker.is_alive() for worker in found.workers)


def test_a_worker_cannot_change_what_it_knows_of_itself():
    info = WorkerInfo(0, 1, 2, [])
    for name in ("id", "other"):
        with pytest.raises(RuntimeError, match="Cannot assign attributes"):
            setattr(info, name, 3)
    assert pickle.loads(pickle.dumps(info)) == info
