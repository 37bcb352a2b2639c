"""The start of MPI: addresses of the newer kind, and ranks that die before all have begun."""

from __future__ import annotations

import os
import signal
import socket
import time
from datetime import timedelta

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.testing.ranks import free_port, run_ranks, values
from flambeau_mpi import start


def _no_ipv6() -> str | None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return str(error)
    return None


def _sum(rank: int, size: int, url: str) -> float:
    dist.init_process_group("mpi", init_method=url, rank=rank, world_size=size)
    x = fb.ones(1)
    dist.all_reduce(x)
    return x.item()


@pytest.mark.skipif(_no_ipv6() is not None, reason=f"no IPv6 here: {_no_ipv6()}")
def test_the_master_may_have_an_address_of_ipv6() -> None:
    url = f"tcp://[::1]:{free_port()}"
    assert values(run_ranks(_sum, 2, url, join=False)) == [2.0, 2.0]


def test_mpich_gets_an_address_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "nowhere.invalid")
    assert start._known_to_mpich("10.0.0.1") == "10.0.0.1"
    assert start._known_to_mpich("::1") == "127.0.0.1"
    with pytest.raises(RuntimeError, match=r"fe80::1%lo.*nowhere\.invalid.*MASTER_ADDR"):
        start._known_to_mpich("fe80::1%lo")


def _die_first(rank: int, size: int) -> float:
    if rank == 0:
        # In place of what answers the others: the process dies.
        start._manager = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
    begun = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="the start of mpi: rank 0 died"):
        dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    return time.monotonic() - begun


def test_a_death_before_mpi_has_started_is_named_long_before_the_timeout() -> None:
    outcomes = run_ranks(_die_first, 3, join=False)
    assert outcomes[0].code == -signal.SIGKILL
    times = values(outcomes[1:])
    assert max(times) < 20, times
