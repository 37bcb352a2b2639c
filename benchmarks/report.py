"""What was measured as text, as a page with a chart, and against what was measured before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import chart
from harness import OURS, THEIRS
from sides import OTHERS, is_busy

Record = Mapping[str, Any]
Verdict = tuple[str, float | None, float]  # what, its value or None if there is none, the limit

RECORD = Path(__file__).with_name("recorded.json")
DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, CHART = DOCS / "benchmarks.md", DOCS / "benchmarks.svg"
TOLERATED = 1.2
"""A ratio that grew by more than this factor has got worse."""

MEAN = "operations on a million elements, geometric mean"
COMMAND = "make bench"
_FACTS = ("quick", "threads", "load", "date", "processor", "processors", "system")


def over_torch(record: Record) -> dict[str, float | None]:
    """Every ratio of flambeau to torch by its name; None where a side failed."""
    found: dict[str, float | None] = {}
    for row in record["rows"]:
        if THEIRS in row["ratio"]:
            found[f"{row['name']}, {_threads(row['threads'])}"] = row["ratio"][THEIRS]
    if record.get("sweep mean") is not None:
        found[f"{MEAN}, 1 thread"] = record["sweep mean"]
    found |= {f"{name}, 10⁶ elements": ratio for name, ratio in record.get("sweep", {}).items()}
    for row in record.get("memory", ()):
        sides = row["megabytes"]
        both = sides[OURS][1] / sides[THEIRS][1] if {OURS, THEIRS} <= set(sides) else None
        found[f"peak memory, {row['name']}"] = both
    for name, key in (("import and first step", "first step"), ("import", "import")):
        sides = record.get(key, {})
        if {OURS, THEIRS} <= set(sides):
            found[name] = sides[OURS] / sides[THEIRS]
    sizes = record.get("megabytes", {})
    if {OURS, THEIRS} <= set(sizes):
        found["installed size"] = sizes[OURS][1] / sizes[THEIRS][1]
    return found


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def targets(record: Record, budgets: Mapping[str, Any]) -> dict[str, float]:
    """The limits of the ratios that were measured, by their names in `over_torch`."""
    ratios = over_torch(record)
    limits = {f"{n}, 1 thread": v for n, v in budgets.get("ratio_to_torch", {}).items()}
    limits |= {f"{n}, 2 threads": v for n, v in budgets.get("ratio_to_torch_2_threads", {}).items()}
    for name, limit in budgets.get("fresh_ratio_to_torch", {}).items():
        # Peak memory has one limit for all rows.
        limits |= {key: limit for key in ratios if key == name or key.startswith(f"{name}, ")}
    return {name: limit for name, limit in limits.items() if name in ratios}


def judge(record: Record, budgets: Mapping[str, Any]) -> list[Verdict]:
    """For every budget of what was measured: its name, the measured value and the limit."""
    ratios = over_torch(record)
    limits = targets(record, budgets)
    found: list[Verdict] = [(f"{n}, ours/torch", ratios[n], limits[n]) for n in limits]
    for name, limit in budgets.get("import_milliseconds", {}).items():
        if name in record.get("import", {}):
            found.append((f"import {name}, ms", record["import"][name], limit))
    for name, limit in budgets.get("installed_megabytes", {}).items():
        if name in record.get("megabytes", {}):
            found.append((f"{name} on disk, MB", record["megabytes"][name][0], limit))
    return found


def worse(then: Record, now: Record, everything: bool = True) -> list[str]:
    """What got worse by more than a fifth, with both ratios; what fails now; what is missing.

    Args:
        then: what was recorded.
        now: what was measured.
        everything: whether all rows should have been measured.
    """
    before, after = over_torch(then), over_torch(now)
    lines = []
    for name, old in before.items():
        if name not in after:
            # A machine with other threads, or a choice of rows, measures less.
            threads = {f"{_threads(n)}" for n in now["environment"].get("threads", ())}
            stated = name.rpartition(", ")[2]
            if everything and (not stated.endswith(("thread", "threads")) or stated in threads):
                lines.append(f"{name}: recorded {_ratio(old)}, not measured now")
            continue
        new = after[name]
        if old is None:
            continue
        if new is None:
            lines.append(f"{name}: recorded {_ratio(old)}, fails now")
        elif new > old * TOLERATED:
            lines.append(f"{name}: {_ratio(old)} -> {_ratio(new)} of torch's, {new / old:.2f}-fold")
    return lines


def differences(then: Record, now: Record) -> list[str]:
    """Why the two may not be comparable: machines, versions, load, length of the rounds."""
    old, new = then["environment"], now["environment"]
    names = [n for n in {**old, **new} if n not in (OURS, "date", "load", "threads")]
    lines = [
        f"{name}: recorded with {old.get(name)}, now {new.get(name)}"
        for name in names
        if old.get(name) != new.get(name)
    ]
    for word, facts in (("recorded", old), ("now", new)):
        if is_busy(facts):
            lines.append(f"{word} on a busy machine: load {facts['load']}")
    return lines


def text(record: Record, verdicts: Iterable[Verdict], order: Iterable[str]) -> str:
    """The tables for a terminal."""
    facts = record["environment"]
    sides = [name for name in dict.fromkeys(order) if name in facts and name in _measured(record)]
    lines = [", ".join(f"{name} {value}" for name, value in facts.items()), ""]
    lines += ["microseconds per run (median), ratios with half their interquartile range", ""]
    width = max((len(row["name"]) for row in record["rows"]), default=0)
    heads = "".join(f"{name:>12}" for name in sides)
    ratios = "".join(f"  ours/{name:<12}" for name in sides if name != OURS)
    lines.append(f"{'':{width}} threads{heads} {ratios}")
    for row in record["rows"]:
        times = "".join(f"{_number(row['microseconds'].get(name)):>12}" for name in sides)
        cells = "".join(f"  {_spread(row, name):<17}" for name in sides if name != OURS)
        lines.append(f"{row['name']:{width}} {row['threads']:>7}{times} {cells}".rstrip())
        lines += [f"    {name}: {error}" for name, error in row["errors"].items()]
    lines.append("")
    if record.get("sweep"):
        worst = sorted(record["sweep"].items(), key=lambda item: -item[1])[:10]
        lines.append(f"{MEAN}: {_ratio(record['sweep mean'])}; the worst: ")
        lines[-1] += ", ".join(f"{name} {_ratio(ratio)}" for name, ratio in worst)
    for row in record.get("memory", ()):
        peaks = ", ".join(f"{n} {after:.0f} MB" for n, (_, after) in row["megabytes"].items())
        lines.append(f"peak memory, {row['name']}: {peaks}")
        lines += [f"    {name}: {error}" for name, error in row["errors"].items()]
    for name, time in record.get("first step", {}).items():
        lines.append(f"import and first step, {name}: {time:.0f} ms")
    for name, time in record.get("import", {}).items():
        lines.append(f"import {name}: {time:.0f} ms")
    for name, (own, total) in record.get("megabytes", {}).items():
        lines.append(f"{name} on disk: {own:.1f} MB, with all it requires {total:.1f} MB")
    lines.append("")
    for name, value, limit in verdicts:
        verdict = "not measured" if value is None else "pass" if value <= limit else "FAIL"
        lines.append(f"{verdict:<13}{name:<62}{_ratio(value):>8}   limit {limit:g}")
    return "\n".join(lines)


def _measured(record: Record) -> set[str]:
    return {name for row in record["rows"] for name in row["microseconds"]}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


_ratio = _number


def _spread(row: Mapping[str, Any], name: str) -> str:
    ratio = row["ratio"].get(name)
    return "–" if ratio is None else f"{ratio:.2f} ± {row['spread'][name] / 2:.2f}"


def page(record: Record, budgets: Mapping[str, Any]) -> str:
    """The text of docs/benchmarks.md."""
    facts = record["environment"]
    command = COMMAND + (' ARGS="--quick --write"' if facts.get("quick") else "")
    counts = " and ".join(str(n) for n in facts.get("threads", ()))
    lines = [
        "# Benchmarks",
        "",
        "flambeau's time divided by PyTorch's, from one interleaved run in which all sides make",
        "fresh outputs: below 1 is faster than PyTorch. One thread is timed by the CPU time of the",
        f"thread, more by wall time. `{command}` writes this page; "
        f"`{COMMAND} ARGS=--check` compares with it.",
        "",
    ]
    if is_busy(facts):
        lines += [
            f"**Measured on a busy machine** (load {facts['load']} on {facts['processors']} "
            "processors at the start): ratios with two threads, and of fresh processes, mean "
            "little.",
            "",
        ]
    if facts.get("quick"):
        lines += ["Few and short rounds (`--quick`): the last digit is noise.", ""]
    versions = [f"{n} {v}" for n, v in facts.items() if n not in _FACTS]
    lines += [
        f"{facts['date']}, {facts['processor']}, {facts['processors']} processors, "
        f"{counts} threads; {', '.join(versions)}.",
        "",
    ]
    if record.get("missing"):
        absent = "; ".join(f"{name}: {why}" for name, why in record["missing"].items())
        lines += [f"Not compared: {absent}.", ""]
    lines += [f"![Ratios to PyTorch]({CHART.name})", ""]
    lines += _overview(record, budgets)
    lines += _rows(record)
    lines += _sweep(record, budgets)
    lines += _fresh(record)
    return "\n".join(lines).rstrip() + "\n"


def _overview(record: Record, budgets: Mapping[str, Any]) -> list[str]:
    ratios, limits = over_torch(record), targets(record, budgets)
    reasons = budgets.get("reasons", {})
    lines = ["## Targets", "", "| what | ours / PyTorch's | target | |", "|---|---|---|---|"]
    for name, limit in limits.items():
        value = ratios[name]
        if value is None:
            verdict = "not measured"
        elif value <= limit:
            verdict = "met"
        else:
            verdict = f"missed by {100 * (value / limit - 1):.0f} %"
        why = reasons.get(name) or reasons.get(name.rpartition(", ")[0])
        if why and verdict != "met":
            verdict += f": {why}"
        lines.append(f"| {name} | {_ratio(value)} | {limit:g} | {verdict} |")
    return [*lines, ""]


def _rows(record: Record) -> list[str]:
    sides = [name for name in (THEIRS, *OTHERS) if name in _measured(record)]
    sides = list(dict.fromkeys(sides))
    lines = [
        "## All rows",
        "",
        "Median of the rounds' ratios with half their interquartile range; times are flambeau's.",
        "",
        "| row | threads | µs | " + " | ".join(f"/ {name}" for name in sides) + " |",
        "|---|---|---|" + "---|" * len(sides),
    ]
    for row in record["rows"]:
        cells = " | ".join(_spread(row, name) for name in sides)
        time = _number(row["microseconds"].get(OURS))
        lines.append(f"| {row['name']} | {row['threads']} | {time} | {cells} |")
    failed = [(r["name"], n, e) for r in record["rows"] for n, e in r["errors"].items()]
    if failed:
        lines += ["", "Failed: " + "; ".join(f"{r} on {n} ({e})" for r, n, e in failed) + "."]
    return [*lines, ""]


def _sweep(record: Record, budgets: Mapping[str, Any]) -> list[str]:
    if not record.get("sweep"):
        return []
    slower = sorted((-ratio, name) for name, ratio in record["sweep"].items() if ratio > 1)
    named = ", ".join(f"{name} {-ratio:.2f}" for ratio, name in slower) or "none"
    reasons = budgets.get("reasons", {})
    known = [(name, reasons.get(f"{name}, 10⁶ elements")) for _, name in slower]
    why = [f"* {name}: {reason}" for name, reason in known if reason]
    return [
        "## Operations on a million elements",
        "",
        f"One thread, fresh outputs: the geometric mean of {len(record['sweep'])} ratios is "
        f"{_ratio(record['sweep mean'])}. Slower than PyTorch: {named}.",
        "",
        *(why and [*why, ""]),
        "| operation | ours / PyTorch's |",
        "|---|---|",
        *(f"| {name} | {ratio:.2f} |" for name, ratio in record["sweep"].items()),
        "",
    ]


def _fresh(record: Record) -> list[str]:
    lines = []
    if record.get("memory"):
        lines += [
            "## Memory",
            "",
            "Most resident memory of a process that takes five steps, in MB; before the first step "
            "in brackets.",
            "",
            "| step | flambeau | PyTorch | ratio |",
            "|---|---|---|---|",
        ]
        for row in record["memory"]:
            sides = row["megabytes"]
            cells = [
                f"{sides[n][1]:.0f} ({sides[n][0]:.0f})" if n in sides else "–"
                for n in (OURS, THEIRS)
            ]
            ratio = over_torch({"rows": (), "memory": [row]})[f"peak memory, {row['name']}"]
            lines.append(f"| {row['name']} | {cells[0]} | {cells[1]} | {_ratio(ratio)} |")
        lines.append("")
    table = []
    for title, key in (("import, ms", "import"), ("import and first step, ms", "first step")):
        sides = record.get(key, {})
        table.append((title, {name: f"{value:.0f}" for name, value in sides.items()}))
    sizes = record.get("megabytes", {})
    table.append(("own files, MB", {name: f"{own:.1f}" for name, (own, _) in sizes.items()}))
    table.append(
        ("with all it requires, MB", {n: f"{total:.1f}" for n, (_, total) in sizes.items()})
    )
    names = list(dict.fromkeys(name for _, cells in table for name in cells))
    if names:
        lines += [
            "## Start and size",
            "",
            "| | " + " | ".join(names) + " |",
            "|---|" + "---|" * len(names),
        ]
        for title, cells in table:
            lines.append(
                f"| {title} | " + " | ".join(cells.get(name, "–") for name in names) + " |"
            )
        lines.append("")
    return lines


def write(record: Record, budgets: Mapping[str, Any]) -> None:
    """The record, its chart and its page."""
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    CHART.write_text(chart.draw(over_torch(record)), "utf-8")
    PAGE.write_text(page(record, budgets), "utf-8")
