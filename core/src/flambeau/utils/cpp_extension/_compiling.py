"""Sources become objects: those that changed, several at once, by ninja where it is installed.

What is compiled is decided here, by contents; ninja and the threads in its place only run commands.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from flambeau.utils.cpp_extension import _compiler

__all__ = ["Records", "Step", "Workplace", "at_once"]


class Records:
    """What each thing was made of: beside it lies the command, and a hash of all that it read.

    A thing is made again if its record would be another. Contents are those of the first look, so
    that what changes while it is compiled is compiled again the next time.
    """

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}

    @staticmethod
    def place(target: Path) -> Path:
        """Where the record of a thing lies."""
        return target.with_suffix(".json")

    @staticmethod
    def read_by(target: Path) -> Path:
        """Where the compiler notes what it read for a thing."""
        return target.with_suffix(".d")

    def forget(self, target: Path) -> None:
        """Whatever ends the compiler, what it left is not taken for what was recorded."""
        for path in (self.place(target), self.read_by(target), target):
            path.unlink(missing_ok=True)

    def inputs(self, target: Path) -> list[str]:
        """The files that a recorded thing was made of."""
        return list(json.loads(self.place(target).read_text())["inputs"])

    def fresh(self, target: Path, command: Sequence[str]) -> bool:
        """Whether a thing is there that this command would make again."""
        try:
            record = json.loads(self.place(target).read_text())
            if record["command"] != self.known_by(command) or not target.exists():
                return False
            return all(self._hash(path) == known for path, known in record["inputs"].items())
        except (OSError, ValueError):
            return False

    def write(
        self, target: Path, command: Sequence[str], where: Path, header: Path | None = None
    ) -> None:
        """Record a thing that was made by a compiler that ran in a folder.

        A compiled header is in the record as what it was made of.
        """
        inputs = [str(where / path) for path in _noted(self.read_by(target).read_text())]
        if header is not None:
            inputs = [path for path in inputs if path != str(header)] + self.inputs(header)
        record = {
            "command": self.known_by(command),
            "inputs": {path: self._hash(path) for path in inputs},
        }
        self.place(target).write_text(json.dumps(record))

    def _hash(self, path: str) -> str:
        if path not in self._hashes:
            self._hashes[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return self._hashes[path]

    @staticmethod
    def known_by(command: Sequence[str]) -> list[str]:
        """A command with the versions of what it runs and reads."""
        import pybind11

        versions = [_compiler.version_of(command[0]), sys.version, pybind11.__version__]
        return [*command, *versions]


def _noted(text: str) -> list[str]:
    r"""The files that a compiler noted, in make's way of writing.

    >>> _noted("a.o: a\\ b.cpp /c$$d.h \\\n  e'f.h\n")
    ['a b.cpp', '/c$d.h', "e'f.h"]
    """
    _, _, files = text.replace("\\\n", " ").partition(": ")
    return [
        re.sub(r"\\([ #:])", r"\1", each).replace("$$", "$")
        for each in re.findall(r"(?:\\.|\S)+", files)
    ]


@dataclass(frozen=True)
class Step:
    """An object that a compiler makes of a source."""

    source: Path
    target: Path
    command: Sequence[str]
    """By which the object is known: all but the compiled header and where to note what is read."""
    header: Path | None = None
    """The compiled header that is found first."""

    def line(self) -> list[str]:
        """What is run."""
        run = [*self.command, "-MMD", "-MF", str(Records.read_by(self.target))]
        if self.header is not None:  # before the folder of the header itself
            first = next(at for at, part in enumerate(run) if part.startswith("-"))
            run.insert(first, f"-I{self.header.parents[1]}")
        return run


def at_once(sources: int) -> int:
    """How many of so many sources are compiled at a time."""
    jobs = int(os.environ.get("MAX_JOBS") or 0) or min(_processors(), 8)
    return max(1, min(jobs, sources))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Workplace:
    """Where the commands of one extension are run, and what is said about them."""

    name: str
    where: Path
    """The folder that paths of commands start from."""
    verbose: bool
    ninja: bool = True
    """Whether ninja is used if it is installed."""
    records: Records = field(default_factory=Records)

    def compile(self, steps: Sequence[Step], file: Path) -> None:
        """Make the objects of those steps that have not the one they would make.

        Args:
            steps: all of the extension.
            file: where ninja's description of them is written.

        Raises:
            RuntimeError: a source does not compile; the message has what the compiler said.
        """
        stale = [step for step in steps if not self.records.fresh(step.target, step.command)]
        for step in stale:
            step.target.parent.mkdir(parents=True, exist_ok=True)
            self.records.forget(step.target)
        if not stale:
            return
        lines = [shlex.join(step.line()) for step in steps]
        # Ninja's files have no way to say the end of a line.
        if self.ninja and _compiler.is_ninja_available() and not any("\n" in x for x in lines):
            self._by_ninja(stale, steps, file)
        else:
            self._by_threads(stale)

    def _by_threads(self, stale: Sequence[Step]) -> None:
        def make(step: Step) -> None:
            self.run(step.line())
            self._made(step)

        pool = ThreadPoolExecutor(at_once(len(stale)))
        try:
            for each in [pool.submit(make, step) for step in stale]:
                each.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _by_ninja(self, stale: Sequence[Step], steps: Sequence[Step], file: Path) -> None:
        file.write_text(description(steps, file.parent))
        command = ["ninja", "-f", str(file), "-j", str(at_once(len(stale)))]
        command += [*(["-v"] if self.verbose else []), *(str(step.target) for step in stale)]
        said: list[str] = []
        with subprocess.Popen(
            command,
            cwd=self.where,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as ninja:
            try:
                assert ninja.stdout is not None
                for line in ninja.stdout:
                    said.append(line)
                    if self.verbose:
                        print(line, end="", flush=True)
                status = ninja.wait()
            except BaseException:  # an interrupt: ninja ends its compilers and removes halves
                ninja.terminate()
                raise
        for step in stale:
            # Ended by a signal, ninja may leave halves behind.
            done = step.target.exists() and Records.read_by(step.target).exists()
            if status in (0, 1) and done:
                self._made(step)
        if status:
            self._fail(f"ninja failed with status {status}", "".join(said))

    def _made(self, step: Step) -> None:
        self.records.write(step.target, step.command, self.where, step.header)

    def run(self, command: Sequence[str]) -> None:
        """Run one command."""
        if self.verbose:
            print(shlex.join(command), flush=True)
        done = subprocess.run(
            command,
            cwd=self.where,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if self.verbose and done.stdout:
            print(done.stdout, flush=True)
        if done.returncode:
            self._fail(
                f"the command failed with status {done.returncode}",
                f"{shlex.join(command)}\n{done.stdout}",
            )

    def _fail(self, what: str, said: str) -> None:
        raise RuntimeError(f"Error building extension {self.name!r}: {what}\n{said}")


def description(steps: Sequence[Step], folder: Path) -> str:
    """Steps as ninja reads them (``build.ninja``), with its log in a folder.

    >>> step = Step(Path("a b.cpp"), Path("a.o"), ["c++", "-c", "a b.cpp", "-o", "a.o", "-D$"])
    >>> print(description([step], Path("built")).partition("build a.o")[2])
    : compile a$ b.cpp
      run = c++ -c 'a b.cpp' -o a.o '-D$$' -MMD -MF a.d
      noted = a.d
    <BLANKLINE>
    """
    text = [
        "ninja_required_version = 1.3",
        f"builddir = {_value(str(folder))}",
        "rule compile\n  command = $run\n  depfile = $noted\n  description = $in",
    ]
    for step in steps:
        text += [
            f"build {_path(step.target)}: compile {_path(step.source)}",
            f"  run = {_value(shlex.join(step.line()))}",
            f"  noted = {_value(str(Records.read_by(step.target)))}",
        ]
    return "\n".join(text) + "\n"


def _value(text: str) -> str:
    return text.replace("$", "$$")


def _path(path: Path) -> str:
    return _value(str(path)).replace(" ", "$ ").replace(":", "$:")
