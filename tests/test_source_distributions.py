"""A source distribution holds all that its wheel is built from: the two ways give the same wheel.

Built from copies without what an earlier build left, by the hooks that every front end calls.
Compiled kernels are left out of the wheels; their sources have to be there all the same.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = [
    *(file.parent.relative_to(ROOT).as_posix() for file in ROOT.glob("*/pyproject.toml")),
    *(file.parent.relative_to(ROOT).as_posix() for file in ROOT.glob("backends/*/pyproject.toml")),
    ".",
]
# What a build leaves beside its sources, and what is no part of the package.
LEFT_OUT = runpy.run_path(str(ROOT / ".ci/wheels.py"))["_left"]


def run(code: str, folder: Path, *arguments: Path) -> None:
    """Run a program there, where no compiler is found."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "CC": "no-compiler", "SOURCE_DATE_EPOCH": "1700000000"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def built(kind: str, source: Path, into: Path) -> Path:
    """The distribution of a kind that the project in a folder gives."""
    settings = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))
    backend = settings["build-system"]["build-backend"]
    into.mkdir()
    run(f"import sys, {backend} as b; b.build_{kind}(sys.argv[1])", source, into)
    (found,) = into.iterdir()
    return found


def held(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, without the list of them."""
    with zipfile.ZipFile(wheel) as archive:
        return {n: archive.read(n) for n in archive.namelist() if not n.endswith("/RECORD")}


def copied(project: str, into: Path) -> Path:
    if project == ".":  # the metapackage lies beside everything, and takes none of it
        into.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile"):
            shutil.copyfile(ROOT / name, into / name)
        return into
    return Path(shutil.copytree(ROOT / project, into, ignore=LEFT_OUT))


@pytest.mark.parametrize("project", PROJECTS)
def test_the_source_distribution_builds_the_wheel_that_the_tree_builds(project, tmp_path):
    source = copied(project, tmp_path / "tree")
    archive = built("sdist", source, tmp_path / "sdist")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheel = built("wheel", source, tmp_path / "of-tree")
    again = built("wheel", unpacked, tmp_path / "of-sdist")
    assert again.name == wheel.name
    assert held(again) == held(wheel)
    assert (unpacked / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    compiled = {file.name: file.read_bytes() for file in source.glob("csrc/*")}
    assert {file.name: file.read_bytes() for file in unpacked.glob("csrc/*")} == compiled
    assert bool(compiled) == (project == "backends/cpu_native")
    assert not (unpacked / "Makefile").exists()


def test_every_distribution_is_among_those_whose_sources_are_built():
    assert len(PROJECTS) == 8
