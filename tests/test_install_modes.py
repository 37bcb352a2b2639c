"""`flambeau.nn` is found however core and nn were installed.

Two distributions share the name ``flambeau`` (docs/design/split-package.md), which is easy to break
for one way of installing without noticing it in another; hence real environments, made by pip.
Nothing is fetched: the dependencies, and what builds the packages, are those of this environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]

USAGES = {
    "import a.b as c": "import flambeau.nn as nn; nn.Linear",
    "from a import b": "from flambeau import nn; nn.Linear",
    "attribute of a": "import flambeau as fb; fb.nn.Linear, fb.optim.SGD",
    "import a.b.c": "import flambeau.nn.functional as F; F.relu",
    "import both": "import flambeau as fb; import flambeau.nn; fb.nn.Linear",
}


DEPENDENCIES = ("pluggy", "typing_extensions.py")


def pip(*arguments: str | Path) -> None:
    """Run pip, with no index and no build environment: both would need a network."""
    command = [sys.executable, "-m", "pip", "--quiet", *map(str, arguments)]
    command += ["--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


class Environment:
    """A virtual environment with nothing in it but the dependencies and what is installed here."""

    def __init__(self, path: Path) -> None:
        venv.create(path, symlinks=os.name != "nt")
        self.path = path
        self.python = path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        variables = {"base": str(path), "platbase": str(path)}
        packages = Path(sysconfig.get_path("purelib", "venv", variables))
        for name in DEPENDENCIES:
            source = Path(sysconfig.get_path("purelib")) / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, packages / name)

    def install(self, *arguments: str | Path) -> None:
        pip("install", "--ignore-installed", "--prefix", self.path, *arguments)

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run `program` from outside the repository, with no path but the environment's own."""
        return subprocess.run(
            [self.python, "-c", program],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=self.path,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """The wheels of core and nn."""
    folder = tmp_path_factory.mktemp("wheels")
    pip("wheel", "--wheel-dir", folder, ROOT / "core", ROOT / "nn")
    return {
        "core": next(folder.glob("flambeau_core-*.whl")),
        "nn": next(folder.glob("flambeau_nn-*.whl")),
    }


@pytest.mark.parametrize("nn", ["wheel", "editable"])
@pytest.mark.parametrize("core", ["wheel", "editable"])
def test_every_form_of_import_finds_nn(core, nn, wheels, tmp_path):
    environment = Environment(tmp_path / "venv")
    arguments: list[str | Path] = []
    for part, mode in {"core": core, "nn": nn}.items():
        arguments += [wheels[part]] if mode == "wheel" else ["--editable", ROOT / part]
    environment.install(*arguments)
    failures = {
        usage: done.stderr
        for usage, program in USAGES.items()
        if (done := environment.run(program)).returncode
    }
    assert failures == {}
    where = environment.run("import flambeau.nn as nn; print(nn.Linear.__module__)")
    assert where.stdout.startswith("flambeau.nn."), where.stderr


def test_core_alone_names_the_package_that_has_nn(wheels, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.install(wheels["core"])
    for part in ("nn", "optim"):
        done = environment.run(f"import flambeau; flambeau.{part}")
        assert "ModuleNotFoundError" in done.stderr
        assert "pip install flambeau-nn" in done.stderr


def test_wheels_of_core_and_nn_share_no_file(wheels):
    files = {
        part: {name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name}
        for part, wheel in wheels.items()
    }
    assert "flambeau/__init__.py" in files["core"]
    assert "flambeau/nn/__init__.py" in files["nn"]
    assert not files["core"] & files["nn"]


def test_the_metapackage_contains_no_code(tmp_path):
    pip("wheel", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("flambeau-*.whl")
    assert all(".dist-info/" in name for name in zipfile.ZipFile(wheel).namelist())
