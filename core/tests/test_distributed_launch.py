"""The launcher: what processes find, failures, restarts, signals, and the older package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed.deprecated as old
from flambeau.testing.ranks import free_port, run_ranks, values

TELLS = """
import os, sys
print(os.environ["RANK"], os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"], *sys.argv[1:])
"""
JOINS = """
import flambeau as fb, flambeau.distributed as dist
dist.init_process_group("reference")
x = fb.ones(1)
dist.all_reduce(x)
print("sum", x.item())
"""
DIES_ONCE = """
import os, signal, sys
import flambeau as fb, flambeau.distributed as dist
dist.init_process_group("reference")
x = fb.ones(1)
dist.all_reduce(x)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(x)
print("sum", x.item())
"""
SLEEPS = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[-1] + sys.argv[1][-1]).write_text(str(child.pid))
time.sleep(600)
"""


def launch(tmp_path: Path, text: str, *options: str, arguments: Any = ()) -> Any:
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "flambeau.distributed.launch", *options]
    return subprocess.run(
        [*command, str(script), *arguments], capture_output=True, text=True, timeout=120
    )


def test_processes_find_their_numbers_and_arguments(tmp_path: Path) -> None:
    done = launch(tmp_path, TELLS, "--nproc_per_node=2", "--standalone", arguments=["--x", "1"])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "0: 0 0 2 --local_rank=0 --x 1",
        "1: 1 1 2 --local_rank=1 --x 1",
    ]


def test_output_can_be_plain_and_go_to_files(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    done = launch(tmp_path, TELLS, "--use_env", "--no-prefix", f"--log-dir={logs}", "--standalone")
    assert done.stdout == "0 0 1\n"
    assert (logs / "0.log").read_text() == "0 0 1\n"


def test_several_machines_are_one_job(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(JOINS)
    common = ["--nnodes=2", f"--master_port={free_port()}", "--nproc_per_node=1", "--use_env"]
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "flambeau.distributed.launch",
                *common,
                f"--node_rank={node}",
                str(script),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for node in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert said == ["0: sum 2.0\n", "1: sum 2.0\n"]
    assert [process.returncode for process in started] == [0, 0]


def test_a_killed_rank_is_named_with_its_signal_and_all_start_again(tmp_path: Path) -> None:
    options = ["--nproc_per_node=2", "--standalone", "--use_env", "--max-restarts=1"]
    done = launch(tmp_path, DIES_ONCE, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sum 4.0") == 2
    assert "launch: rank 1 was killed by SIGKILL" in done.stderr
    assert "rank 1 was killed by SIGKILL (" in done.stderr  # as the other rank tells it


def test_the_exit_code_is_that_of_the_first_failure(tmp_path: Path) -> None:
    text = "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(600)"
    start = time.monotonic()
    done = launch(tmp_path, text, "--nproc_per_node=2", "--standalone")
    assert done.returncode == 7
    assert "rank 1 exited with code 7" in done.stderr
    assert time.monotonic() - start < 60


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_all_processes_and_their_children(number: int, tmp_path: Path) -> None:
    script, mark = tmp_path / "script.py", tmp_path / "pid"
    script.write_text(SLEEPS)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "flambeau.distributed.launch",
            "--nproc_per_node=2",
            "--standalone",
            str(script),
            str(mark),
        ],
    )
    files = [Path(f"{mark}{rank}") for rank in range(2)]
    deadline = time.monotonic() + 60
    while not all(file.exists() and file.read_text() for file in files):
        assert time.monotonic() < deadline, "the ranks did not start"
        time.sleep(0.05)
    children = [int(file.read_text()) for file in files]
    assert all(map(_alive, children))
    os.kill(process.pid, number)
    assert process.wait(30) == 128 + number
    deadline = time.monotonic() + 60
    while any(map(_alive, children)):
        assert time.monotonic() < deadline, "a child is left"
        time.sleep(0.05)


def _older(rank: int, size: int, path: str) -> list[Any]:
    old.init_process_group("reference", init_method=f"file://{path}", world_size=size)
    rank = old.get_rank()
    x = fb.tensor([rank + 1.0])
    old.all_reduce(x, op=old.reduce_op.SUM)
    rows = [fb.empty(1) for _ in range(size)]
    old.all_gather(rows, fb.tensor([float(rank)]))
    if rank == 0:
        old.scatter(x, scatter_list=[fb.tensor([5.0]), fb.tensor([6.0])])
        old.gather(x, gather_list=rows)
        old.send(x, 1)
        old.isend(x, 1).wait()
    else:
        old.scatter(x, src=0)
        old.gather(x, dst=0)
        assert old.recv(x) == 0
        old.irecv(x, 0).wait()
    old.broadcast(x, 0)
    old.reduce(x, 1)
    old.barrier(old.new_group())
    return [rank, x.item(), [row.item() for row in rows]]


def test_the_older_package_numbers_ranks_itself(tmp_path: Path) -> None:
    found = values(run_ranks(_older, 2, str(tmp_path / "job"), join=False))
    assert sorted(found) == [[0, 5.0, [5.0, 6.0]], [1, 10.0, [0.0, 1.0]]]
    assert list(tmp_path.iterdir()) == []


TRAINS = """
import os, signal, sys
import flambeau as fb, flambeau.distributed as dist
path, kill_at = sys.argv[1], int(sys.argv[2])
dist.init_process_group("reference")
rank = dist.get_rank()
fb.manual_seed(0)
model = fb.nn.Linear(5, 3)
optimizer = fb.optim.Adam(model.parameters(), lr=0.01)
start = 0
if os.path.exists(path + ".pt"):
    saved = fb.load(path + ".pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    start = saved["step"]
parallel = fb.nn.parallel.DistributedDataParallel(model)
for step in range(start, 12):
    if step == kill_at and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    x = (fb.arange(20).view(4, 5) * 0.3 + step + rank).sin()
    optimizer.zero_grad()
    parallel(x).square().sum().backward()
    optimizer.step()
    if step % 3 == 2 and rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        fb.save({**state, "step": step + 1}, path + ".tmp")
        os.replace(path + ".tmp", path + ".pt")
print(start, [p.tolist() for p in model.parameters()])
dist.destroy_process_group()
"""


def test_after_a_death_training_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    options = ["--nproc_per_node=2", "--standalone", "--use_env", "--max-restarts=1"]
    said = []
    for kill_at in (-1, 7):
        path = tmp_path / f"state{kill_at}"
        done = launch(tmp_path, TRAINS, *options, arguments=[str(path), str(kill_at)])
        assert done.returncode == 0, done.stderr
        said.append([line.split(" ", 2) for line in sorted(done.stdout.splitlines())])
    undisturbed, restarted = said
    assert [start for _, start, _ in undisturbed] == ["0", "0"]
    assert [start for _, start, _ in restarted] == ["6", "6"]
    assert len({weights for run in said for _, _, weights in run}) == 1
