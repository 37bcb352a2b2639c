"""How threads of several processes get along: does a second process, or a second thread, cost?

    python benchmarks/threads.py [--libraries flambeau torch] [--seconds 2] [--policies]

A training step runs in one process with one thread (the measure of all ratios), in one with as many
threads as there are processors, and in as many processes as there are processors with one thread
and with all threads each. With `--policies` every way in which idle threads may wait is measured;
otherwise the one that flambeau chooses.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import training

# Read by the libraries when they are loaded, so each needs its own processes.
POLICIES: dict[str, dict[str, str]] = {
    "as it comes": {},
    "OpenMP and OpenBLAS spin": {"OMP_WAIT_POLICY": "active", "OPENBLAS_THREAD_TIMEOUT": "26"},
    "OpenMP sleeps, OpenBLAS spins": {
        "OMP_WAIT_POLICY": "passive",
        "OPENBLAS_THREAD_TIMEOUT": "26",
    },
    "OpenMP spins, OpenBLAS sleeps": {"OMP_WAIT_POLICY": "active", "OPENBLAS_THREAD_TIMEOUT": "4"},
    "both sleep": {"OMP_WAIT_POLICY": "passive", "OPENBLAS_THREAD_TIMEOUT": "4"},
    "OpenMP spins shortly, OpenBLAS sleeps": {
        "GOMP_SPINCOUNT": "1000",
        "OPENBLAS_THREAD_TIMEOUT": "4",
    },
    "both spin shortly": {"GOMP_SPINCOUNT": "10000", "OPENBLAS_THREAD_TIMEOUT": "14"},
}
COUNTED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def pointwise(library: Any) -> dict[str, Any]:
    """A million numbers through a chain of operations of one pass each."""
    x = library.rand(1_000_000)
    return {"step": lambda: ((x * 2.0 + 1.0).sigmoid() * x).sum()}


WORKLOADS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "MLP": training.mlp(False),
    "LeNet": training.lenet,
    "Transformer": training.transformer(False),
    "pointwise": pointwise,
}


def work(library: str, workload: str, threads: int, seconds: float) -> None:
    """In a process of its own: say when ready, wait for the signal, print seconds per step."""
    module = importlib.import_module(library)
    module.set_num_threads(threads)
    step = WORKLOADS[workload](module)["step"]
    for _ in range(3):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    steps = 0
    while (passed := time.perf_counter() - begin) < seconds:
        step()
        steps += 1
    print(passed / steps)


def together(
    library: str,
    workload: str,
    processes: int,
    threads: int,
    seconds: float,
    policy: dict[str, str],
) -> float:
    """Mean seconds per step of `processes` that run at the same time.

    Raises:
        RuntimeError: a process failed, or took twenty times as long as it was given.
    """
    environment = {k: v for k, v in os.environ.items() if k not in COUNTED} | policy
    command = [sys.executable, __file__, "--work", library, workload, str(threads), str(seconds)]
    started = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(processes)
    ]
    try:
        for process in started:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{library}, {workload}: a process did not start")
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=60 + 20 * seconds)[0] for process in started]
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{library}, {workload}: {processes} processes hang") from None
    finally:
        for process in started:
            process.kill()
            process.wait()
    return sum(map(float, answers)) / len(answers)


def ratios(
    library: str,
    workload: str,
    processors: int,
    seconds: float,
    policy: dict[str, str],
    measured: Callable[..., float] = together,
) -> dict[str, float]:
    """Time per step of each process over that of one process with one thread.

    ``1x1`` is that time itself. The best there is: 1/processors for the second column, 1 for the
    last two, whose quotient says what it costs that threads of processes meet.
    """
    alone = measured(library, workload, 1, 1, seconds, policy)
    combinations = {(1, processors), (processors, 1), (processors, processors)}
    found = {"1x1": alone}
    for processes, threads in sorted(combinations - {(1, 1)}):
        time_of_step = measured(library, workload, processes, threads, seconds, policy)
        found[f"{processes}x{threads}"] = time_of_step / alone
    return found


def lines(options: argparse.Namespace) -> Iterator[str]:
    """The table, line by line as it is measured."""
    n = options.processors
    columns = list(dict.fromkeys([f"1x{n}", f"{n}x1", f"{n}x{n}"]))
    policies = POLICIES if options.policies else {"as it comes": POLICIES["as it comes"]}
    yield f"{'processes x threads:':48}{'1x1 ms':>10}" + "".join(f"{c:>8}" for c in columns)
    for name, policy in policies.items():
        yield name
        for workload in options.workloads:
            for library in options.libraries:
                found = ratios(library, workload, n, options.seconds, policy)
                figures = "".join(f"{found[column]:>8.2f}" for column in columns)
                yield f"  {workload + ', ' + library:46}{found['1x1'] * 1e3:>10.3f}{figures}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--libraries", nargs="+", default=["flambeau", "torch"])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--processors", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--policies", action="store_true", help="all ways to wait, not only ours")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        library, workload, threads, seconds = options.work
        work(library, workload, int(threads), float(seconds))
        return 0
    for line in lines(options):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
