"""The process manager among connections that are none of its job's."""

from __future__ import annotations

import socket
import threading

from flambeau_mpi.manager import Manager


def _told(sock: socket.socket, line: str) -> str:
    sock.sendall(line.encode() + b"\n")
    return sock.recv(1000).decode()


def test_strangers_are_sent_away_and_harm_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        manager = Manager(listener, 1, "job", "nodes")
        thread = threading.Thread(target=manager.serve, args=(60,), daemon=True)
        thread.start()
        for line in ("GET / HTTP/1.1", "cmd=put", "cmd=get", "cmd=barrier_in", "\udcff", ""):
            with socket.create_connection(address, 10) as stranger:
                stranger.sendall(line.encode(errors="surrogateescape") + b"\n")
                assert stranger.recv(1) == b""
        with socket.create_connection(address, 10) as member:
            assert "rank=0" in _told(member, "cmd=initack pmiid=0")
            with socket.create_connection(address, 10) as stranger:
                stranger.sendall(b"cmd=put key=a value=1\n")
                assert stranger.recv(1) == b""
            assert "value=nodes" in _told(member, "cmd=get key=PMI_process_mapping")
            assert "key_not_found" in _told(member, "cmd=get key=a")
            assert "barrier_out" in _told(member, "cmd=barrier_in")
            assert _told(member, "cmd=put key=b") == ""
        thread.join(10)
        assert not thread.is_alive()
