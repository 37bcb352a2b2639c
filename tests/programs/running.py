"""Getting a program, and running it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tarfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

import data
from table import Program, programs

HERE = Path(__file__).resolve().parent
CLOCK = 10
"""How many seconds on the clock there are for each of processor time: machines are busy."""
HOUR = 3600
"""The most that this makes of a limit: what waits for nothing is to end some time."""
BUILT = ".built"
"""A file that a folder has once what is in it was compiled."""
_SEEDS = (
    "import random as _r, numpy as _n, torch as _t; _r.seed(1); _n.random.seed(1); "
    "_t.manual_seed(1)\n"
)


@dataclass(frozen=True)
class Outcome:
    """What a run left: the exit status (0 if it was to be stopped, and was), output, seconds."""

    status: int
    output: str
    errors: str
    seconds: float
    built: bool = True


NOT_BUILT = Outcome(1, "", "", 0.0, built=False)


@dataclass(frozen=True)
class Place:
    """Where programs are brought to and run.

    Attributes:
        build: a folder for all of it.
        python: the interpreter.
        sources: a folder of git clones, ``OWNER+NAME`` or ``OWNER+NAME/repo``; GitHub if None.
    """

    build: Path
    python: str
    sources: Path | None

    def run(self, program: Program, library: str, again: bool) -> Outcome:
        """Run a program on ``torch`` or ``flambeau``, or recall the last run of the same row."""
        name = program.name.replace("/", "+")
        key = hashlib.sha256(repr(program).encode()).hexdigest()[:16]
        kept = self.build / "outcomes" / f"{name}.{library}.json"
        if not again and kept.exists():
            told = json.loads(kept.read_text())
            if told.pop("key") == key and told["status"] == 0:
                return Outcome(**told)
        folder = self._fresh(program, library)
        outcome = self._compile(program, library, folder)
        if outcome.built:
            outcome = self._start(program, library, folder)
            if outcome.status == 0 and not any(each.needs == program.name for each in programs()):
                # All of them together take 28 GB. What failed is left to be looked at.
                shutil.rmtree(folder, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"key": key, **asdict(outcome)}))
        return outcome

    def _fresh(self, program: Program, library: str) -> Path:
        folder = self._work(program, library)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        # pytest looks for options upwards, and must not find those of the tests of flambeau.
        (self.build / "work" / "pytest.ini").touch()
        self._bring(program, folder)
        return folder

    def _work(self, program: Program, library: str) -> Path:
        return self.build / "work" / program.name.replace("/", "+") / library

    def _compile(self, program: Program, library: str, folder: Path) -> Outcome:
        """Build what a program needs, and the program that it needs."""
        needed = _needed(program)
        if needed is not None and not (self._work(needed, library) / BUILT).exists():
            outcome = self._compile(needed, library, self._fresh(needed, library))
            if not outcome.built:
                return outcome
        started = time.monotonic()
        for line in program.build:
            words = shlex.split(line)
            cwd = folder
            if words[0].endswith(".py"):
                cwd = (folder / words[0]).parent
                words = [*self._launcher(program, library), str(folder / words[0]), *words[1:]]
            run = subprocess.run(
                words,
                cwd=cwd,
                env=self._environment(program, library, folder),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=HOUR,
            )
            output, errors = _text(run.stdout), _text(run.stderr)[-6000:]
            if run.returncode:
                seconds = time.monotonic() - started
                return Outcome(run.returncode, output, errors, seconds, built=False)
        (folder / BUILT).touch()
        return Outcome(0, "", "", time.monotonic() - started)

    def _launcher(self, program: Program, library: str) -> list[str]:
        # Suites count warnings, those of one text and line too, which told their origin in 1.2.
        command = [self.python, "-W", "always" if program.check == "suite" else "ignore"]
        if library != "flambeau":
            return [*command, str(HERE / "launch.py")]
        told = ["--as", program.version] if program.version else []
        return [*command, "-m", "flambeau", "run", *told]

    def _bring(self, program: Program, folder: Path) -> None:
        kind, _, rest = program.source.partition(":")
        if kind == "github":
            archive = self._archive(*rest.rsplit("@", 1))
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(folder, filter="data")
        elif kind == "sdist":
            with tarfile.open(self._sdist(rest)) as tar:
                tar.extractall(folder, filter="data")
            (inner,) = folder.iterdir()
            for each in inner.iterdir():
                each.rename(folder / each.name)
        for path in folder.rglob("*.py"):
            text = old = path.read_text("utf-8", "surrogateescape")
            for before, after in program.edits:
                text = text.replace(before, after)
            if program.check not in ("tests", "suite") and path == folder / program.path:
                text = _seeded(text)
            if text != old:
                path.write_text(text, "utf-8", "surrogateescape")
        for name in program.data:
            getattr(data, name)(self._folder(program, folder))

    def _folder(self, program: Program, folder: Path) -> Path:
        if program.folder:
            return folder / program.folder
        if program.path.startswith("drivers/") or program.check in ("tests", "suite"):
            return folder
        return (folder / program.path).parent

    def _archive(self, repository: str, commit: str) -> bytes:
        kept = self.build / "sources" / f"{repository.replace('/', '+')}@{commit}.tar"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            if self.sources is not None:
                clone = self.sources / repository.replace("/", "+")
                clone = next(p for p in (clone / "repo", clone) if p.exists())
                made = _of_clone(clone, commit)
            else:
                made = _without_top(f"https://codeload.github.com/{repository}/tar.gz/{commit}")
            kept.write_bytes(made)
        return kept.read_bytes()

    def _sdist(self, requirement: str) -> Path:
        kept = self.build / "sources" / requirement
        if not kept.exists():
            pip = [self.python, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
            pip += ["--no-binary", ":all:", "-d", str(kept), requirement]
            subprocess.run(pip, check=True)
        return next(kept.iterdir())

    def _start(self, program: Program, library: str, folder: Path) -> Outcome:
        cwd = self._folder(program, folder)
        script = HERE / program.path if program.path.startswith("drivers/") else None
        if program.check == "tests":
            script = HERE / "drivers" / "tests.py"
            named = [str(folder / path) for path in program.path.split()]
            arguments = [*named, *program.arguments]
            for each in program.deselect:
                arguments += ["--deselect", each]
        elif program.check == "suite":
            script = HERE / "drivers" / "suite.py"
            arguments = [str(folder / program.path), *program.arguments]
        else:
            arguments = list(program.arguments)
        script = script or folder / program.path
        command = [*self._launcher(program, library), str(script), *arguments]
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=self._environment(program, library, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        # flambeau may need longer than PyTorch, which is measured elsewhere (benchmarks).
        allowed = program.limit * (1 if program.endless or library == "torch" else 4)
        try:
            if not program.endless:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (allowed, allowed + 5))
                allowed = max(allowed, min(allowed * CLOCK, HOUR))
            output, errors = process.communicate(timeout=allowed)
            status = 124 if process.returncode == -signal.SIGXCPU else process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            status = 0 if program.endless else 124
        seconds = time.monotonic() - started
        return Outcome(status, _text(output), _text(errors)[-6000:], seconds)

    def _environment(self, program: Program, library: str, folder: Path) -> dict[str, str]:
        paths = import_paths(program, folder)
        needed = _needed(program)
        if needed is not None:
            paths += import_paths(needed, self._work(needed, library))
        return {
            **os.environ,
            # What builds extensions, cmake and ninja, is beside the interpreter.
            "PATH": os.pathsep.join([os.path.dirname(self.python), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "TORCH_EXTENSIONS_DIR": str(folder / ".extensions"),
            "PYTHONUNBUFFERED": "1",
            "PYTHONHASHSEED": "0",
            "MPLBACKEND": "Agg",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONIOENCODING": "utf-8",
        }


def import_paths(program: Program, folder: Path) -> list[Path]:
    """Where a program finds modules before those that are installed.

    In its source, unless PyTorch's own is there, which is not compiled and would hide what is.
    Programs find stand-ins for older packages too; libraries of today, and programs that use them,
    would take these for what is installed.
    """
    paths = [] if (folder / "torch").exists() else [folder]
    paths += [folder / path for path in program.paths]
    if program.source.startswith("pypi:") or not program.stand_ins:
        return paths
    return [*paths, HERE / "stand_ins"]


def _needed(program: Program) -> Program | None:
    found = [other for other in programs() if program.needs and other.name == program.needs]
    return found[0] if found else None


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _seeded(text: str) -> str:
    """The program with seeds set before its first statement, below what must stand first."""
    future = list(re.finditer(r"^from __future__ .*\n", text, re.MULTILINE))
    at = future[-1].end() if future else 0
    return text[:at] + _SEEDS + text[at:]


def _of_clone(clone: Path, commit: str) -> bytes:
    """An archive of a commit, without the large files that a partial clone lacks."""
    git = ["git", "-C", str(clone)]
    listed = subprocess.run([*git, "ls-tree", "-rz", commit], check=True, capture_output=True)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for entry in listed.stdout.decode("utf-8", "surrogateescape").split("\0"):
            about, _, path = entry.partition("\t")
            if " blob " not in about or about.startswith("120000"):
                continue
            blob = subprocess.run([*git, "cat-file", "blob", about.split()[2]], capture_output=True)
            if blob.returncode == 0:
                member = tarfile.TarInfo(path)
                member.size = len(blob.stdout)
                tar.addfile(member, io.BytesIO(blob.stdout))
    return made.getvalue()


def _without_top(address: str) -> bytes:
    """An archive of GitHub without the one folder that all is in."""
    with urllib.request.urlopen(address) as answer:
        packed = io.BytesIO(answer.read())
    made = io.BytesIO()
    with tarfile.open(fileobj=packed) as got, tarfile.open(fileobj=made, mode="w") as tar:
        for member in got.getmembers():
            _, _, member.name = member.name.partition("/")
            if member.name:
                tar.addfile(member, got.extractfile(member) if member.isfile() else None)
    return made.getvalue()
