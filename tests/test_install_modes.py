"""What `make wheels` makes is what users install, and `flambeau.nn` is found however they do.

Two distributions share the name ``flambeau`` (docs/design/split-package.md), which is easy to break
for one way of installing without noticing it in another; hence real environments, made by pip.
Nothing is fetched: the dependencies, and what builds the packages, are those of this environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.parser import Parser
from importlib.metadata import distribution
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


ONEDNN = {
    "lib/libdnnl.so": "the library once more",
    "lib/libdnnl.so.3": "the library",
    "lib/libdnnl.so.3.2": "the library again",
    "share/doc/onednn/LICENSE": "oneDNN's licence",
    "share/doc/onednn/THIRD-PARTY-PROGRAMS": "the licences of what is in it",
}


def pip(*arguments: str | Path) -> None:
    """Run pip, with no index and no build environment: both would need a network."""
    command = [sys.executable, "-m", "pip", "--quiet", *map(str, arguments)]
    command += ["--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


class Environment:
    """A virtual environment with nothing in it but the dependencies and what is installed here."""

    def __init__(
        self, path: Path, dependencies: tuple[str, ...] = ("pluggy", "typing_extensions")
    ) -> None:
        venv.create(path, symlinks=os.name != "nt")
        self.path = path
        self.python = path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        variables = {"base": str(path), "platbase": str(path)}
        packages = Path(sysconfig.get_path("purelib", "venv", variables))
        for dependency in dependencies:
            found = distribution(dependency)
            for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                source = Path(str(found.locate_file(name)))
                if os.name != "nt":
                    (packages / name).symlink_to(source)
                else:
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


def make_wheels(folder: Path, *packages: str, **variables: str) -> None:
    """What `make wheels` does, for some packages, with what is installed here."""
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/wheels.py", "--offline", folder, *packages],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder of wheels: the metapackage, what it asks for, and what holds a library of others.

    In place of oneDNN stand a few words, in a package of its name.  The compiled kernels are left
    out, as where there is no compiler.
    """
    root = tmp_path_factory.mktemp("wheels")
    info = "onednn_cpu_gomp-2023.2.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: onednn-cpu-gomp\nVersion: 2023.2.0\n"
    files = {**ONEDNN, f"{info}/METADATA": metadata}
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in files)
    for name, text in files.items():
        path = root / "index" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    packages = ("core", "nn", *(f"backends/cpu_{name}" for name in ("numpy", "native", "onednn")))
    inherited = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [str(root / "index"), inherited]))
    make_wheels(root / "dist", *packages, PYTHONPATH=path, CC="no-compiler")
    return root / "dist"


@pytest.fixture(scope="module")
def wheels(folder) -> dict[str, Path]:
    """The wheels by the part of their distribution's name that is their own."""
    return {
        path.name.split("-")[0].removeprefix("flambeau_"): path for path in folder.glob("*.whl")
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
        assert f"pip install --find-links {wheels['core'].parent} flambeau-nn" in done.stderr


def test_user_installs_from_the_folder_and_runs_the_first_program(folder, tmp_path):
    others = ("pluggy", "typing_extensions", "numpy", "scipy", "ml_dtypes", "threadpoolctl")
    environment = Environment(tmp_path / "venv", others)
    command = [sys.executable, "-m", "pip", "--python", environment.python, "--quiet", "install"]
    done = subprocess.run(
        [*command, "--no-index", "--find-links", folder, "flambeau"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.search("```python\n(.*?)```", readme, re.DOTALL)[1]
    done = environment.run(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("accuracy ")
    done = environment.run(
        "import sys; from flambeau.__main__ import main; sys.exit(main(['doctor']))"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no problem found" in done.stdout
    assert "note     cpu: native: not compiled: no compiler at installation" in done.stdout


def test_wheels_made_again_are_the_same_bytes(wheels, tmp_path):
    before = os.umask(0o077)
    try:
        make_wheels(tmp_path, "nn", TZ="Asia/Tokyo", PYTHONHASHSEED="5")
    finally:
        os.umask(before)
    (again,) = tmp_path.glob("flambeau_nn-*.whl")
    assert again.read_bytes() == wheels["nn"].read_bytes()


def test_wheel_with_a_library_of_others_has_its_licences_and_says_what_it_is(wheels):
    archive = zipfile.ZipFile(wheels["onednn"])
    info = "flambeau_onednn-0.1.0.dist-info"
    metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    licences = {
        name: archive.read(f"{info}/licenses/{name}") for name in metadata.get_all("License-File")
    }
    for name in ("LICENSE", "THIRD-PARTY-PROGRAMS"):
        assert licences[f"oneDNN/{name}"].decode() == ONEDNN[f"share/doc/onednn/{name}"]
    assert licences["LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0 AND BSD-3-Clause AND BSL-1.0"
    held = {n for n in archive.namelist() if n.startswith("flambeau_onednn/lib/")}
    assert held == {"flambeau_onednn/lib/libdnnl.so.3"}
    bill = json.loads(archive.read(f"{info}/sboms/oneDNN.cdx.json"))
    (component,) = bill["components"]
    assert (component["name"], component["version"]) == ("oneDNN", "3.2")
    digest = hashlib.sha256(archive.read("flambeau_onednn/lib/libdnnl.so.3")).hexdigest()
    assert component["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_wheel_without_the_library_claims_nothing_of_it(tmp_path):
    make_wheels(tmp_path, "backends/cpu_onednn")
    (wheel,) = tmp_path.glob("flambeau_onednn-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    archive = zipfile.ZipFile(wheel)
    assert not [name for name in archive.namelist() if "/lib/" in name or "oneDNN" in name]
    assert b"License-Expression: Apache-2.0\n" in archive.read(
        "flambeau_onednn-0.1.0.dist-info/METADATA"
    )


def test_list_of_the_folder_names_every_wheel_and_what_they_hold(folder, wheels):
    bill = json.loads((folder / "flambeau.cdx.json").read_text(encoding="utf-8"))
    found = {one["name"]: one for one in bill["components"]}
    for part, wheel in wheels.items():
        name = part if part == "flambeau" else f"flambeau-{part}"
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        assert found.pop(name)["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert found == {}
    (onednn,) = [one for one in bill["components"] if one["name"] == "flambeau-onednn"]
    assert [one["name"] for one in onednn["components"]] == ["oneDNN"]


def test_wheels_of_core_and_nn_share_no_file(wheels):
    files = {
        part: {n for n in zipfile.ZipFile(wheels[part]).namelist() if "dist-info" not in n}
        for part in ("core", "nn")
    }
    assert "flambeau/__init__.py" in files["core"]
    assert "flambeau/nn/__init__.py" in files["nn"]
    assert not files["core"] & files["nn"]


def test_the_metapackage_contains_no_code(wheels):
    names = zipfile.ZipFile(wheels["flambeau"]).namelist()
    assert all(".dist-info/" in name for name in names)
