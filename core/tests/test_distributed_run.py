"""The command of ``torchrun``, also for programs that import torch; what is asked beforehand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.distributed import run
from flambeau.testing.ranks import free_port

ADDS = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("reference")
x = torch.ones(1) * dist.get_rank()
dist.all_reduce(x)
told = map(os.environ.get, "RANK LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK ROLE_NAME".split())
print(torch.__version__, *told, x.item(), *sys.argv[1:])
dist.destroy_process_group()
"""


def command(script: Path, *options: str, module: str = "run", version: str = "2.13") -> list[str]:
    script.write_text(ADDS)
    torch = ["-m", "flambeau", "run", "--as", version, "-m", f"torch.distributed.{module}"]
    return [sys.executable, *torch, *options, str(script), "--lr=1"]


def lines(done: Any) -> list[str]:
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize("version", ["1.2", "2.13"])
def test_programs_for_pytorch_are_started_by_its_command(tmp_path: Path, version: str) -> None:
    options = "--nnodes=1", "--nproc-per-node=2", "--rdzv-id=5", "--standalone", "--role=ours"
    done = subprocess.run(
        command(tmp_path / "script.py", *options, version=version), capture_output=True, text=True
    )
    for rank, line in enumerate(lines(done)):
        told, *rest = line.removeprefix(f"{rank}: ").split()
        assert told.startswith(version)
        assert rest == [str(rank), str(rank), "2", "0", "ours", "1.0", "--lr=1"]


def test_the_older_command_gives_the_local_rank_as_an_argument(tmp_path: Path) -> None:
    options = "--nproc_per_node=2", "--standalone"
    done = subprocess.run(
        command(tmp_path / "script.py", *options, module="launch"), capture_output=True, text=True
    )
    assert [line.split()[-2:] for line in lines(done)] == [
        [f"--local_rank={rank}", "--lr=1"] for rank in range(2)
    ]


def test_machines_are_numbered_where_they_meet(tmp_path: Path) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    options = "--nnodes=2:2", "--nproc-per-node=1", "--rdzv-backend=c10d"
    full = command(tmp_path / "script.py", *options, f"--rdzv-endpoint={endpoint}")
    both = [subprocess.Popen(full, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = sorted(line for one in both for line in one.communicate(timeout=120)[0].splitlines())
    assert [one.returncode for one in both] == [0, 0]
    told = [line.split()[2:] for line in found]
    assert told == [[str(r), "0", "1", str(r), "default", "1.0", "--lr=1"] for r in range(2)]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--nnodes=1:2", "one number of machines"),
        ("--nproc-per-node=many", "auto, gpu or cpu, not 'many'"),
        ("--nproc-per-node=0", "at least one process"),
        ("--rdzv-endpoint=here:there", "ADDRESS:PORT, not 'here:there'"),
        ("--node-rank=1", "node_rank is below nnodes"),
    ],
)
def test_arguments_without_sense_are_named(capsys: Any, option: str, said: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        run.main([option, "script.py"])
    assert said in capsys.readouterr().err


def test_processes_are_counted_by_processors_or_devices() -> None:
    assert run._count("3") == 3
    assert run._count("cpu") >= 1
    if not fb.cuda.is_available():
        assert run._count("auto") == run._count("cpu")
        with pytest.raises(ValueError, match="no CUDA device"):
            run._count("gpu")


def test_the_engine_of_a_type_of_devices_has_a_name() -> None:
    assert dist.get_default_backend_for_device("cpu") == "gloo"
    assert dist.get_default_backend_for_device(fb.device("cuda", 1)) == "nccl"
    with pytest.raises(ValueError, match="not registered for device : meta"):
        dist.get_default_backend_for_device("meta")


def test_groups_are_counted_and_say_what_serves_them() -> None:
    dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert dist.get_pg_count() == 1
        dist.new_group([0])
        assert dist.get_pg_count() == 2
        assert dist.get_backend_config() == "cpu:reference"
    finally:
        dist.destroy_process_group()
    with pytest.raises(ValueError, match="not been initialized"):
        dist.get_pg_count()


def test_the_level_of_debugging_is_the_environments(monkeypatch: Any) -> None:
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(RuntimeError, match="must be OFF, INFO, or DETAIL"):
        dist.get_debug_level()
