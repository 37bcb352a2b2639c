"""``make mutants``: kernels of the NumPy backend with one fault each, and whether the kit finds it.

Prints the mutants that survive without a reason in `survivors`, and those that are killed in spite
of one; ends with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import killing
import survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="of so many mutants one")
    parser.add_argument("--first", type=int, default=0, help="which of these")
    parser.add_argument("--only", default="", help="mutants of ops with this in their names")
    options = parser.parse_args()
    chosen = [m for m in killing.population() if options.only in m[0]]
    chosen = chosen[options.first :: options.every]
    started, outcomes, bad = time.perf_counter(), Counter[str](), 0
    tests, of = [], ""
    with killing.registered():
        for name, what, make in chosen:
            if name != of:
                tests, of = list(killing.cases(name)), name
                if said := killing.complaint(name, lambda kernel: lambda *a: kernel(*a), tests):
                    bad += 1
                    print(f"without a fault: {name}: {said}", flush=True)
            said = killing.complaint(name, make, tests)
            reason = survivors.reason(name, what)
            survives = "equivalent" if (name, what) in survivors.EQUIVALENT else "not found"
            outcome = "killed" if said else survives if reason else "SURVIVED"
            outcomes[outcome] += 1
            if outcome == "SURVIVED" or (said and reason):
                bad += 1
                print(f"{outcome}: {name}: {what}", said if reason else "", flush=True)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    wrong = max(len(chosen) - outcomes["equivalent"], 1)
    found = f"{outcomes['killed'] / wrong:.1%} of those that are wrong were killed"
    print(f"{len(chosen)} mutants: {counted}; {found}, in {time.perf_counter() - started:.0f} s")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
