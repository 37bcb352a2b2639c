"""Machines with little shared memory: containers have 64 MB of it if nobody asks for more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau_mpi import engine, start

PROGRAM = """
import flambeau as fb, flambeau.distributed as dist
dist.init_process_group("mpi")
x = fb.arange(300_000.0) + dist.get_rank()
dist.all_reduce(x)
right = bool((x == 4 * fb.arange(300_000.0) + 6).all())
if dist.get_rank() == 0:
    print("right", right)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("told", "room"),
    [
        ([("a", 800)], 800),
        ([("a", 800), ("a", 900), ("b", 500)], 400),
        ([("a", 10**12), ("b", 7), ("b", 9)], 3),
        ([("a", sys.maxsize)], sys.maxsize),
    ],
)
def test_the_machine_with_the_least_memory_counts(told: list[tuple[str, int]], room: int) -> None:
    assert start._room(told) == room


def _inside(size: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Four ranks whose machine has so much shared memory."""
    if shutil.which("unshare") is None or engine.MpiEngine().unavailable() is not None:
        pytest.skip("needs the program unshare, and MPI")
    mount = f"mount -t tmpfs -o size={size} none /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("namespaces of mounts are not permitted here")
    script = path / "train.py"
    script.write_text(PROGRAM)
    launch = "-m flambeau.distributed.launch --standalone --use_env --nproc_per_node=4"
    command = f'{mount} && exec "{sys.executable}" {launch} "{script}"'
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", command],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("size", ["5m", "17m", "64m"])
def test_processes_that_share_little_memory_work(size: str, tmp_path: Path) -> None:
    done = _inside(size, tmp_path)
    assert done.returncode == 0 and "right True" in done.stdout, done.stdout + done.stderr


def test_processes_without_shared_memory_say_so_where_mpi_would_be_killed(tmp_path: Path) -> None:
    done = _inside("64k", tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "MPI takes 1150000 bytes of shared memory for each process" in said, said
    assert "--shm-size" in said
