"""flambeau against torch and bare NumPy: one interleaved run, ratios and their spread.

    python benchmarks/run.py [--quick] [--rows add] [--threads 1] [--json] [--strict]

Every row runs on all sides in turn (harness.py); all of them make fresh outputs.  With one thread
the clock is the CPU time of the calling thread, with more it is wall time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import tomllib
from pathlib import Path
from typing import Any

import small_ops
import training
from harness import BARE, OURS, THEIRS, Result, measure
from installed import import_milliseconds, megabytes
from threadpoolctl import threadpool_limits

BUDGETS = Path(__file__).with_name("budgets.toml")


def libraries() -> dict[str, Any]:
    """The installed sides, flambeau first; without flambeau there is nothing to measure."""
    found = {OURS: importlib.import_module(OURS)}
    for name in (THEIRS, BARE):
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError:
            print(f"{name} is not installed: its columns stay empty", file=sys.stderr)
    return found


def set_threads(sides: dict[str, Any], count: int) -> None:
    """All sides to `count` threads; bare NumPy's are those of the BLAS that it has loaded."""
    for name in (OURS, THEIRS):
        if name in sides:
            sides[name].set_num_threads(count)
    threadpool_limits(count, user_api="blas")


def run(options: argparse.Namespace, sides: dict[str, Any]) -> list[Result]:
    rounds, batch = (9, 0.001) if options.quick else (41, 0.004)
    results = []
    for threads in options.threads:
        set_threads(sides, threads)
        for row in [*small_ops.ROWS, *training.ROWS]:
            if threads in row.threads and options.rows in row.name:
                print(f"{row.name}, {threads} thread(s) ...", file=sys.stderr, end="\033[K\r")
                results.append(measure(row, sides, threads, rounds, batch))
    print(file=sys.stderr, end="\033[K")
    return results


def table(results: list[Result]) -> str:
    """Times in microseconds; ratios with their interquartile range."""
    width = max((len(result.name) for result in results), default=0)
    head = f"{'':{width}} threads {OURS:>10} {THEIRS:>10} {BARE:>10}"
    lines = [f"{head}   {'ours/torch':<14}{'ours/numpy':<14}"]
    for result in results:
        times = [_number(result.microseconds(side), 2) for side in (OURS, THEIRS, BARE)]
        ratios = [_ratio(result.ratio(side)) for side in (THEIRS, BARE)]
        columns = " ".join(f"{text:>10}" for text in times)
        line = f"{result.name:{width}} {result.threads:>7} {columns}   {''.join(ratios)}"
        lines.append(line.rstrip())
        lines += [f"    {name}: {side.error}" for name, side in result.sides.items() if side.error]
    return "\n".join(lines)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _ratio(value: tuple[float, float] | None) -> str:
    return f"{'–' if value is None else f'{value[0]:.2f} ± {value[1] / 2:.2f}':<14}"


def judge(
    results: list[Result], imports: dict[str, float], sizes: dict[str, Any]
) -> list[tuple[str, float | None, float]]:
    """For every budget of what was measured: its name, the measured value and the limit."""
    budgets = tomllib.loads(BUDGETS.read_text())
    single = {result.name: result for result in results if result.threads == 1}
    lines: list[tuple[str, float | None, float]] = []
    for name, limit in budgets["ratio_to_torch"].items():
        if name in single:
            ratio = single[name].ratio(THEIRS)
            lines.append((f"{name}, ours/torch", ratio and ratio[0], limit))
    for name, limit in budgets["import_milliseconds"].items():
        if name in imports:
            lines.append((f"import {name}, ms", imports[name], limit))
    for name, limit in budgets["installed_megabytes"].items():
        if sizes.get(name):
            lines.append((f"{name} on disk, MB", sizes[name][0], limit))
    return lines


def environment(sides: dict[str, Any]) -> dict[str, Any]:
    versions = {name: getattr(module, "__version__", "?") for name, module in sides.items()}
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        **{name: str(version) for name, version in versions.items()},
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a budget is missed")
    options = parser.parse_args(arguments)

    sides = libraries()
    facts = environment(sides)
    results = run(options, sides)
    imports: dict[str, float] = {}
    sizes: dict[str, Any] = {}
    if not options.rows:
        imports = import_milliseconds(list(sides), 3 if options.quick else 11)
        sizes = {name: megabytes(name) for name in sides}
    verdicts = judge(results, imports, sizes)
    if options.json:
        print(json.dumps(_as_json(facts, results, imports, sizes, verdicts), indent=1))
    else:
        print(", ".join(f"{name} {value}" for name, value in facts.items()))
        print("\nmicroseconds per run (median), ratios with half their interquartile range\n")
        print(table(results))
        for name in imports:
            size = sizes[name]
            disk = (
                f"{size[0]:.1f} MB, with all it requires {size[1]:.1f} MB" if size else "a folder"
            )
            print(f"import {name:<10}{imports[name]:>8.0f} ms   on disk: {disk}")
        print()
        for name, value, limit in verdicts:
            verdict = "not measured" if value is None else "pass" if value <= limit else "FAIL"
            print(f"{verdict:<13}{name:<48}{_number(value, 2):>8}   limit {limit:g}")
    missed = any(value is None or value > limit for _, value, limit in verdicts)
    return 1 if options.strict and missed else 0


def _as_json(
    facts: dict[str, Any],
    results: list[Result],
    imports: dict[str, float],
    sizes: dict[str, Any],
    verdicts: list[tuple[str, float | None, float]],
) -> dict[str, Any]:
    rows = []
    for result in results:
        ratios = {f"ours/{side}": result.ratio(side) for side in (THEIRS, BARE)}
        rows.append(
            {
                "name": result.name,
                "threads": result.threads,
                "microseconds": {name: result.microseconds(name) for name in result.sides},
                "ratio": {name: value and value[0] for name, value in ratios.items()},
                "interquartile_range": {name: value and value[1] for name, value in ratios.items()},
                "errors": {name: side.error for name, side in result.sides.items() if side.error},
            }
        )
    budgets = [{"name": name, "measured": value, "limit": limit} for name, value, limit in verdicts]
    return {
        "environment": facts,
        "rows": rows,
        "import_milliseconds": imports,
        "installed_megabytes": sizes,
        "budgets": budgets,
    }


if __name__ == "__main__":
    raise SystemExit(main())
