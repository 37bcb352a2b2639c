"""Stores: what all have in common, waiting, and what is left behind."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.distributed import _server
from flambeau.distributed._tcp_store import start_server
from flambeau.testing.ranks import free_port, run_ranks, values


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dist.Store]:
    made: dist.Store
    if request.param == "hash":
        made = dist.HashStore()
    elif request.param == "file":
        made = dist.FileStore(str(tmp_path / "store"), 1)
    elif request.param == "tcp":
        made = dist.TCPStore("127.0.0.1", 0, is_master=True)
    else:
        made = dist.PrefixStore("p", dist.HashStore())
    yield made
    if isinstance(made, dist.FileStore | dist.TCPStore):
        made.close()


def test_values_are_bytes_and_may_be_anything(store: dist.Store) -> None:
    for value in (b"", b"x", b"\0\xff\n" * 1000, bytes(300_000)):
        store.set("key with spaces\n", value)
        assert store.get("key with spaces\n") == value
    store.set("text", "grün")
    assert store.get("text") == "grün".encode()


@pytest.mark.parametrize("odd", [5, 0.5, "1"])
def test_a_timeout_that_is_no_timedelta_is_refused(store: dist.Store, odd: Any) -> None:
    store.set("a", "1")
    for call in (lambda: store.wait(["a"], odd), lambda: store.set_timeout(odd)):
        with pytest.raises(TypeError, match="timedelta"):
            call()
    store.wait(["a"], timedelta(seconds=5))


def test_numbers_add_up(store: dist.Store) -> None:
    assert [store.add("n", 3), store.add("n", -5), store.add("n", 0)] == [3, -2, -2]
    assert store.get("n") == b"-2"


@pytest.mark.parametrize("odd", [1, None, 2.5, ["a"], fb.ones(3)])
def test_what_is_neither_text_nor_bytes_is_refused(store: dist.Store, odd: Any) -> None:
    for call in (
        lambda: store.set(odd, "1"),
        lambda: store.set("a", odd),
        lambda: store.add(odd, 1),
        lambda: store.check([odd]),
        lambda: store.compare_set(odd, "", "a"),
        lambda: store.compare_set("a", "", odd),
        lambda: store.delete_key(odd),
        lambda: store.wait([odd]),
        lambda: store.get(odd),
    ):
        with pytest.raises(TypeError, match="str"):
            call()
    with pytest.raises(TypeError, match="list of str"):
        store.check("word")
    assert not store.check(["a"])


def test_keys_can_be_counted_and_removed(store: dist.Store) -> None:
    before = store.num_keys()
    store.set("a", "1")
    store.set("b", "2")
    assert store.num_keys() == before + 2
    assert store.check(["a", "b"])
    assert store.delete_key("a")
    assert not store.delete_key("a")
    assert not store.check(["a", "b"])
    assert store.num_keys() == before + 1


def test_compare_set_changes_only_what_was_expected(store: dist.Store) -> None:
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "other", "second") == b"first"
    assert store.compare_set("k", "first", "second") == b"second"
    assert store.get("k") == b"second"


def test_get_waits_for_a_key_that_comes_late(store: dist.Store) -> None:
    timer = threading.Timer(0.1, store.set, ("late", "here"))
    timer.start()
    assert store.get("late") == b"here"
    timer.join()


def test_waiting_ends_with_the_keys_that_are_missing(store: dist.Store) -> None:
    store.set("there", "1")
    start = time.monotonic()
    with pytest.raises(dist.DistStoreError, match="absent"):
        store.wait(["there", "absent"], timedelta(seconds=0.2))
    store.set_timeout(timedelta(seconds=0.2))
    assert store.timeout == timedelta(seconds=0.2)
    with pytest.raises(dist.DistStoreError, match="wait timeout"):
        store.get("absent")
    assert time.monotonic() - start < 10
    store.set("absent", "now")  # a wait that was given up disturbs nothing
    assert store.get("absent") == b"now"


def test_prefixes_keep_keys_apart() -> None:
    whole = dist.HashStore()
    one, two = dist.PrefixStore("one", whole), dist.PrefixStore("two", whole)
    one.set("k", "1")
    two.set("k", "2")
    assert (one.get("k"), two.get("k"), whole.get("one/k")) == (b"1", b"2", b"1")
    assert one.underlying_store is whole


def test_the_file_goes_with_the_last_store_over_it(tmp_path: Path) -> None:
    path = tmp_path / "store"
    first, second = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    first.set("a", "1")
    assert second.get("a") == b"1"
    first.close()
    assert path.exists()
    second.close()
    assert not path.exists()


def _add(rank: int, size: int, path: str) -> int:
    store = dist.FileStore(path, -1)
    for _ in range(50):
        store.add("n", 1)
    store.set(f"done{rank}", "1")
    store.wait([f"done{r}" for r in range(size)])
    return int(store.get("n"))


def test_processes_add_to_a_file_without_losing_anything(tmp_path: Path) -> None:
    outcomes = run_ranks(_add, 3, str(tmp_path / "store"), join=False)
    assert values(outcomes) == [150] * 3


def test_the_server_ends_with_its_last_connection() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    other = dist.TCPStore("127.0.0.1", store.port)
    other.set("a", "1")
    port = store.port
    store.close()
    assert other.get("a") == b"1"  # it outlives who had started it
    other.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.02)
    raise AssertionError("the server is still there")


def test_strangers_are_sent_away_and_harm_nobody() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    for greeting in (b"GET / HTTP/1.1\r\n\r\n", _server.MAGIC + b"\xff" * 8):
        with socket.create_connection(("127.0.0.1", store.port)) as stranger:
            stranger.settimeout(10)
            stranger.sendall(greeting)
            assert stranger.recv(1) == b""
    store.set("a", "1")
    assert store.get("a") == b"1"
    store.close()


def test_strangers_neither_end_a_job_that_has_not_begun_nor_keep_one_from_ending() -> None:
    port = start_server("127.0.0.1", 0, timedelta(seconds=60))
    silent = socket.create_connection(("127.0.0.1", port))
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.recv(1) == b""
    time.sleep(0.1)
    store = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=10))
    store.set("a", "1")
    store.close()
    silent.settimeout(30)
    with silent:
        assert silent.recv(1) == b""


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        _server.pack(b"x"),
        _server.pack(b"", b"dead"),
        _server.pack(b"", b"dead", b"\xff"),
        _server.pack(),
        b"\0\0\0\5\0\0\1\0a",
    ],
)
def test_what_answers_like_no_store_is_an_error_and_no_wait(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        store = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=30))
        peer, _ = other.accept()
        with peer:
            peer.sendall(answer)
            start = time.monotonic()
            with pytest.raises(dist.DistNetworkError, match=f"{port} is no store"):
                store.add("a", 1)
            assert time.monotonic() - start < 20
        store.close()


@pytest.mark.parametrize("held", [b"x", b"# A page\n\nof words\n", b"\0" * 100, b"\xff" * 9])
def test_a_file_of_something_else_is_no_store_and_stays_as_it_is(
    tmp_path: Path, held: bytes
) -> None:
    path = tmp_path / "page"
    path.write_bytes(held)
    with pytest.raises(ValueError, match="none of a store"):
        dist.FileStore(str(path), 1).add("a", 1)
    assert path.read_bytes() == held


def test_a_master_that_waits_says_how_many_came() -> None:
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=0.2))


def test_without_a_server_the_address_is_named() -> None:
    port = free_port()
    with pytest.raises(dist.DistNetworkError, match=f"127.0.0.1, {port}"):
        dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=0.1))


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(dist.DistNetworkError, match=f"127.0.0.1:{port}"):
            dist.TCPStore("127.0.0.1", port, is_master=True)


def test_frames_come_out_however_bytes_are_cut() -> None:
    frames = [[b"a"], [b"", b"bc" * 300], [b"1", b"set", b"k", b""]]
    data = b"".join(_server.pack(*fields) for fields in frames)
    for step in (1, 2, 3, 7, len(data)):
        reader, found = _server.Frames(), []
        for at in range(0, len(data), step):
            found += reader.feed(data[at : at + step])
        assert found == frames


def test_a_store_of_before_a_fork_refuses() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            store.set("a", "1")
        except dist.DistNetworkError:
            os.write(writer, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"refused"
    os.close(reader)
    os.close(writer)
    store.close()


@pytest.mark.parametrize("size", [-1, 2])
def test_a_file_that_forgets_is_none_where_processes_meet(size: int) -> None:
    with pytest.raises(ValueError, match="/dev/null is there, and is none of a store"):
        dist.FileStore(os.devnull, size)


def test_a_process_alone_may_meet_itself_in_a_file_that_forgets() -> None:
    stores = [dist.FileStore(os.devnull, 1) for _ in range(2)]
    for number, store in enumerate(stores):
        store.set("a", str(number))
    assert [store.get("a") for store in stores] == [b"0", b"1"]
    for store in stores:
        store.close()
    assert os.path.exists(os.devnull)
