"""What a fresh process takes: time to import, to the first step, memory; and what lies on disk."""

from __future__ import annotations

import contextlib
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
# The clock starts before the benchmark's own modules, which both sides import alike.
FIRST_STEP = """\
import time; t = time.perf_counter()
import sys; sys.path.insert(0, {folder!r})
import {library} as library
import training
library.set_num_threads(1)
training.lenet(library)["step"]()
print(time.perf_counter() - t)
"""
STEPS = 5  # as many make the largest memory: the optimiser's state exists after the first
PEAK = """\
import sys; sys.path.insert(0, {folder!r})
import installed, training
import {library} as library
library.set_num_threads(1)
library.ones(1).add(1)
before = installed.peak_megabytes()
step = next(row.setup for row in training.ROWS if row.name == {row!r})(library)["step"]
for _ in range({steps}): step()
print(before, installed.peak_megabytes())
"""
DISTRIBUTION = {"flambeau": "flambeau-numpy", "torch": "torch"}
OWN = ("flambeau-core", "flambeau-nn", "flambeau-numpy")
ACCELERATORS = ("flambeau-native", "flambeau-onednn")


def import_milliseconds(libraries: list[str], rounds: int) -> dict[str, float]:
    """Median time of `import` in a new interpreter, the libraries in turn."""
    return _milliseconds({name: IMPORT.format(name) for name in libraries}, rounds)


def first_step_milliseconds(libraries: list[str], rounds: int) -> dict[str, float]:
    """Median time of import, building LeNet and its first training step, in a new interpreter."""
    folder = str(Path(__file__).parent)
    programs = {name: FIRST_STEP.format(folder=folder, library=name) for name in libraries}
    return _milliseconds(programs, rounds)


def peak_memory(library: str, row: str) -> tuple[float, float]:
    """Largest resident megabytes of a new process: before the first step, and after some."""
    folder = str(Path(__file__).parent)
    program = PEAK.format(folder=folder, library=library, row=row, steps=STEPS)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    before, after = map(float, done.stdout.split())
    return before, after


def peak_megabytes() -> float:
    """The most memory that this process has had resident."""
    try:
        # Not ru_maxrss: across fork and exec that begins with what the parent had.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _milliseconds(programs: dict[str, str], rounds: int) -> dict[str, float]:
    """Median of what the programs print, each in a new interpreter, in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as cache:
        # Whatever the environment says, bytecode is cached after the first import, as for users.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name, program in programs.items():
                command = [sys.executable, "-c", program]
                done = subprocess.run(
                    command, capture_output=True, text=True, check=True, env=environment
                )
                if number:  # the first round warms the caches
                    seconds[name].append(float(done.stdout))
    return {name: median(found) * 1e3 for name, found in seconds.items()}


def megabytes(library: str) -> tuple[float, float] | None:
    """Size of a library's own distributions and with all they require; None if not installed.

    With flambeau go the accelerators that are installed.
    """
    try:
        needed = _required(DISTRIBUTION.get(library, library))
        own = {DISTRIBUTION.get(library, library)}
        if library == "flambeau":
            needed |= _required("flambeau-nn")
            own = set(OWN)
            for name in ACCELERATORS:
                with contextlib.suppress(PackageNotFoundError):
                    needed |= _required(name)
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
