"""Two network namespaces joined by a cable act as two machines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from flambeau_mpi import engine

PROGRAM = """
import flambeau as fb, flambeau.distributed as dist
dist.init_process_group("mpi")
x = fb.arange(300_000.0) + dist.get_rank()
dist.all_reduce(x)
found = [None, None]
dist.all_gather_object(found, dist.get_rank())
print("right", bool((x == 2 * fb.arange(300_000.0) + 1).all()), found)
dist.destroy_process_group()
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def machines() -> Iterator[list[str]]:
    """The names of two namespaces with addresses 10.77.0.1 and 10.77.0.2."""
    if shutil.which("ip") is None or engine.MpiEngine().unavailable() is not None:
        pytest.skip("needs the program ip, and MPI")
    mark = f"fb{os.getpid()}"
    names = [f"{mark}a", f"{mark}b"]
    made = []
    try:
        for name in names:
            try:
                ip("netns", "add", name)
            except subprocess.CalledProcessError:
                pytest.skip("network namespaces are not permitted here")
            made.append(name)
        ip("link", "add", f"{mark}va", "type", "veth", "peer", "name", f"{mark}vb")
        for i, name in enumerate(names, 1):
            device = f"{mark}v{'ab'[i - 1]}"
            ip("link", "set", device, "netns", name)
            ip("-n", name, "addr", "add", f"10.77.0.{i}/24", "dev", device)
            for each in ("lo", device):
                ip("-n", name, "link", "set", each, "up")
        yield names
    finally:
        for name in made:
            ip("netns", "del", name)


def test_two_machines_are_one_job(machines: list[str]) -> None:
    started = []
    for rank, name in enumerate(machines):
        facts = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": 29511}
        env = {**os.environ, **{key: str(value) for key, value in facts.items()}}
        command = ["ip", "netns", "exec", name, sys.executable, "-c", PROGRAM]
        started.append(
            subprocess.Popen(
                command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    try:
        for process in started:
            said, errors = process.communicate(timeout=120)
            assert said == "right True [0, 1]\n", errors
    finally:
        for process in started:
            process.kill()
            process.wait()
