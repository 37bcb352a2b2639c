"""A machine that is busy while MPI starts, and one whose processes cannot read each other."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.testing.ranks import run_ranks, values

SLOW = """
import time
from datetime import timedelta
import flambeau as fb
from flambeau_mpi import start

world = start._world
start._world = lambda mpi: (time.sleep(1.5), world(mpi))[1]
fb.distributed.init_process_group(
    "gloo", store=fb.distributed.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=0.5)
)
x = fb.ones(2)
fb.distributed.all_reduce(x)
print(x.tolist(), "mpi4py.MPI" in __import__("sys").modules)
"""


def test_mpi_starts_though_loading_it_takes_longer_than_the_timeout_of_the_job() -> None:
    child = subprocess.run(
        [sys.executable, "-c", SLOW], capture_output=True, text=True, timeout=120, check=False
    )
    assert child.stdout.split("\n")[0] == "[1.0, 1.0] True", child.stderr[-2000:]


def _large(rank: int, size: int) -> float:
    x = fb.ones(16 << 20)
    dist.barrier()
    if rank:
        time.sleep(0.5)  # who waits has begun to sleep between its tests
    start = time.monotonic()
    dist.all_reduce(x)
    assert x[0] == x[-1] == size
    return time.monotonic() - start


def test_large_arrays_do_not_wait_for_each_cell_of_shared_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0")
    seconds = max(values(run_ranks(_large, 2, engine="mpi")))
    assert seconds < 6, seconds  # 10 and more by one cell for each nap
