"""Under MPICH's own mpiexec a program needs no variables and no launcher of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau_mpi import engine

MPIEXEC = Path(sys.executable).with_name("mpiexec")
PROGRAM = """
import flambeau as fb, flambeau.distributed as dist
dist.init_process_group("mpi")
x = fb.ones(3) * dist.get_rank()
dist.all_reduce(x)
group = dist.new_group([0, 1])
dist.barrier(group)
facts = x.tolist(), dist.get_world_size(), dist.get_node_local_rank() == dist.get_rank()
print(f"got {facts}\\n", end="", flush=True)  # in one piece: mpiexec mixes the parts of lines
"""


@pytest.mark.skipif(
    not MPIEXEC.exists() or engine.MpiEngine().unavailable() is not None,
    reason="needs MPI and its mpiexec",
)
def test_processes_of_mpiexec_are_one_job() -> None:
    ours = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    bare = {key: value for key, value in os.environ.items() if key not in ours}
    done = subprocess.run(
        [MPIEXEC, "-n", "3", sys.executable, "-c", PROGRAM],
        env=bare,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["got ([3.0, 3.0, 3.0], 3, True)"] * 3
