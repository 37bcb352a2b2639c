"""The table of results in the documents."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from table import programs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
_BY_HAND = "\n## Libraries of today\n"
"""From here on the page is not written, but kept."""
_NOT_RUN = {"state": "not run"}
_HEAD = """# Programs of other people

Written by `make programs ARGS=--write`, which runs public programs on PyTorch 2.13 first and then
with `python -m flambeau run`. What they are, where they come from, and what is edited in them
(numbers of rounds, and what today's PyTorch or NumPy no longer has: the same for both runs) is in
`tests/programs/programs.toml`. They read small data of our own making. "12 numbers equal": the
first 12 numbers that a program prints (losses, accuracies) are PyTorch's for the same seed, to
0.2 %. Programs that PyTorch itself does not run have no row, but are named with what it said.

"""


def write(verdicts: Path) -> None:
    """Write the page from the verdicts of all programs that have one."""
    rows: dict[str, list[str]] = defaultdict(list)
    counts = {"1": [0, 0], "2": [0, 0]}
    without: list[str] = []
    absent: dict[str, int] = defaultdict(int)
    weakly = 0
    for program in programs():
        kept = verdicts / f"{program.name.replace('/', '+')}.json"
        verdict = json.loads(kept.read_text()) if kept.exists() else _NOT_RUN
        if verdict is _NOT_RUN:
            absent[program.name.rpartition("/")[0]] += 1
            continue
        if verdict["state"] == "not run":
            without.append(f"* Without a verdict: {program.name}, {verdict['text']}.\n")
            continue
        weakly += verdict["text"] == "ends"
        counts[program.era][0] += verdict["state"] == "runs"
        counts[program.era][1] += 1
        heading, _, name = program.name.rpartition("/")
        text = verdict["text"].replace("|", "\\|")
        if verdict["state"] == "fails":
            text = f"**fails**: {program.reason or text}"
        rows[heading].append(f"| {name} | {text} |")
    parts = [_HEAD]
    for era, said in (("1", "programs of PyTorch 1"), ("2", "programs and libraries of today")):
        runs, total = counts[era]
        parts.append(f"* {runs} of {total} {said} run.\n")
    parts.append(f"* Of {weakly} of them nothing is compared: they end.\n")
    parts += without
    parts += [f"* Rows without a run: {count} of {title}.\n" for title, count in absent.items()]
    for heading, lines in rows.items():
        parts.append(
            f"\n## {heading}\n\n| program | result |\n|---|---|\n" + "\n".join(lines) + "\n"
        )
    kept_part = "".join(PAGE.read_text("utf-8").partition(_BY_HAND)[1:]) if PAGE.exists() else ""
    PAGE.write_text("".join(parts) + kept_part, "utf-8")
