"""Training steps by ``flambeau.compile`` and ``torch.compile``, what compiling takes included.

    python benchmarks/compilers.py [--models digits MLP] [--steps 100] [--threads 1]

The same call of each library compiles the whole step.  The sides take turns step by step, so that a
busy minute meets all of them; the first twenty steps are those in which a side makes plans or
programs.  Without a C++ compiler torch has none.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import written
from harness import OURS, THEIRS
from sides import environment, libraries, set_threads

WARM = 20
"""Steps after which no side compiles any more."""
MODELS = dict([*written.LIBRARY, *written.WRITTEN])


def sides_of(model: str, modules: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The steps of one model: of both libraries, as they are and compiled."""
    found: dict[str, Callable[[], Any]] = {}
    for name, module in modules.items():
        found[name] = MODELS[model](module)["step"]
        found[f"{name}.compile"] = module.compile(MODELS[model](module)["step"])
    return found


def measured(steps: dict[str, Callable[[], Any]], count: int) -> dict[str, list[float]]:
    """Seconds of every step of every side."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(count):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - start)
            print(f"step {i}, {name} ...", file=sys.stderr, end="\033[K\r")
    print(file=sys.stderr, end="\033[K")
    return times


def table(model: str, times: dict[str, list[float]]) -> str:
    """Per side: the seconds of the first steps, and milliseconds of one of the others."""
    base = median(times[THEIRS][WARM:])
    lines = [f"{model:28}{f'first {WARM} steps':>16}{'then a step':>16}{'over ' + THEIRS:>12}"]
    for name, seconds in times.items():
        later = median(seconds[WARM:])
        first = f"{sum(seconds[:WARM]):.2f} s"
        lines.append(f"  {name:26}{first:>16}{f'{later * 1e3:.2f} ms':>16}{later / base:>12.2f}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["digits"], choices=MODELS)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.steps <= WARM:
        parser.error(f"--steps: more than {WARM}, since the first ones may compile")
    modules, missing = libraries([THEIRS])
    if missing:
        parser.error(f"torch: {missing[THEIRS]}")
    set_threads(modules, options.threads)
    print(", ".join(f"{name} {value}" for name, value in environment(modules).items()))
    for model in options.models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's compiler has some for programs of its own
            steps = sides_of(model, {name: modules[name] for name in (OURS, THEIRS)})
            print("\n" + table(model, measured(steps, options.steps)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
