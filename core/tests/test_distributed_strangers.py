"""Ports that stores use, with strangers at the other end: nothing hangs, nothing grows."""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

import flambeau as fb
from flambeau.distributed import _server, _tcp_store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="stores need Linux")

OPERATIONS = [name[3:].encode() for name in dir(_server.Server) if name.startswith("on_")]
ODD = [b"", b"1", b"-1", b"x", b"\0", b"9" * 5000, b"\xff" * 70, b"a" * 100_000, b"key", b"1e9"]


def frame(chance: random.Random) -> bytes:
    """A request, of which some are right."""
    name = chance.choice([*OPERATIONS, *OPERATIONS, b"nothing", b"_drop", b"\xff", b""])
    fields = [chance.choice(ODD) for _ in range(chance.randrange(5))]
    made = bytearray(_server.pack(b"%d" % chance.randrange(9), name, *fields))
    if chance.random() < 0.3:
        at = chance.randrange(min(len(made), 40))
        made[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
    if chance.random() < 0.1:
        made = made[: chance.randrange(len(made))]
    return bytes(made)


def attack(port: int, seed: int) -> None:
    """One connection that says what nobody of ours says, and may leave in the middle of it."""
    chance = random.Random(seed)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock, suppress(OSError):
        kind = chance.randrange(5)
        if kind == 0:
            sock.sendall(chance.randbytes(chance.choice([1, 17, 5000])))
            return
        sock.sendall(_server.MAGIC[: 3 if kind == 1 else None])
        if kind == 2:
            size = chance.choice([_server.LARGEST, _server.LARGEST + 1, 2**32 - 1])
            sock.sendall(struct.pack(">I", size) + chance.randbytes(1000))
        for _ in range(chance.randrange(20)):
            sock.sendall(frame(chance))
        if chance.random() < 0.5:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def memory_of_server(port: int) -> int:
    """Bytes that the process which listens at a port has in memory."""
    lines = Path("/proc/net/tcp").read_text().splitlines()
    inode = next(x.split()[9] for x in lines if x.split()[1].endswith(f":{port:04X}") and "0A" in x)
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(entry) == f"socket:[{inode}]" and entry.parts[2] != str(os.getpid()):
                pages = Path("/proc", entry.parts[2], "statm").read_text().split()[1]
                return int(pages) * os.sysconf("SC_PAGE_SIZE")
    raise AssertionError(f"nobody listens at {port}")


@pytest.fixture
def store() -> Iterator[fb.distributed.TCPStore]:
    found = fb.distributed.TCPStore(
        "127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=20), wait_for_workers=False
    )
    yield found
    found.close()


@pytest.mark.parametrize("count", [60, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_store_serves_its_own_whatever_strangers_say(
    store: fb.distributed.TCPStore, count: int
) -> None:
    store.ask("hello", b"0")
    before = memory_of_server(store.port)
    for seed in range(count):
        attack(store.port, seed)
        if seed % 10 == 0:
            store.set("ours", f"{seed}")
            assert store.get("ours") == b"%d" % seed
    assert memory_of_server(store.port) - before < 100 << 20


def test_who_asks_and_does_not_read_takes_no_memory(store: fb.distributed.TCPStore) -> None:
    store.set("large", bytes(30 << 20))
    before = memory_of_server(store.port)
    with socket.create_connection(("127.0.0.1", store.port)) as sock:
        sock.sendall(_server.MAGIC + _server.pack(b"1", b"get", b"large") * 200)
        sock.sendall(_server.pack(b"1", b"get", b"later") * 200)
        store.set("later", bytes(30 << 20))
        assert store.get("later") == bytes(30 << 20)
        assert memory_of_server(store.port) - before < 300 << 20
        # Once it reads it is answered.
        wanted = 3 * (30 << 20)
        while wanted > 0:
            data = sock.recv(1 << 20)
            assert data
            wanted -= len(data)
    assert store.num_keys() == 2


@contextmanager
def listener(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """A port at which one connection is accepted and answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError), server.accept()[0] as sock:
                answer(sock)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.close()
        thread.join(5)


def say(*frames: bytes) -> Callable[[socket.socket], object]:
    def answer(sock: socket.socket) -> None:
        while not sock.recv(1 << 16).removeprefix(_server.MAGIC):
            pass
        sock.sendall(b"".join(frames))
        silent(sock)

    return answer


def silent(sock: socket.socket) -> None:
    while sock.recv(1 << 16):
        pass


@pytest.mark.parametrize(
    "answer",
    [
        say(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        say(_server.pack(b"1")),
        say(_server.pack(b"1", b"x", b"y")),
        say(_server.pack(b"1", b"\xff")),
        say(_server.pack(b"")),
        say(_server.pack()),
        say(_server.pack(b"", b"dead", b"\xff")),
        say(b"\xff\xff\xff\xff"),
        say(),
        silent,
    ],
)
@pytest.mark.parametrize("call", ["set", "add", "get", "wait"])
def test_what_is_no_store_is_said_to_be_none(
    answer: Callable[[socket.socket], object], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tcp_store, "PATIENCE", 0.2)
    arguments = {"set": ("a", "b"), "add": ("a", 1), "wait": (["a"],)}
    with listener(answer) as port:
        store = fb.distributed.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=0.2))
        with suppress(fb.distributed.DistNetworkError, fb.distributed.DistStoreError):
            found = getattr(store, call)(*arguments.get(call, ("a",)))
            assert call != "add", found
        store.close()


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tcp_store, "PATIENCE", 0.2)
    with listener(silent) as port:
        store = fb.distributed.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=0.2))
        for call in (
            lambda: store.set("a", "b"),
            lambda: store.get("a"),
            lambda: store.wait(["a"]),
        ):
            start = time.monotonic()
            with pytest.raises(fb.distributed.DistNetworkError, match="does not answer within 0.2"):
                call()
            assert time.monotonic() - start < 1.5
        store.close()
