"""Tensors shared between processes, and processes started together."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.reduction import ForkingPickler

import pytest

import flambeau as fb
import flambeau.multiprocessing as mp
from flambeau._storages import names_server, shared, shared_names
from flambeau.multiprocessing import ProcessExitedException, ProcessRaisedException
from flambeau.utils import hooks
from flambeau.utils.data import DataLoader, Dataset

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


@linux
@pytest.mark.parametrize("unnamed", ["made so", "refused", "unknown"])
def test_a_block_that_travels_by_descriptor_has_no_name(unnamed, monkeypatch):
    """Old kernels refuse files without a name, and not all systems know the flag."""
    known = os.open

    def refuse(path, flags, *mode):
        if unnamed == "refused" and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return known(path, flags, *mode)

    monkeypatch.setattr(os, "open", refuse)
    if unnamed == "unknown":
        monkeypatch.delattr(os, "O_TMPFILE")
    x = fb.arange(5.0).share_memory_()
    mapping = x.untyped_storage()._st.mapping
    facts = os.fstat(mapping.fd)
    assert facts.st_nlink == 0 and facts.st_size == 20 and facts.st_mode & 0o777 == 0o600
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


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


def names(of=None):
    prefix = f"torch_{of or os.getpid()}_"
    return {each for each in os.listdir(shared._FOLDER) if each.startswith(prefix)}


def come_to(wanted, found):
    deadline = time.monotonic() + 60
    while found() != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return found()


@pytest.fixture
def by_name():
    if "file_system" not in mp.get_all_sharing_strategies():
        pytest.skip("names of shared memory need sockets of Linux")
    before = names()
    mp.set_sharing_strategy("file_system")
    yield lambda: names() - before
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
    xs = [fb.ones(100).share_memory_() for _ in range(100)]
    assert descriptors() < before + 50  # other threads of this process may open some
    assert len(by_name()) >= 100
    del xs
    assert come_to(set(), by_name) == set()


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
    assert len(by_name()) == 1
    del x
    assert come_to(set(), by_name) == set()


@linux
def test_a_name_stays_while_its_block_is_under_way(by_name):
    queue = mp.SimpleQueue()
    queue.put(fb.arange(5.0))  # nobody else has it
    assert queue.get().tolist() == [0, 1, 2, 3, 4]
    assert come_to(set(), by_name) == set()


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
    pid = told.recv()
    assert len(names(of=pid)) == 1
    process.kill()
    process.join()
    assert come_to(set(), lambda: names(of=pid)) == set()


def hold_by_name(tell):
    mp.set_sharing_strategy("file_system")
    hold(tell)


@linux
def test_what_is_gone_before_it_was_received_is_an_error_that_says_why(by_name):
    x = fb.ones(3)
    message = bytes(ForkingPickler.dumps(x))
    (path,) = by_name()
    os.unlink(os.path.join(shared._FOLDER, path))
    del x
    code = f"import pickle; pickle.loads({message!r})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "has to live until they have been received" in found.stderr


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return fb.full((1000,), index)  # too large for the pipe


def name_by_name(index):
    mp.set_sharing_strategy("file_system")


@linux
def test_batches_come_from_workers_that_share_by_name(by_name):
    loader = DataLoader(Rows(), batch_size=2, num_workers=1)
    assert [batch[:, 0].tolist() for batch in loader] == [[0, 1], [2, 3]]


@linux
def test_batches_come_from_workers_that_choose_to_share_by_name():
    loader = DataLoader(Rows(), batch_size=2, num_workers=1, worker_init_fn=name_by_name)
    assert [batch[:, 0].tolist() for batch in loader] == [[0, 1], [2, 3]]


def send_on(x, parent_let_go, back):
    parent_let_go.recv()
    twin = ForkingPickler.loads(ForkingPickler.dumps(x))
    twin += 1
    back.send(x.tolist())


@linux
def test_a_fork_sends_on_what_its_parent_has_let_go(by_name):
    context = mp.get_context("fork")
    parent_let_go, let_go = context.Pipe(duplex=False)
    told, tell = context.Pipe(duplex=False)
    x = fb.ones(3).share_memory_()
    process = context.Process(target=send_on, args=(x, parent_let_go, tell), daemon=True)
    process.start()
    tell.close()
    del x
    gc.collect()
    let_go.send(None)
    assert told.recv() == [2, 2, 2]
    process.join()
    assert process.exitcode == 0
    assert come_to(set(), by_name) == set()


BY_NAME = """
import os, time
import flambeau as fb
import flambeau.multiprocessing as mp
from flambeau._storages import shared, shared_names
from multiprocessing.reduction import ForkingPickler

def over(x):
    return ForkingPickler.loads(ForkingPickler.dumps(x))

def wait_for_the_end_of(parent):
    while os.getppid() == parent:
        time.sleep(0.01)

def has_name(x):
    name = x.untyped_storage()._st.mapping.name.name
    return os.path.exists(os.path.join(shared._FOLDER, name))

mp.set_sharing_strategy("file_system")
parent = os.getpid()
"""


def said_by_name(code):
    """What a script says whose processes share by name."""
    found = subprocess.run([sys.executable, "-c", BY_NAME + code], capture_output=True, text=True)
    assert found.returncode == 0 and not found.stderr, found.stderr
    return found.stdout.split()


@linux
def test_a_fork_shares_by_name_after_its_parent_and_the_names_server_have_ended():
    said = said_by_name(
        """
if os.fork():
    os._exit(0)
wait_for_the_end_of(parent)
ended = shared_names._home
while True:
    try:
        shared_names._connected(ended).close()
    except ConnectionRefusedError:
        break
    time.sleep(0.01)
x = fb.ones(3).share_memory_()
y = fb.ones(3).share_memory_()
print(has_name(x), shared_names._home != ended, int(over(x).sum()))
"""
    )
    assert said == ["True", "True", "3"]


@linux
def test_a_fork_keeps_names_whose_maker_ends_at_once():
    said = said_by_name(
        """
x = fb.ones(3).share_memory_()
home = shared_names._home
if os.fork():
    os._exit(0)
wait_for_the_end_of(parent)
y = fb.ones(3).share_memory_()
over(x).add_(1)
print(has_name(x), shared_names._home == home, int(x.sum()))
"""
    )
    assert said == ["True", "True", "6"]


@linux
def test_a_fork_that_had_no_descriptor_left_holds_a_name_from_its_first_message_on():
    said = said_by_name(
        """
import resource
x = fb.ones(3).share_memory_()
name = x.untyped_storage()._st.mapping.name
message = bytes(ForkingPickler.dumps(x))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
child = os.fork()
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
if child:
    os._exit(os.waitpid(child, 0)[1])
print(name.held())
received = ForkingPickler.loads(message)
now = x.untyped_storage()._st.mapping.name
print(now is not name, now.held(), has_name(x), int(over(received).sum()))
"""
    )
    assert said == ["False", "True", "True", "True", "3"]


@linux
def test_a_process_that_ends_while_it_holds_a_name_warns_nobody():
    code = BY_NAME + "x = over(fb.ones(3).share_memory_()); print(has_name(x))"
    command = [sys.executable, "-X", "dev", "-W", "default", "-c", code]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stdout == "True\n"
    assert "ResourceWarning" not in found.stderr


@linux
def test_a_process_whose_names_server_was_killed_shares_by_name_again():
    said = said_by_name(
        """
import socket
x = fb.ones(3).share_memory_()
home = shared_names._home
with socket.socket(fileno=os.dup(shared_names._connections[home])) as connection:
    connection.shutdown(socket.SHUT_RDWR)  # the server ends with its last connection
while has_name(x):
    time.sleep(0.01)
y = fb.ones(3).share_memory_()
print(has_name(y), int(over(y).sum()))
"""
    )
    assert said == ["True", "3"]


@linux
def test_a_connection_to_a_names_server_that_ends_is_served_or_refused(tmp_path):
    served = 0
    for round_ in range(300):
        address = f"flambeau-names-{os.getpid()}-{round_}"
        with shared_names._socket() as listener:
            listener.bind("\0" + address)
            listener.listen()
            server = threading.Thread(target=names_server.Server(listener, str(tmp_path)).serve)
            server.start()
            last = shared_names._connected(address)
            closing = threading.Thread(target=last.close)
            closing.start()
            try:
                connection = shared_names._connected(address)
            except ConnectionRefusedError:
                connection = None
            closing.join()
            if connection is not None:
                served += 1
                path = tmp_path / f"torch_{round_}"
                path.touch()
                connection.send(f"+{path.name}".encode())
                assert server.is_alive() and path.exists()
                connection.close()
                server.join(60)
                assert not path.exists()
        server.join(60)
        assert not server.is_alive()
    assert served


@linux
def test_a_block_whose_file_is_too_small_is_refused_and_not_mapped():
    fd = os.open(shared._FOLDER, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, bytes(10))
    with pytest.raises(RuntimeError, match="of 4096 bytes is expected, and has but 10"):
        shared.attach(fd, 4096)
