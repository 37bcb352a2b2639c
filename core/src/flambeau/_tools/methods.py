"""Write the generated files: tensor methods and the list of public functions.

    python -m flambeau._tools.methods [--check]

What a function is to programs stands beside it (`flambeau.ops.declaration.public`), how methods run
in the templates.  ``--check`` writes nothing and fails if a file is out of date.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Write or check the generated files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    options = parser.parse_args(arguments)
    # Late, for `bootstrap` has to begin without the package.
    from flambeau._tools.generated import generate

    stale = []
    for path, text in generate().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not options.check:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path.name} {'is out of date' if options.check else 'written'}")
    return 1 if stale and options.check else 0


def bootstrap() -> None:
    """Replace generated files that no longer import by empty ones, and start again.

    They import the families' functions: after one of those was renamed the package cannot be
    imported, and only this file, run by its path (``make generate``), can help.  If it cannot, the
    files are put back.
    """
    functions = "__all__: list[str] = []\n"
    empty = {
        PACKAGE / "_api/functions.py": functions,
        PACKAGE / "_api/inplace_functions.py": functions,
        PACKAGE / "_tensor/methods.py": "class TensorMethods: ...\n\n\ndef link() -> None: ...\n",
    }
    former = {path: path.read_text(encoding="utf-8") for path in empty if path.exists()}
    for path, text in empty.items():
        path.write_text(text, encoding="utf-8")
    code = "import sys; from flambeau._tools.methods import main; sys.exit(main(sys.argv[1:]))"
    status = subprocess.run([sys.executable, "-c", code, *sys.argv[1:]], check=False).returncode
    if status:
        for path, text in former.items():
            path.write_text(text, encoding="utf-8")
    sys.exit(status)


if __name__ == "__main__":
    try:
        importlib.import_module("flambeau")
    except ImportError:
        bootstrap()
    sys.exit(main())
