"""Import time in fresh processes, and the size of what an installation puts on disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
DISTRIBUTION = {"flambeau": "flambeau-numpy", "torch": "torch", "numpy": "numpy"}
OWN = ("flambeau-core", "flambeau-nn", "flambeau-numpy")


def import_milliseconds(libraries: list[str], rounds: int) -> dict[str, float]:
    """Median time of `import` in a new interpreter, the libraries in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in libraries}
    with tempfile.TemporaryDirectory() as cache:
        # Whatever the environment says, bytecode is cached after the first import, as for users.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name in libraries:
                command = [sys.executable, "-c", IMPORT.format(name)]
                done = subprocess.run(
                    command, capture_output=True, text=True, check=True, env=environment
                )
                if number:  # the first round warms the caches
                    seconds[name].append(float(done.stdout))
    return {name: median(found) * 1e3 for name, found in seconds.items()}


def megabytes(library: str) -> tuple[float, float] | None:
    """Size of a library's own distributions and with all they require; None if not installed."""
    try:
        needed = _required(DISTRIBUTION[library])
        if library == "flambeau":
            needed |= _required("flambeau-nn")
            own = set(OWN)
        else:
            own = {DISTRIBUTION[library]}
    except PackageNotFoundError:
        return None
    sizes = {name: _size(distribution(name)) / 1e6 for name in needed}
    return sum(sizes[name] for name in own), sum(sizes.values())


def _required(name: str) -> set[str]:
    """The distribution and, at any depth, those that it requires without extras."""
    found, waiting = set(), [name]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for line in distribution(name).requires or []:
            required = re.match(r"[\w.-]+", line)
            if required is None or "extra ==" in line or required[0].startswith("flambeau["):
                continue
            other = re.sub(r"[-_.]+", "-", required[0]).lower()
            try:
                distribution(other)
            except PackageNotFoundError:  # required on other platforms only
                continue
            waiting.append(other)
    return found


def _size(found: Distribution) -> int:
    """Bytes of the files of a distribution without bytecode; of its sources if it is editable."""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        sources = Path(unquote(urlsplit(origin["url"]).path)) / "src"
        files = [path for path in sources.rglob("*") if path.is_file()]
    else:
        files = [Path(str(path.locate())) for path in found.files or []]
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc" and path.exists())
