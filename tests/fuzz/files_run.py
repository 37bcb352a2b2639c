"""Loads mutated files in a child process and counts what became of them.

python tests/fuzz/files_run.py --first 0 --count 20000 --seconds 170
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from children import GIB, Child
from files_mutations import mutated

CHILD = Path(__file__).parent / "files_child.py"
MEMORY = 200 << 20  # beside 256 times the file


@dataclass(frozen=True)
class Outcome:
    """What became of a file: ``loaded``, ``refused``, or something that must not be."""

    seed: int
    kind: str
    verdict: str
    text: str
    seconds: float


def outcomes(seeds: range, seconds: float = 10.0) -> Iterator[Outcome]:
    """Loads the files of these seeds, one after the other."""
    with (
        Child([str(CHILD)], seconds=seconds, memory=4 * GIB) as child,
        tempfile.TemporaryDirectory() as folder,
    ):
        path = Path(folder) / "file"
        for seed in seeds:
            kind, data = mutated(seed)
            path.write_bytes(data)
            found = child.ask([str(path), True if seed % 8 == 7 else None, kind.partition(",")[0]])
            verdict, said = found.kind, str(found.value)
            if found.kind == "answer":
                verdict, said = found.value[0], " ".join(found.value[1:])
                if found.peak > MEMORY + 256 * len(data):
                    verdict = "memory"
            yield Outcome(seed, kind, verdict, said, found.seconds)


def main() -> int:
    """Runs the seeds that were asked for; the number of files that did harm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=170, help="the longest that it may take")
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    bad, slowest, end = 0, 0.0, time.monotonic() + options.seconds
    seed = options.first
    for found in outcomes(range(options.first, options.first + options.count)):
        tally[found.verdict] += 1
        seed, slowest = found.seed, max(slowest, found.seconds)
        if found.verdict not in ("loaded", "refused"):
            bad += 1
            print(f"seed {found.seed}, {found.kind}: {found.verdict}: {found.text[-1500:]}")
        if time.monotonic() > end:
            break
    print(f"seeds {options.first} to {seed}: {dict(tally)}, slowest {slowest:.2f} s")
    return bad


if __name__ == "__main__":
    sys.exit(min(main(), 100))
