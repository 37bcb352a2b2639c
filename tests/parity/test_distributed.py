"""Collectives, errors and gradients of several processes: the same program on PyTorch's gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
from flambeau.testing.ranks import free_port

pytest.importorskip("torch")

PROGRAM = """
import json, multiprocessing, sys
import MODULE as torch
import MODULE.distributed as dist

def caught(call):
    try:
        call()
    except Exception as error:
        return next(k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins")
    return None

def collectives(rank, size):
    found = {}
    def mine(*shape):
        count = 1
        for n in shape:
            count *= n
        return (torch.arange(count).reshape(shape) * 7 + rank * 3) % 11
    for op in ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        x = mine(2, 3)
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        found[op] = x.tolist()
    x = mine(4).float()
    dist.broadcast(x, 1)
    found["broadcast"] = x.tolist()
    x = mine(4).float()
    dist.reduce(x, 1)
    found["reduce"] = x.tolist() if rank == 1 else None
    rows = [torch.zeros(2, 2) for _ in range(size)]
    dist.all_gather(rows, mine(2, 2).float())
    found["all_gather"] = [row.tolist() for row in rows]
    whole = torch.zeros(size * 2, 2)
    dist.all_gather_into_tensor(whole, mine(2, 2).float())
    found["all_gather_into_tensor"] = whole.tolist()
    rows = [torch.zeros(3) for _ in range(size)] if rank == 0 else None
    dist.gather(mine(3).float(), rows, 0)
    found["gather"] = rows and [row.tolist() for row in rows]
    x = torch.zeros(3)
    dist.scatter(x, [mine(3).float() + i for i in range(size)] if rank == 1 else None, 1)
    found["scatter"] = x.tolist()
    x = torch.zeros(2)
    dist.reduce_scatter(x, [mine(2).float() * (i + 1) for i in range(size)])
    found["reduce_scatter"] = x.tolist()
    x = torch.zeros(size * 2)
    dist.all_to_all_single(x, mine(size * 2).float())
    found["all_to_all_single"] = x.tolist()
    objects = [None] * size
    dist.all_gather_object(objects, ["rank", rank])
    found["objects"] = objects
    group = dist.new_group([1])
    found["outside"] = [dist.get_rank(group), dist.get_world_size(group)]
    x = torch.zeros(3)
    if rank == 0:
        dist.send(mine(3).float(), 1, tag=5)
    else:
        found["recv"] = [dist.recv(x, tag=5), x.tolist()]
    one = torch.ones(2)
    found["errors"] = [
        caught(lambda: dist.all_reduce([1.0])),
        caught(lambda: dist.all_reduce(one, dist.ReduceOp.BAND)),
        caught(lambda: dist.all_gather([one, one.double()], one)),
        caught(lambda: dist.gather(one, None, rank)),
        caught(lambda: dist.new_group([0, 0])),
        caught(lambda: dist.new_group([0, 7])),
        caught(lambda: dist.send(one, rank)),
        caught(lambda: dist.init_process_group("gloo")),
        caught(lambda: dist.get_global_rank(dist.group.WORLD, 9)),
        caught(lambda: dist.broadcast(one)),
    ]
    return found

def gradients(rank, size):
    def filled(model):
        with torch.no_grad():
            for i, p in enumerate(model.parameters()):
                p.copy_((torch.arange(p.numel()).reshape(p.shape) * (i + 1.3)).sin() / 3)
        return model
    found = []
    nn = torch.nn
    for options in ({}, {"find_unused_parameters": True}, {"static_graph": True}):
        layers = nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2)
        model = filled(nn.Sequential(*layers))
        model = nn.parallel.DistributedDataParallel(model, **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for step in range(4):
            x = (torch.arange(12).reshape(4, 3) * 0.7 + rank + step).cos()
            optimizer.zero_grad()
            if step == 1:
                with model.no_sync():
                    model(x).square().sum().backward()
            model(x).square().sum().backward()
            optimizer.step()
        tensors = [*model.parameters(), model.module[1].running_mean]
        found.append([tensor.tolist() for tensor in tensors])
    return found

def rank(rank, size, port, backend, path):
    url = f"tcp://127.0.0.1:{port}"
    dist.init_process_group(backend, init_method=url, rank=rank, world_size=size)
    found = [collectives(rank, size), gradients(rank, size)]
    dist.barrier()
    with open(path + str(rank), "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()

if __name__ == "__main__":
    port, backend, path = sys.argv[1:]
    context = multiprocessing.get_context("fork")
    started = [context.Process(target=rank, args=(r, 2, port, backend, path)) for r in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    sys.exit(any(process.exitcode for process in started))
"""


def found(module: str, backend: str, folder: Any) -> list[Any]:
    path = folder / f"{module}_{backend}_"
    script = folder / f"run_{module}.py"
    script.write_text(PROGRAM.replace("MODULE", module))
    command = [sys.executable, script, str(free_port()), backend, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"{path.name}{rank}").read_text()) for rank in range(2)]


def close(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], (list, float)):
        assert len(ours) == len(theirs)
        for mine, yours in zip(ours, theirs, strict=True):
            close(mine, yours)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    else:
        assert ours == theirs


@pytest.fixture(scope="module")
def gloo(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return found("torch", "gloo", tmp_path_factory.mktemp("gloo"))


@pytest.mark.parametrize("backend", ["reference", "mpi"])
def test_a_program_of_two_processes_finds_what_gloo_finds(
    backend: str, gloo: list[Any], tmp_path: Any
) -> None:
    if backend == "mpi":
        pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    for ours, theirs in zip(found("flambeau", backend, tmp_path), gloo, strict=True):
        for name, value in theirs[0].items():
            assert ours[0][name] == value, name
        close(ours[1], theirs[1])


@pytest.mark.skipif(not fb.distributed.is_available(), reason="needs flambeau-mpi")
def test_the_benchmark_of_several_processes_has_a_ratio_for_each_row() -> None:
    script = Path(__file__).resolve().parents[2] / "benchmarks" / "processes.py"
    words = ["--ranks", "2", "--rounds", "2", "--sizes", "1024", "--models", "lenet"]
    words += ["--queues", "10"]
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [line.split() for line in done.stdout.splitlines()[1:]]
    names = [["queue", "10"], ["all-reduce", "1024"], ["step", "lenet"]]
    assert [line[2:4] for line in found] == names
    assert all(float(figure) > 0 for line in found for figure in line[4:])
