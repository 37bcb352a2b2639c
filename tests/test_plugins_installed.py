"""What a user sees of backend packages that pip installed: good ones, broken ones, rivals.

Each package here is real: it has a pyproject, and pip builds a wheel of it and installs that into a
folder of its own.  A test puts the folders of its environment on the path of a new interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from flambeau.plugin import API_VERSION

pytestmark = pytest.mark.slow

# A build backend in twenty lines, shipped in each package, so that building needs neither network
# nor an installed build tool.
BUILD_BACKEND = """
import pathlib, tomllib, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = f"{name}-{version}.dist-info"
    groups = [
        "\\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in points.items())])
        for group, points in project["entry-points"].items()
    ]
    metadata = f"Metadata-Version: 2.1\\nName: {project['name']}\\nVersion: {version}\\n"
    files = {
        f"{name}.py": pathlib.Path(f"{name}.py").read_text(),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{info}/entry_points.txt": "\\n".join(groups),
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"])
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, wheel), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel
"""

OWNER = '''
from flambeau.plugin import Backend, KernelSet, dtypes, hookimpl, float32

class Array:
    """Numbers with a shape."""
    def __init__(self, values, shape, dtype):
        self.values, self.shape, self.dtype = values, shape, dtype

class Glow(Backend):
    device_type, array = "glow", Array

    def from_host(self, data, shape, dtype, index):
        return Array(bytes(data), tuple(shape), dtype)

    def to_host(self, array):
        return array.values

    def dtype_of(self, array):
        return array.dtype

@hookimpl
def flambeau_backend(device_type):
    return Glow() if device_type == "glow" else None

@hookimpl
def flambeau_kernels(device_type):
    return KernelSet("{name} 1.0", {{"add": lambda a, b: "{name} adds", "neg": lambda a: "{name}"}})

@hookimpl
def flambeau_report(device_type):
    return {{"wax": "bee"}}
'''

FAST = """
from flambeau.plugin import KernelSet, hookimpl

@hookimpl(tryfirst=True)
def flambeau_kernels(device_type, backend):
    return KernelSet("flambeau-fast 2.0", {"add": lambda a, b: "fast adds"})
"""


@dataclass(frozen=True)
class Package:
    """A backend package of one module."""

    name: str
    device_type: str
    source: str
    version: str = "1.0"


PACKAGES = (
    Package("flambeau-glow", "glow", OWNER.format(name="flambeau-glow")),
    Package("flambeau-rival", "glow", OWNER.format(name="flambeau-rival")),
    Package("flambeau-fast", "glow", FAST, "2.0"),
    Package("flambeau-broken", "broken", "import a_module_that_nobody_has", "0.3"),
    Package("flambeau-shaky", "glow", "raise OSError('no such instruction')", "0.4"),
    Package("flambeau-old", "old", "api_version = '0.9'\n" + OWNER.format(name="flambeau-old")),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Each package's installation folder, by its name."""
    root = tmp_path_factory.mktemp("packages")
    installed = {}
    for package in PACKAGES:
        module = package.name.replace("-", "_")
        project = root / "projects" / package.name
        project.mkdir(parents=True)
        (project / "tiny_build.py").write_text(BUILD_BACKEND, encoding="utf-8")
        (project / f"{module}.py").write_text(package.source, encoding="utf-8")
        (project / "pyproject.toml").write_text(
            textwrap.dedent(f"""
                [build-system]
                requires = []
                build-backend = "tiny_build"
                backend-path = ["."]
                [project]
                name = "{package.name}"
                version = "{package.version}"
                [project.entry-points."flambeau.backends"]
                {package.device_type} = "{module}"
            """),
            encoding="utf-8",
        )
        installed[package.name] = root / "installed" / package.name
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        command += ["--no-deps", "--no-index", "--target", installed[package.name], project]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    return installed


@pytest.fixture
def sources(folders):
    """The folder of the projects that were installed."""
    return folders["flambeau-old"].parents[1] / "projects"


@pytest.fixture
def run(folders, tmp_path):
    """Run Python in an environment with the given packages; returns status, output and errors."""

    def run_in(packages, *arguments, **environ):
        here = [str(folders[name]) for name in packages]
        inherited = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        path = os.pathsep.join([*here, *map(os.path.abspath, inherited)])
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FLAMBEAU_")}
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env={**clean, **environ, "PYTHONPATH": path},
        )
        return done.returncode, done.stdout, done.stderr

    return run_in


def activate(device_type: str) -> tuple[str, str]:
    """Arguments of an interpreter that uses a device and prints who adds there."""
    program = f"""
        import sys
        from flambeau.plugin.host import host
        assert not any(name.startswith("flambeau_") for name in sys.modules)
        active = host.activate({device_type!r})
        print(active.owner, active.kernels["add"](1, 2), sorted(active.distributions.items()))
    """
    return "-c", textwrap.dedent(program)


def test_good_package_serves_its_device(run):
    status, text, error = run(["flambeau-glow"], *activate("glow"))
    assert (status, error) == (0, "")
    assert text == "flambeau-glow:glow flambeau-glow adds [('flambeau-glow', '1.0')]\n"


def test_importing_flambeau_imports_no_installed_backend(run):
    program = "import flambeau, sys; assert 'flambeau_glow' not in sys.modules"
    status, _, error = run(["flambeau-glow", "flambeau-broken"], "-c", program)
    assert status == 0, error


def test_overriding_package_replaces_one_kernel_and_leaves_the_others(run):
    both = ["flambeau-glow", "flambeau-fast"]
    status, text, _ = run(both, *activate("glow"))
    assert status == 0
    assert text == (
        "flambeau-glow:glow fast adds [('flambeau-fast', '2.0'), ('flambeau-glow', '1.0')]\n"
    )
    status, text, _ = run(both, "-m", "flambeau", "kernels", "glow")
    rows = {line.split()[0]: " ".join(line.split()[2:]) for line in text.splitlines()}
    assert status == 0
    assert rows["add"] == "flambeau-fast 2.0"
    assert rows["neg"] == "flambeau-glow 1.0"


def test_user_can_turn_an_override_off_from_the_environment(run):
    both = ["flambeau-glow", "flambeau-fast"]
    for environ in ({"FLAMBEAU_PREFER": "glow=flambeau-glow"}, {"FLAMBEAU_BLOCK": "flambeau-fast"}):
        status, text, _ = run(both, *activate("glow"), **environ)
        assert status == 0
        assert "flambeau-glow adds" in text


def test_broken_package_harms_only_its_own_device(run, sources):
    both = ["flambeau-broken", "flambeau-glow"]
    status, _, error = run(both, *activate("glow"))
    assert status == 0, error
    status, _, error = run(both, *activate("broken"))
    assert status == 1
    assert "ModuleNotFoundError: No module named 'a_module_that_nobody_has'\n" in error
    assert "The above exception was the direct cause" in error
    assert (
        "BackendLoadError: backend 'flambeau-broken:broken' for device 'broken' failed to load: "
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has'"
    ) in error
    assert f"pip install --force-reinstall {sources / 'flambeau-broken'} installs" in error


def test_broken_accelerator_is_left_out_with_a_warning(run):
    status, text, error = run(["flambeau-glow", "flambeau-shaky"], *activate("glow"))
    assert status == 0
    assert "flambeau-glow adds" in text
    assert "BackendWarning: backend 'flambeau-shaky:glow'" in error
    assert "OSError: no such instruction" in error
    assert "FLAMBEAU_BLOCK=flambeau-shaky" in error


def test_package_for_another_api_version_names_both_and_the_upgrade(run, sources):
    status, _, error = run(["flambeau-old"], *activate("old"))
    assert status == 1
    assert "flambeau-old was written for plugin API 0.9, but flambeau-core" in error
    assert f"has plugin API {API_VERSION}" in error
    old = sources / "flambeau-old"
    assert f"Remedy: update {old}, then pip install {old}" in error


def test_two_owners_are_a_conflict_that_the_user_settles(run):
    both = ["flambeau-glow", "flambeau-rival"]
    status, _, error = run(both, *activate("glow"))
    assert status == 1
    assert "'flambeau-glow:glow' and 'flambeau-rival:glow'" in error
    assert 'FLAMBEAU_PREFER="glow=flambeau-glow"' in error
    status, text, _ = run(both, *activate("glow"), FLAMBEAU_PREFER="glow=flambeau-rival")
    assert status == 0
    assert text.startswith("flambeau-rival:glow flambeau-rival adds")


def test_unknown_device_lists_what_is_installed(run):
    status, _, error = run(["flambeau-glow"], *activate("glowe"))
    assert status == 1
    assert "no backend is installed for device 'glowe'" in error
    assert "glow" in error
    assert "Did you mean 'glow'?" in error


def test_overview_shows_every_installed_device(run):
    status, text, error = run(
        ["flambeau-glow", "flambeau-fast", "flambeau-broken"], "-m", "flambeau"
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert status == 0, error
    assert "glow: 1 device" in lines
    assert "kernels flambeau-fast 2.0: 1" in lines
    assert "wax bee" in lines
    assert "broken: not usable" in lines


def test_doctor_explains_every_failure_and_fails(run, sources):
    packages = ["flambeau-glow", "flambeau-broken", "flambeau-shaky", "flambeau-old"]
    status, text, _ = run(packages, "-m", "flambeau", "doctor")
    assert status == 1
    for expected in (
        "problem  broken: backend 'flambeau-broken:broken'",
        f"pip install --force-reinstall {sources / 'flambeau-broken'} installs",
        "problem  glow: backend 'flambeau-shaky:glow'",
        "ok       glow: flambeau-glow 1.0, 1 device",
        f"remedy: update {sources / 'flambeau-old'}, then pip install",
    ):
        assert expected in text
