"""Tensors shared between processes, and processes started together."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from multiprocessing.reduction import ForkingPickler

import pytest

import flambeau as fb
import flambeau.multiprocessing as mp
from flambeau.multiprocessing import ProcessExitedException, ProcessRaisedException
from flambeau.utils import hooks

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="descriptors and signals of Unix"),
    pytest.mark.timeout(180),
]

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and /dev/shm")


def write(index, x):
    x[index] = index + 1.0


def fail(index, at):
    if index == at:
        raise ValueError(f"no place for {index}")
    time.sleep(90)


def kill(index):
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(90)


def leave(index):
    sys.exit(7)


def answer(queue, back):
    x = queue.get()
    x += 1
    back.put(x.sum().item())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_write_into_one_tensor(method):
    x = fb.zeros(3).share_memory_()
    mp.spawn(write, args=(x,), nprocs=3, start_method=method)
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_queue_moves_a_tensor_to_shared_memory(method):
    context = mp.get_context(method)
    queue, back = context.Queue(), context.Queue()
    x = fb.ones(1000)
    process = context.Process(target=answer, args=(queue, back), daemon=True)
    process.start()
    queue.put(x)
    assert back.get(timeout=60) == 2000
    process.join(60)
    assert process.exitcode == 0
    assert x.is_shared()
    assert x.sum() == 2000  # the other process wrote into the same memory


def test_the_first_exception_ends_all_and_arrives_with_its_traceback():
    began = time.monotonic()
    with pytest.raises(ProcessRaisedException, match=r"(?s)process 1 .*no place for 1") as caught:
        mp.spawn(fail, args=(1,), nprocs=3, start_method="fork")
    assert time.monotonic() - began < 45  # the others sleep for twice as long
    assert caught.value.error_index == 1


def test_a_killed_process_is_named_with_its_signal():
    with pytest.raises(ProcessExitedException, match="process 1 .*SIGKILL") as caught:
        mp.spawn(kill, nprocs=2, start_method="fork")
    assert (caught.value.signal_name, caught.value.exit_code) == ("SIGKILL", -9)


def test_an_exit_code_is_reported():
    with pytest.raises(ProcessExitedException, match="exited with code 7") as caught:
        mp.spawn(leave, start_method="fork")
    assert caught.value.exit_code == 7


def test_without_join_a_context_waits():
    context = mp.spawn(time.sleep, args=(), nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    deadline = time.monotonic() + 60
    while not context.join(timeout=30):
        assert time.monotonic() < deadline, "the processes do not end"
    assert context.join()


def test_every_name_of_the_standard_module_is_there():
    import multiprocessing

    assert set(multiprocessing.__all__) <= set(mp.__all__)
    assert mp.Queue is multiprocessing.Queue or mp.Queue == multiprocessing.Queue


def test_an_unknown_sharing_strategy_is_refused_and_changes_nothing():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(ValueError, match="'by_post' is none of 'file_descriptor'"):
        mp.set_sharing_strategy("by_post")
    assert mp.get_sharing_strategy() == "file_descriptor"


def test_a_tensor_of_a_queue_costs_no_search_among_all_objects(monkeypatch):
    def search():
        raise AssertionError("looked for other tensors over memory that only one has")

    monkeypatch.setattr("gc.get_objects", search)
    x = fb.ones(10)
    assert ForkingPickler.loads(ForkingPickler.dumps(x)).tolist() == [1.0] * 10
    assert x.is_shared() and fb.zeros(3).share_memory_().is_shared()


def test_views_and_twins_follow_memory_that_a_queue_moves():
    x = fb.zeros(4)
    view, twin = x[1:], x.data
    arrived = ForkingPickler.loads(ForkingPickler.dumps(x))
    arrived += 3
    assert x.tolist() == twin.tolist() == [3.0] * 4 and view.tolist() == [3.0] * 3


def test_what_is_received_brings_no_hooks():
    x = fb.ones(2, requires_grad=True)
    assert x._backward_hooks is None
    x.register_hook(hooks.unserializable_hook(lambda grad: grad))
    assert len(x._backward_hooks) == 1
    assert ForkingPickler.loads(ForkingPickler.dumps(x))._backward_hooks is None


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def names():
    return {each for each in os.listdir("/dev/shm") if each.startswith(f"torch_{os.getpid()}_")}


def come_to(wanted, found):
    deadline = time.monotonic() + 60
    while found() != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return found()


@pytest.fixture
def by_name():
    if "file_system" not in mp.get_all_sharing_strategies():
        pytest.skip("names of shared memory need sockets of Linux")
    mp.set_sharing_strategy("file_system")
    yield
    mp.set_sharing_strategy("file_descriptor")


@linux
def test_blocks_that_travel_by_descriptor_leave_none_open():
    before = descriptors()
    queue = mp.SimpleQueue()
    kept = []
    for _ in range(20):
        queue.put(fb.ones(100))
        kept.append(queue.get())
    assert len(kept) == 20
    del kept, queue
    # The thread of the standard library that hands descriptors over keeps its socket.
    assert come_to(True, lambda: descriptors() <= before + 1)


@linux
def test_blocks_that_travel_by_name_need_no_descriptors(by_name):
    queue = mp.SimpleQueue()
    queue.put(fb.ones(1))  # starts what is started once
    queue.get()
    before = descriptors()
    xs = [fb.ones(100).share_memory_() for _ in range(20)]
    assert descriptors() == before
    assert len(names()) >= 20
    del xs
    assert come_to(set(), names) == set()


@linux
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_write_into_one_tensor_that_travels_by_name(method, by_name):
    context = mp.get_context(method)
    queue, back = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(queue, back), daemon=True)
    process.start()
    x = fb.ones(1000)
    queue.put(x)
    assert back.get(timeout=60) == 2000
    process.join(60)
    assert process.exitcode == 0
    assert x.sum() == 2000
    assert len(names()) == 1
    del x
    assert come_to(set(), names) == set()


@linux
def test_a_name_stays_while_its_block_is_under_way(by_name):
    queue = mp.SimpleQueue()
    queue.put(fb.arange(5.0))  # nobody else has it
    assert queue.get().tolist() == [0, 1, 2, 3, 4]
    assert come_to(set(), names) == set()


def hold(told):
    x = fb.ones(1000).share_memory_()
    told.send(os.getpid())
    time.sleep(90)
    del x


@linux
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_no_name_stays_when_a_process_is_killed(method, by_name):
    context = mp.get_context(method)
    told, tell = context.Pipe(duplex=False)
    process = context.Process(target=hold_by_name, args=(tell,), daemon=True)
    process.start()
    assert told.poll(60)
    prefix = f"torch_{told.recv()}_"

    def its_names():
        return [each for each in os.listdir("/dev/shm") if each.startswith(prefix)]

    assert len(its_names()) == 1
    process.kill()
    process.join()
    assert come_to([], its_names) == []


def hold_by_name(tell):
    mp.set_sharing_strategy("file_system")
    hold(tell)


@linux
def test_what_is_gone_before_it_was_received_is_an_error_that_says_why(by_name):
    x = fb.ones(3)
    message = bytes(ForkingPickler.dumps(x))
    (path,) = names()
    os.unlink(os.path.join("/dev/shm", path))
    del x
    code = f"import pickle; pickle.loads({message!r})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "has to live until they have been received" in found.stderr
