"""Whether mypy and pyright accept what is right and refuse what is wrong.

    python tests/typing/check.py build/merged

Each line of ``mistakes.py`` that is marked must be an error to both, every other line of it and of
``typical.py`` to none.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = "# wrong"
Lines = set[tuple[str, int]]


def by_mypy(packages: Path) -> Lines:
    """The lines in which mypy finds an error."""
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--no-error-summary"]
    command += ["--cache-dir", str(packages.parent / "mypy"), *map(str, files())]
    environment = {**os.environ, "MYPYPATH": str(packages)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if run.returncode > 1:
        raise SystemExit(run.stdout + run.stderr)
    found = re.findall(r"^(.+):(\d+): error: ", run.stdout, re.MULTILINE)
    return {(Path(name).name, int(line)) for name, line in found}


def by_pyright(packages: Path) -> Lines:
    """The lines in which pyright finds an error."""
    settings = packages.parent / "typing.json"
    options = {"include": ["../tests/typing"], "extraPaths": [packages.name]}
    settings.write_text(json.dumps({**options, "pythonVersion": "3.11"}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(settings)]
    command += ["--pythonpath", sys.executable]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(run.stdout)["generalDiagnostics"]
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in found
        if each["severity"] == "error"
    }


def files() -> list[Path]:
    """The programs, without this one."""
    return [HERE / "typical.py", HERE / "mistakes.py"]


def marked() -> Lines:
    """The lines that are wrong."""
    return {
        (path.name, number)
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if line.endswith(MARK)
    }


def main(packages: Path) -> int:
    """Print what each checker sees differently; 1 if there is anything."""
    wrong = marked()
    own = {path.name for path in files()}
    status = 0
    for checker, found in (("mypy", by_mypy(packages)), ("pyright", by_pyright(packages))):
        found = {each for each in found if each[0] in own}
        for verdict, lines in (("accepts", wrong - found), ("refuses", found - wrong)):
            for name, number in sorted(lines):
                print(f"tests/typing/{name}:{number}: {checker} {verdict} this line")
                status = 1
    print(f"{len(wrong)} mistakes and {len(own)} programs, read by mypy and pyright")
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
