"""Jobs that Slurm's srun or an mpiexec starts: nothing else needs to be said."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.distributed._starters import Start, first_host, started
from flambeau.testing.ranks import run_ranks, values

PYTORCHS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def _slurm(rank: int, size: int) -> dict[str, str]:
    """The variables of a task of srun, two on each machine."""
    return {
        "SLURM_JOB_ID": f"{os.getppid()}",
        "SLURM_STEP_ID": "2",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank % 2),
        "SLURM_NTASKS": "64",  # of the allocation, of which the step has a part
        "SLURM_STEP_NUM_TASKS": str(size),
        "SLURM_STEP_NODELIST": "localhost,other[01-20]",
    }


def _joined(rank: int, size: int, more: dict[str, str]) -> list[Any]:
    for name in PYTORCHS:
        os.environ.pop(name, None)
    os.environ.update(_slurm(rank, size) | more)
    dist.init_process_group("reference")
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, dist.get_rank())
    return [*found, dist.get_node_local_rank()]


@pytest.mark.parametrize("more", [{}, {"MASTER_ADDR": "127.0.0.1"}], ids=["slurm", "and address"])
def test_tasks_of_srun_are_one_job(more: dict[str, str]) -> None:
    outcomes = values(run_ranks(_joined, 3, more, join=False))
    assert outcomes == [[0, 1, 2, rank % 2] for rank in range(3)]


def test_pytorchs_variables_come_before_those_of_the_starter() -> None:
    outcomes = values(run_ranks(_told_twice, 2, join=False))
    assert outcomes == [(0, 2, 0), (1, 2, 1)]


def _told_twice(rank: int, size: int) -> tuple[int, int, int]:
    os.environ.update(_slurm(1 - rank, 7) | {"LOCAL_RANK": str(rank)})
    dist.init_process_group("reference")
    return dist.get_rank(), dist.get_world_size(), dist.get_node_local_rank()


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node7", "node7"),
        ("node[3-5,9]", "node3"),
        ("a[01,03]b[7-9]c,d[1-2]", "a01b7c"),
        ("x,y[1-2]", "x"),
    ],
)
def test_the_first_machine_of_a_list_is_found(nodes: str, first: str) -> None:
    assert first_host(nodes) == first


def test_a_script_of_sbatch_is_no_task() -> None:
    script = _slurm(0, 2)
    del script["SLURM_STEP_ID"]
    assert started(script) is None
    assert started({}) is None


@pytest.mark.parametrize(
    "names",
    [
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        [f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")],
    ],
)
def test_processes_of_mpiexec_meet_by_themselves_on_one_machine_only(names: list[str]) -> None:
    here = started(dict(zip(names, ("5", "6", "5", "6"), strict=True)))
    spread = started(dict(zip(names, ("5", "6", "2", "3"), strict=True)))
    assert here is not None and here.url.startswith("file://")
    assert spread == Start(5, 6, 2, "")


def test_pmix_says_the_rank_alone() -> None:
    assert started({"PMIX_RANK": "3"}) is None
    assert started({"PMIX_RANK": "3", "WORLD_SIZE": "4"}) == Start(3, 4, 3, "")


def test_where_to_meet_is_asked_for_where_the_starter_does_not_say_it() -> None:
    facts = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}
    script = 'import flambeau.distributed as d; d.init_process_group("reference")'
    bare = {key: value for key, value in os.environ.items() if key not in PYTORCHS}
    done = subprocess.run(
        [sys.executable, "-c", script], env=bare | facts, capture_output=True, text=True
    )
    assert "environment variable MASTER_PORT expected, but not set" in done.stderr


def test_the_file_where_processes_of_mpiexec_meet_is_gone_in_the_end(tmp_path: Path) -> None:
    assert values(run_ranks(_met, 2, str(tmp_path), join=False)) == [1.0, 1.0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["link", "dangling", "linked", "writable"])
def test_a_file_that_somebody_put_where_processes_of_mpiexec_meet_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.touch(0o600)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in PYTORCHS:
        monkeypatch.delenv(name, raising=False)
    for name, value in zip(
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"), "0101", strict=True
    ):
        monkeypatch.setenv(name, value)
    start = started()
    assert start is not None
    place = Path(start.url.removeprefix("file://"))
    if kind == "link":
        place.symlink_to(victim)
    elif kind == "dangling":
        place.symlink_to(tmp_path / "made")
    elif kind == "linked":
        place.hardlink_to(victim)
    else:
        place.touch()
        place.chmod(0o666)
    with pytest.raises(RuntimeError, match="is not theirs alone"):
        dist.init_process_group("reference")
    assert not victim.read_bytes()
    assert not (tmp_path / "made").exists()


def _met(rank: int, size: int, folder: str) -> float:
    for name in PYTORCHS:
        os.environ.pop(name, None)
    names = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
    os.environ.update(zip(names, map(str, (rank, size, rank, size)), strict=True))
    os.environ["TMPDIR"] = folder
    dist.init_process_group("reference")
    x = fb.tensor([float(rank)])
    dist.all_reduce(x)
    return x.item()
