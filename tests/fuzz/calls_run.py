"""``make fuzz SECONDS=60``: call everything that is public with what nobody hoped for.

Prints each kind of fault once, with a program of a few lines that shows it, and ends with 1 if
there is one.  ``--beside-torch`` runs the programs on PyTorch as well and counts where both refuse
alike.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from children import GIB, Child
from verdicts import FOREIGN, LIBRARY, OK, PYTHON, USER

CHILD = str(Path(__file__).with_name("verdicts.py"))
FAULTS = (FOREIGN, LIBRARY, "hang", "death")
LONGEST = 200
"""Characters of the line that says where a fault is: of one that hangs it is the program."""


@dataclass
class Report:
    """What the programs did, and the first program of each fault.

    Attributes:
        faults: (kind, class, place) to a program and the message.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    places: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    faults: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)

    def add(self, program: str, found: dict[str, str]) -> bool:
        """Count one program, and whether it shows a fault that none before it did."""
        kind = found["kind"]
        self.kinds[kind] += 1
        if kind in (OK, USER):
            return False
        key = kind, found["class"], found["where"]
        self.places[key] += 1
        new = key not in self.faults
        if new or len(program) < len(self.faults[key][0]):
            self.faults[key] = program, found["message"]
        return new and kind in FAULTS

    def text(self, kinds: Iterable[str] = FAULTS) -> str:
        """The faults of some kinds, each with its shortest program."""
        parts = []
        for key, (program, message) in sorted(self.faults.items()):
            if key[0] in kinds:
                where = ": ".join(key)[:LONGEST]
                parts.append(f"# {self.places[key]} × {where}\n# {message}\n{program}")
        return "\n".join(parts)


def ask(child: Child, program: str) -> dict[str, str]:
    """What a program did in a child."""
    answer = child.ask(program)
    if answer.kind == "answer":
        return answer.value
    lines = answer.value.splitlines()
    place = next((x for x in lines if "flambeau" in x), "") if answer.kind == "death" else program
    return {"kind": answer.kind, "class": lines[0], "where": place, "message": answer.value}


def main() -> int:
    """Fuzz until the time is over."""
    import programs

    parser = argparse.ArgumentParser(description="Call everything that is public.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--memory", type=float, default=3, help="address space in GiB")
    parser.add_argument("--python-text", action="store_true", help="list the interpreter's wording")
    parser.add_argument("--beside-torch", action="store_true")
    parser.add_argument(
        "--each", metavar="EXPRESSIONS", help="put each, separated by ';', at each place"
    )
    parser.add_argument("--never", action="store_true", help="list what is never called, and end")
    options = parser.parse_args()
    if options.never:
        never = programs.never_called()
        print(*never, sep="\n")
        print(f"{len(programs.targets())} functions and methods are called, {len(never)} never")
        return 0
    report, end, done = Report(), time.monotonic() + options.seconds, 0
    agreed: Counter[str] = Counter()
    memory = int(options.memory * GIB)
    with Child([CHILD, "flambeau"], memory=memory) as ours, Child([CHILD, "torch"]) as theirs:
        chosen = programs.batch(options.seed, options.first, options.count)
        if options.each is not None:
            made = programs.each(options.each.split(";"))
            chosen = islice(made, options.first, options.first + options.count)
        try:
            for program in chosen:
                found = ask(ours, program)
                if report.add(program, found):
                    print(f"# call {done}, {found}\n{program}", file=sys.stderr, flush=True)
                done += 1
                if options.beside_torch:
                    agreed[_agreement(found, ask(theirs, program))] += 1
                if time.monotonic() > end:
                    break
        except KeyboardInterrupt:
            pass  # what was found until then is told
    kinds = (*FAULTS, PYTHON) if options.python_text else FAULTS
    print(report.text(kinds))
    print(f"{done} calls:", ", ".join(f"{n} {kind}" for kind, n in report.kinds.most_common()))
    print(f"{ours.started} processes; next: --first {options.first + done}")
    if agreed:
        print(", ".join(f"{n} {what}" for what, n in agreed.most_common()))
    return int(any(key[0] in FAULTS for key in report.faults))


def _agreement(found: dict[str, str], reference: dict[str, str]) -> str:
    if reference["kind"] in ("death", "hang"):
        return f"PyTorch's {reference['kind']}"
    if not found["class"] and not reference["class"]:
        return "both accept"
    if not found["class"] or not reference["class"]:
        return "only PyTorch refuses" if reference["class"] else "only flambeau refuses"
    return "both refuse, " + ("" if found["class"] == reference["class"] else "not ") + "alike"


if __name__ == "__main__":
    sys.exit(main())
