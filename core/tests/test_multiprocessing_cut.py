"""Tensors on their way between processes whose sender dies, or whose descriptors do not come."""

from __future__ import annotations

import gc
import os
import resource
import socket
import sys
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
