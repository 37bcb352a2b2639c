"""Several processes: flambeau.distributed with MPI against torch.distributed with gloo, in turn.

    python benchmarks/processes.py [--ranks 2 4] [--sizes 1024 16384] [--models mlp lenet]
                                   [--queues 10 1000000] [--rounds 101] [--json]

Every rank is in a job of each library.  A round is a batch of all-reduces (or of training steps
with DistributedDataParallel) of one library and then of the other, in random order, each after a
barrier of its own.  A ratio is PyTorch's time divided by ours for an all-reduce, and ours divided
by PyTorch's for a step, as the targets are written: once of the smallest times, once of the
medians, because neighbours on the machine disturb both.

A round of `--queues` puts a new tensor of so many elements into a queue of ``multiprocessing`` and
waits until a child of either library has it and says so; its ratio is ours divided by PyTorch's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

OURS, THEIRS = "flambeau", "torch"
SIZES = [1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 128 << 20]
QUEUES = [10, 10_000, 1_000_000]
BATCH_BYTES = 1 << 20
"""About so many bytes are reduced in a batch, in at most 20 operations: short batches have a chance
to run between two interruptions."""

Sides = dict[str, tuple[Any, Callable[[], Any]]]


def taken_in_turn(sides: Sides, count: int, rounds: int, name: str) -> dict[str, list[float]]:
    """Seconds of one run of each side, in each round; all ranks shuffle alike."""
    found: dict[str, list[float]] = {side: [] for side in sides}
    order, shuffled = list(sides), random.Random(name)
    for number in range(rounds + 2):
        shuffled.shuffle(order)
        for side in order:
            library, run = sides[side]
            library.distributed.barrier()
            start = time.perf_counter()
            for _ in range(count):
                run()
            if number >= 2:  # the first two rounds warm up
                found[side].append((time.perf_counter() - start) / count)
    return found


def all_reduces(libraries: dict[str, Any], nbytes: int) -> tuple[Sides, int]:
    """An all-reduce of float32 for each library, and how many make a batch."""
    sides: Sides = {}
    for name, library in libraries.items():
        tensor = library.zeros(nbytes // 4)
        sides[name] = library, lambda reduce=library.distributed.all_reduce, t=tensor: reduce(t)
    return sides, max(1, min(20, BATCH_BYTES // nbytes))


def _mlp(nn: Any) -> Any:
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers)


def _lenet(nn: Any) -> Any:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


MODELS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "mlp": (_mlp, (64, 784)),
    "lenet": (_lenet, (64, 1, 28, 28)),
}


def steps(libraries: dict[str, Any], model: str) -> tuple[Sides, int]:
    """A training step of batch 64 with SGD for each library."""
    make, shape = MODELS[model]
    sides: Sides = {}
    for name, library in libraries.items():
        library.manual_seed(0)
        net = library.nn.parallel.DistributedDataParallel(make(library.nn))
        optimizer = library.optim.SGD(net.parameters(), lr=0.01)
        x, y = library.randn(*shape), library.randint(0, 10, (shape[0],))
        loss = library.nn.CrossEntropyLoss()

        def step(
            net: Any = net, optimizer: Any = optimizer, x: Any = x, y: Any = y, loss: Any = loss
        ) -> None:
            optimizer.zero_grad()
            loss(net(x), y).backward()
            optimizer.step()

        sides[name] = library, step
    return sides, 1


def _answering(sent: Any, answers: Any) -> None:
    """What the child of a queue does until it gets None."""
    while sent.get() is not None:
        answers.put(True)


def queues(sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    """The rows of tensors that travel through a queue to a forked child."""
    import torch
    import torch.multiprocessing

    import flambeau
    import flambeau.multiprocessing

    libraries: dict[str, Any] = {OURS: flambeau, THEIRS: torch}
    children: dict[str, tuple[Any, Any, Any]] = {}
    for name, library in libraries.items():
        library.set_num_threads(1)
        context = library.multiprocessing.get_context("fork")
        ends = context.Queue(), context.Queue()
        child = context.Process(target=_answering, args=ends, daemon=True)
        child.start()
        children[name] = child, *ends
    rows = []
    for size in sizes:
        found: dict[str, list[float]] = {name: [] for name in libraries}
        order, shuffled = list(libraries), random.Random(size)
        for number in range(rounds + 2):
            shuffled.shuffle(order)
            for name in order:
                tensor, (_, sent, answers) = libraries[name].ones(size), children[name]
                start = time.perf_counter()
                sent.put(tensor)
                answers.get()
                if number >= 2:
                    found[name].append(time.perf_counter() - start)
        rows.append({"name": f"queue {size}", "ranks": 2, "seconds": found})
    for child, sent, _ in children.values():
        sent.put(None)
        child.join()
    return rows


def rank(options: argparse.Namespace) -> None:
    """What each process does; rank 0 prints one line of JSON for each row."""
    import torch

    import flambeau

    libraries = {OURS: flambeau, THEIRS: torch}
    here, size = options.rank, options.ranks[0]
    for name, backend, port in ((OURS, "mpi", 0), (THEIRS, "gloo", 1)):
        library = libraries[name]
        library.set_num_threads(1)
        library.distributed.init_process_group(
            backend, f"tcp://127.0.0.1:{options.port[port]}", world_size=size, rank=here
        )
    work: list[tuple[str, Callable[[], tuple[Sides, int]], int]] = [
        (f"all-reduce {n}", lambda n=n: all_reduces(libraries, n), options.rounds)
        for n in options.sizes
    ]
    work += [(f"step {m}", lambda m=m: steps(libraries, m), options.rounds) for m in options.models]
    for name, make, rounds in work:
        sides, count = make()
        found = taken_in_turn(sides, count, rounds, name)
        if here == 0:
            print(json.dumps({"name": name, "ranks": size, "seconds": found}), flush=True)
    for library in libraries.values():
        library.distributed.destroy_process_group()


def _free_ports() -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def measured(size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one number of ranks."""
    words = [sys.executable, __file__, "--ranks", str(size), "--rounds", str(options.rounds)]
    words += ["--sizes", *map(str, options.sizes), "--models", *options.models]
    words += ["--port", *map(str, _free_ports())]
    started = [
        subprocess.Popen(
            [*words, "--rank", str(number)],
            stdout=None if number else subprocess.PIPE,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
            text=True,
        )
        for number in range(size)
    ]
    try:
        assert started[0].stdout is not None
        rows = [json.loads(line) for line in started[0].stdout if line.startswith("{")]
        if any(process.wait() for process in started):
            raise SystemExit("a rank failed")
    finally:
        for process in started:
            process.kill()
    return rows


def line(row: dict[str, Any]) -> str:
    """A row as text: smallest times and medians in milliseconds, and their ratios."""
    ours, theirs = row["seconds"][OURS], row["seconds"][THEIRS]
    cells = []
    for pick in (min, median):
        a, b = pick(ours), pick(theirs)
        ratio = b / a if row["name"].startswith("all-reduce") else a / b
        cells.append(f"{a * 1e3:9.3f} {b * 1e3:9.3f} {ratio:6.2f}")
    return f"{row['ranks']} ranks  {row['name']:22}{cells[0]}   {cells[1]}"


def main() -> None:
    """Run all ranks, or be one of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=[*MODELS])
    parser.add_argument("--queues", type=int, nargs="*", default=QUEUES, help="elements")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        rank(options)
        return
    if not options.json:
        print("milliseconds, smallest: ours, torch, ratio; median: ours, torch, ratio")
    if options.queues:
        rows = queues(options.queues, options.rounds)
        print(json.dumps(rows) if options.json else "\n".join(map(line, rows)), flush=True)
    for size in options.ranks:
        rows = measured(size, options)
        print(json.dumps(rows) if options.json else "\n".join(map(line, rows)), flush=True)


if __name__ == "__main__":
    main()
