"""A machine that is busy while MPI starts."""

from __future__ import annotations

import subprocess
import sys

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
