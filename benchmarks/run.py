"""flambeau against torch and other libraries: one interleaved run, ratios and their spread.

    python benchmarks/run.py [--compare torch,numpy,jax,tinygrad,chainer] [--quick] [--rows add]
                             [--threads 1 2] [--check] [--write] [--strict] [--json]
                             [--device cuda]

Every row runs on all sides in turn (harness.py); all of them make fresh outputs.  With one thread
the clock is the CPU time of the calling thread, with more it is wall time.  `--write` makes
docs/benchmarks.md with its chart, and recorded.json, which `--check` compares with.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import chains
import op_sweep
import report
import small_ops
import training
import written
from harness import BARE, OURS, THEIRS, Result, Row, measure
from installed import first_step_milliseconds, import_milliseconds, megabytes, peak_memory
from sides import OTHERS, environment, libraries, set_threads

BUDGETS = Path(__file__).with_name("budgets.toml")
SWEPT = 1_000_000
"""Elements of the operations of which the table has the geometric mean."""


def rows(wanted: str) -> list[Row]:
    """The rows whose names contain `wanted`: small operations and training steps."""
    return [
        row
        for row in [*small_ops.ROWS, *training.ROWS, *written.ROWS, *chains.ROWS]
        if wanted in row.name
    ]


def run(options: argparse.Namespace, sides: dict[str, Any]) -> list[Result]:
    """All rows for every number of threads."""
    results = []
    for threads in options.threads:
        set_threads(sides, threads)
        chosen = [row for row in rows(options.rows) if threads in row.threads]
        results += _measured(chosen, sides, threads, options.quick)
    return results


def sweep(options: argparse.Namespace, sides: dict[str, Any]) -> list[Result]:
    """Operations on a million elements, with one thread, against torch."""
    set_threads(sides, 1)
    both = {name: side for name, side in sides.items() if name in (OURS, THEIRS)}
    return _measured(op_sweep.rows([SWEPT], ""), both, 1, options.quick)


def _measured(chosen: list[Row], sides: dict[str, Any], threads: int, quick: bool) -> list[Result]:
    rounds, batch = (9, 0.001) if quick else (41, 0.004)
    results = []
    for row in chosen:
        print(f"{row.name}, {threads} thread(s) ...", file=sys.stderr, end="\033[K\r")
        results.append(measure(row, sides, threads, rounds, batch))
    print(file=sys.stderr, end="\033[K")
    return results


def memory(names: list[str]) -> list[dict[str, Any]]:
    """The most memory of every training step with Adam, each in a process of its own."""
    found = []
    for row in training.ROWS:
        if not row.name.endswith(" step, Adam"):
            continue
        print(f"memory of {row.name} ...", file=sys.stderr, end="\033[K\r")
        sides: dict[str, Any] = {}
        errors = {}
        for name in names:
            try:
                sides[name] = peak_memory(name, row.name)
            except subprocess.CalledProcessError as error:
                errors[name] = error.stderr.strip().split("\n")[-1]
        found.append({"name": row.name, "megabytes": sides, "errors": errors})
    print(file=sys.stderr, end="\033[K")
    return found


def recorded(
    facts: dict[str, Any],
    missing: dict[str, str],
    results: list[Result],
    swept: list[Result],
    fresh: dict[str, Any],
) -> dict[str, Any]:
    """All that was measured, as it goes into recorded.json."""
    ratios = {result.name.rpartition(" ")[0]: result.ratio(THEIRS) for result in swept}
    known = {name: ratio[0] for name, ratio in ratios.items() if ratio}
    return {
        "environment": facts,
        "missing": missing,
        "rows": [_row(result) for result in results],
        "sweep": {name: round(ratio, 3) for name, ratio in sorted(known.items())},
        "sweep mean": geometric_mean(known.values()) if known else None,
        **fresh,
    }


def _row(result: Result) -> dict[str, Any]:
    ratios = {name: result.ratio(name) for name in result.sides if name != OURS}
    return {
        "name": result.name,
        "threads": result.threads,
        "microseconds": {name: _rounded(result.microseconds(name)) for name in result.sides},
        "ratio": {name: value and _rounded(value[0]) for name, value in ratios.items()},
        "spread": {name: value and _rounded(value[1]) for name, value in ratios.items()},
        "errors": {name: side.error for name, side in result.sides.items() if side.error},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--compare", default="torch,numpy", help=f"of {','.join(OTHERS)}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a budget is missed")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a ratio got worse")
    parser.add_argument("--write", action="store_true", help="write page, chart and recorded.json")
    parser.add_argument("--device", default="", help="an accelerator: other rows; see device.py")
    options = parser.parse_args(arguments)
    if options.device:
        import device

        return device.main(options)
    wanted = [name for name in options.compare.split(",") if name]
    if unknown := sorted(set(wanted) - set(OTHERS)):
        parser.error(f"--compare: {', '.join(unknown)} not among {', '.join(OTHERS)}")
    if options.write and (options.rows or THEIRS not in wanted):
        parser.error("--write needs all rows, and torch among the compared")

    # Before the libraries are loaded here: memory and load are those of fresh processes.
    sides, missing = libraries(wanted)
    for name, why in missing.items():
        print(f"{name}: {why}; its columns stay empty", file=sys.stderr)
    facts = environment(sides) | {"quick": options.quick, "threads": options.threads}
    results = run(options, sides)
    swept: list[Result] = []
    fresh: dict[str, Any] = {}
    if not options.rows:
        swept = sweep(options, sides) if THEIRS in sides else []
        both = [name for name in (OURS, THEIRS) if name in sides]
        count = 3 if options.quick else 11
        fresh = {
            "memory": memory(both),
            "first step": first_step_milliseconds(both, count),
            "import": import_milliseconds(list(sides), count),
            "megabytes": {name: size for name in sides if (size := megabytes(name))},
        }
    now = recorded(facts, missing, results, swept, fresh)
    budgets = tomllib.loads(BUDGETS.read_text())
    verdicts = report.judge(now, budgets)
    if options.json:
        print(json.dumps(now | {"budgets": verdicts}, indent=1))
    else:
        print(report.text(now, verdicts, [OURS, THEIRS, BARE, *OTHERS]))
    missed = any(value is None or value > limit for _, value, limit in verdicts)
    failed = options.strict and missed
    if options.check:
        then = json.loads(report.RECORD.read_text())
        for line in report.differences(then, now):
            print(f"note: {line}", file=sys.stderr)
        worse = report.worse(then, now, everything=not options.rows)
        for line in worse:
            print(f"worse: {line}", file=sys.stderr)
        failed = failed or bool(worse)
    if options.write:
        report.write(now, budgets)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
