"""Tensors on their way between processes whose sender dies, or whose descriptors do not come."""

from __future__ import annotations

import gc
import os
import resource
import socket
import subprocess
import sys
import time
from multiprocessing import reduction
from multiprocessing.connection import Connection

import pytest

import flambeau as fb
import flambeau.multiprocessing as mp
from flambeau._storages import descriptors, shared
from flambeau.utils.data._utils import transport

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors as Linux sends them")


def open_descriptors():
    gc.collect()
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture
def ends():
    ours, theirs = mp.Pipe()
    with ours, theirs:
        before = open_descriptors()
        yield ours, theirs
        if not theirs.closed:
            assert open_descriptors() == before


def send(connection, message, count):
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as end:
        socket.send_fds(end, [message], [0] * count)


@pytest.mark.parametrize("count", [0, 2, 3, 17])
@pytest.mark.parametrize("message", [b"\x01", b"\x02"])
def test_as_many_descriptors_come_as_are_said_or_none_stays_open(ends, count, message):
    ours, theirs = ends
    send(theirs, message, count)
    with pytest.raises(RuntimeError, match="one is expected"):
        descriptors.receive(ours)
    send(theirs, b"\x02", 1)
    with pytest.raises(RuntimeError, match="1 descriptors and says 2"):
        descriptors.receive(ours)


def test_one_descriptor_comes(ends):
    ours, theirs = ends
    reduction.send_handle(theirs, 0, 0)
    fd = descriptors.receive(ours)
    assert os.path.sameopenfile(fd, 0)
    os.close(fd)


def test_who_is_gone_before_its_descriptor_is_noticed(ends):
    ours, theirs = ends
    theirs.close()
    with pytest.raises(EOFError):
        descriptors.receive(ours)


@pytest.mark.parametrize("free", [0, 1])
def test_a_process_that_may_open_no_more_files_says_so(ends, free):
    ours, theirs = ends
    reduction.send_handle(theirs, 0, 0)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    filled = []
    try:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (max(map(int, open_descriptors())) + 9, limits[1])
        )
        while True:
            try:
                filled.append(os.dup(0))
            except OSError:
                break
        for fd in filled[:free]:
            os.close(fd)
        del filled[:free]
        with pytest.raises(RuntimeError, match=r"too many open files.*ulimit -n"):
            descriptors.receive(ours)
    finally:
        for fd in filled:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    if not free:  # the message is still there
        os.close(descriptors.receive(ours))


@pytest.mark.parametrize("sent", ["header", "half a header", "descriptor of too little"])
def test_a_batch_that_breaks_off_is_an_error_and_leaves_nothing_open(ends, sent):
    ours, theirs = ends
    if sent == "half a header":
        os.write(theirs.fileno(), (1000).to_bytes(4, "big") + b"x" * 9)
    else:
        theirs.send((("batch", 0, 0), None, None, 8192, 8300))
    if sent == "descriptor of too little":
        fd = os.open(shared._FOLDER, os.O_TMPFILE | os.O_RDWR, 0o600)
        reduction.send_handle(theirs, fd, 0)
        os.close(fd)
        with pytest.raises(RuntimeError, match="8300 bytes is expected, and has but 0"):
            transport.receive(ours)
        return
    theirs.close()
    with pytest.raises((EOFError, OSError)):
        transport.receive(ours)


def _sent_and_gone(connection: Connection) -> None:
    connection.send(fb.ones(5000))
    os._exit(0)


def test_a_tensor_whose_sender_has_ended_is_an_error_that_says_so():
    ours, theirs = mp.Pipe()
    with ours, theirs:
        process = mp.get_context("fork").Process(target=_sent_and_gone, args=(theirs,))
        process.start()
        process.join()
        before = open_descriptors()
        with pytest.raises(RuntimeError, match="has ended, or let it go, before it was received"):
            ours.recv()
        assert open_descriptors() == before


TOO_MUCH = """
import os, resource, signal
import flambeau as fb
import flambeau.multiprocessing as mp

mp.set_sharing_strategy("{strategy}")
fb.ones(3).share_memory_()
x = fb.arange(5000.0)
view = x[1:3]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
held = set(os.listdir("/proc/self/fd"))
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, hard))
for _ in range(2):
    try:
        x.share_memory_()
    except RuntimeError as error:
        print(error)
print(x.is_shared(), x.sum().item(), view.tolist(), set(os.listdir("/proc/self/fd")) == held)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
x.share_memory_()
x[1] = 7
print(x.is_shared(), x.sum().item(), view.tolist())
"""


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_a_tensor_that_fits_into_shared_memory_in_part_stays_where_it_is(strategy):
    code = TOO_MUCH.format(strategy=strategy)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0 and not found.stderr, found.stderr
    first, again, refused, shared_now = found.stdout.splitlines()
    assert first.startswith("cannot allocate 20000 bytes of shared memory in ")
    assert "File too large. Share less, or make that file system larger" in first
    assert again.split(" free:")[1] == first.split(" free:")[1]
    assert refused == "False 12497500.0 [1.0, 2.0] True"
    assert shared_now == "True 12497506.0 [7.0, 2.0]"


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x[:1].expand(3, -1),
        lambda x: x[2, 1],
        lambda x: x[:, 5:],
        lambda x: x[1:2, 3:4].t(),
        lambda x: x.as_strided((2, 2), (3, 1), 4),
        lambda x: x.view(fb.int16)[:, 1:],
        lambda x: x.view(2, 1, 3, 2)[:, :, 1],
    ],
)
def test_what_a_tensor_sees_of_its_memory_travels(cut):
    x = fb.arange(12.0).view(3, 4).clone()
    sent = cut(x)
    ours, theirs = mp.Pipe()
    with ours, theirs:
        theirs.send(sent)
        received = ours.recv()
    assert type(received) is fb.Tensor and received.dtype is sent.dtype
    assert received.shape == sent.shape and received.stride() == sent.stride()
    assert received.storage_offset() == sent.storage_offset()
    assert received.equal(sent) and received.is_shared()
    assert received.untyped_storage().nbytes() == x.untyped_storage().nbytes()
    x.fill_(-1.0)
    assert received.equal(sent)


class Kept(fb.Tensor):
    pass


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("kind", [fb.Tensor, fb.nn.Parameter, Kept])
def test_a_leaf_travels_as_what_it_is(kind, requires_grad):
    sent = fb.ones(3).as_subclass(kind) if kind is not fb.nn.Parameter else kind(fb.ones(3))
    sent.requires_grad_(requires_grad)
    ours, theirs = mp.Pipe()
    with ours, theirs:
        theirs.send(sent)
        received = ours.recv()
    assert type(received) is kind and received.requires_grad is requires_grad
    assert received.is_leaf and received.equal(sent)


def come_to_an_end(wanted):
    """Whether the descriptors of this process become as many as `wanted`: threads close them."""
    deadline = time.monotonic() + 60
    while len(open_descriptors()) != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(open_descriptors())


def _no_number(monkeypatch):
    monkeypatch.setattr(descriptors, "_OPEN", "/proc/no such process {}/{}")


def _another_file(monkeypatch):
    whole = descriptors._opened
    monkeypatch.setattr(
        descriptors, "_opened", lambda process, number, facts: whole(process, 0, facts)
    )


def _nobody_to_tell(monkeypatch):
    monkeypatch.setattr(descriptors, "_tell", lambda *place: False)


@pytest.mark.parametrize(
    "hindered", [None, _no_number, _another_file, _nobody_to_tell], ids=lambda f: f and f.__name__
)
def test_a_block_arrives_by_number_or_is_sent_and_nobody_keeps_it_open(hindered, monkeypatch):
    def forward(received, answers):
        if hindered is not None:
            hindered(monkeypatch)
        while (x := received.recv()) is not None:
            x += 1
            answers.send(x)
            del x
        before = len(open_descriptors())
        answers.send(before)
        answers.send(come_to_an_end(before))

    (ours, theirs), (answers, mine) = mp.Pipe(), mp.Pipe()
    child = mp.get_context("fork").Process(target=forward, args=(theirs, mine))
    child.start()
    if hindered is not None:
        hindered(monkeypatch)
    x = fb.zeros(3)
    for _ in range(2):  # the first has what stays open brought about
        ours.send(x)
        answers.recv()
    before = come_to_an_end(len(open_descriptors()))
    sent = x
    for number in range(40):
        sent = fb.full((3,), float(number))
        ours.send(sent)
        assert answers.recv().tolist() == [number + 1.0] * 3 == sent.tolist()
    del sent
    assert come_to_an_end(before) == before and len(descriptors._sharer._cache) <= 1
    ours.send(None)
    assert answers.recv() == answers.recv()
    child.join()


def test_a_fork_is_told_itself_what_others_have_opened():
    ours, theirs = mp.Pipe()
    theirs.send(fb.ones(3))  # has a pipe and a thread
    ours.recv()
    place = descriptors._taken.here()

    def send(connection):
        for _ in range(20):
            connection.send(fb.ones(3))
        assert descriptors._taken.here() != place
        connection.recv()  # all have arrived
        deadline = time.monotonic() + 60
        while descriptors._sharer._cache and time.monotonic() < deadline:
            time.sleep(0.01)
        connection.send(len(descriptors._sharer._cache))

    child = mp.get_context("fork").Process(target=send, args=(theirs,))
    child.start()
    arrived = [ours.recv().tolist() for _ in range(20)]
    ours.send("all")
    assert ours.recv() == 0 and arrived == [[1.0] * 3] * 20
    child.join()
    assert descriptors._taken.here() == place


def test_a_number_that_means_another_file_now_opens_nothing(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    other = os.open(fifo, os.O_RDWR)
    facts = os.stat(tmp_path)
    before = open_descriptors()
    assert descriptors._opened(os.getpid(), other, (facts.st_dev, facts.st_ino)) is None
    assert not descriptors._tell(os.getppid(), (other, 7), 1)
    assert open_descriptors() == before
    os.close(other)
