"""What `srun` and `mpiexec` tell the processes that they start: rank, size, and where to meet.

PyTorch's variables (``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``) come first; these
stand in for those that are not set.
"""

from __future__ import annotations

import os
import re
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

_FIRST_PORT, _PORTS = 10240, 20000
"""Ports for jobs of Slurm, below those that systems give to connections."""
# Names of rank, size, rank on its machine, and number of processes on it.
_HYDRA = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
_OPEN_MPI = tuple(f"OMPI_COMM_WORLD_{n}" for n in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))

_PMIX = "PMIX_RANK"
"""All that PMIx says by variables, which do not have the number of processes."""


@dataclass(frozen=True)
class Start:
    """A process of a job, as who started it says.

    Attributes:
        rank: of the process.
        size: number of processes.
        local_rank: number of the process on its machine.
        url: where the processes can meet; empty if the starter does not say.
    """

    rank: int
    size: int
    local_rank: int
    url: str


def started(environment: Mapping[str, str] = os.environ) -> Start | None:
    """What the starter of this process has said, None if there was none.

    A script that Slurm's `sbatch` runs itself is one process; `srun` within it starts a job's.

    >>> slurm = {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_PROCID": "3", "SLURM_LOCALID":
    ...          "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NODELIST": "node[08-09]"}
    >>> started(slurm)
    Start(rank=3, size=4, local_rank=1, url='tcp://node08:13959')
    """
    if "SLURM_STEP_ID" in environment and "SLURM_PROCID" in environment:
        return _of_slurm(environment)
    for names in (_OPEN_MPI, _HYDRA):
        if all(name in environment for name in names[:2]):
            return _of_mpi(environment, names)
    if _PMIX in environment and environment.get("WORLD_SIZE"):
        rank = int(environment[_PMIX])
        return Start(rank, int(environment["WORLD_SIZE"]), rank, "")
    return None


def _of_slurm(environment: Mapping[str, str]) -> Start:
    size = environment.get("SLURM_STEP_NUM_TASKS") or environment["SLURM_NTASKS"]
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
    job = f"{environment.get('SLURM_JOB_ID')}.{environment['SLURM_STEP_ID']}"
    port = _FIRST_PORT + zlib.crc32(job.encode()) % _PORTS
    return Start(
        rank=int(environment["SLURM_PROCID"]),
        size=int(size),
        local_rank=int(environment.get("SLURM_LOCALID", "0")),
        url=f"tcp://{first_host(nodes)}:{port}" if nodes else "",
    )


def first_host(nodes: str) -> str:
    """The first machine of a list as Slurm writes it.

    >>> first_host("rack[2-3]node[08,11-12],login"), first_host("a,b")
    ('rack2node08', 'a')
    """
    found = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", found.group() if found else nodes)


def _of_mpi(environment: Mapping[str, str], names: tuple[str, ...]) -> Start:
    rank, size, local_rank, here = (environment.get(name, "") for name in names)
    # On one machine all processes are children of one, which has a number and a time of birth.
    path = f"{tempfile.gettempdir()}/flambeau-{os.getuid()}-{_parent()}"
    return Start(
        rank=int(rank),
        size=int(size),
        local_rank=int(local_rank or rank),
        url=f"file://{path}" if here == size else "",
    )


def _parent() -> str:
    number = os.getppid()
    try:
        with open(f"/proc/{number}/stat") as file:
            born = file.read().rpartition(")")[2].split()[19]
    except OSError:
        return str(number)
    return f"{number}-{born}"
