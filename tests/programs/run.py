"""Run other people's PyTorch programs on PyTorch and on flambeau, and write what came of it.

    python tests/programs/run.py [--sources DIR] [--python PY] [--write] [NAME …]

``programs.toml`` says which programs, where they come from, what they need and what is compared.
Nothing of them is kept in the repository: each run takes them from GitHub, or from clones in DIR.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import judging  # noqa: E402  the folder is no package: its files are found once it is on the path
import page  # noqa: E402
import running  # noqa: E402
from table import Program, programs  # noqa: E402


def main() -> int:
    """Run the programs that the arguments name, all without any; 1 if one failed."""
    parser = argparse.ArgumentParser(
        description="Run other people's programs on PyTorch and on flambeau."
    )
    parser.add_argument("names", nargs="*", help="names or patterns of programs; all if none")
    parser.add_argument("--sources", type=Path, help="a folder of git clones, OWNER+NAME each")
    parser.add_argument("--python", default=sys.executable, help="has PyTorch and flambeau")
    parser.add_argument("--build", type=Path, default=Path("build/programs"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="run PyTorch even where it has run")
    parser.add_argument(
        "--alone",
        action="store_true",
        help="run what has a number to be held to, and is built or a suite, on flambeau only",
    )
    parser.add_argument("--write", action="store_true", help="write docs/programs.md")
    arguments = parser.parse_args()
    chosen = [
        program
        for program in programs()
        if not arguments.names
        or any(fnmatch.fnmatch(program.name, pattern) for pattern in arguments.names)
    ]
    place = running.Place(
        build=arguments.build.resolve(),
        # The link itself: what it points to is no virtual environment.
        python=os.path.abspath(arguments.python),
        sources=arguments.sources,
    )

    def one(program: Program) -> judging.Verdict:
        if arguments.alone and (program.build or (program.check == "suite" and program.least)):
            torch = running.NOT_BUILT
        else:
            torch = place.run(program, "torch", again=arguments.again)
        alone = (program.check == "suite" or not torch.built) and program.least > 0
        wanted = torch.status == 0 or alone
        flambeau = place.run(program, "flambeau", again=True) if wanted else None
        verdict = judging.judge(program, torch, flambeau)
        print(f"{verdict.state:9} {program.name}: {verdict.text}", flush=True)
        path = place.build / "verdicts" / f"{program.name.replace('/', '+')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"state": verdict.state, "text": verdict.text}))
        return verdict

    with ThreadPoolExecutor(arguments.jobs) as pool:
        verdicts = list(pool.map(one, chosen))
    counted = {state: sum(v.state == state for v in verdicts) for state in judging.STATES}
    print(", ".join(f"{count} {state}" for state, count in counted.items()))
    if arguments.write:
        page.write(place.build / "verdicts")
    return int(counted["fails"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
