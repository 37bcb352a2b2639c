"""Tensors shared between processes, and processes started together."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

import flambeau as fb
import flambeau.multiprocessing as mp
from flambeau.multiprocessing import ProcessExitedException, ProcessRaisedException

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="descriptors and signals of Unix"),
    pytest.mark.timeout(180),
]


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


def test_the_only_sharing_strategy_is_by_descriptor():
    assert mp.get_all_sharing_strategies() == {mp.get_sharing_strategy()}
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="file_system"):
        mp.set_sharing_strategy("file_system")
