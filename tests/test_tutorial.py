"""The tutorial for backend authors is the toy backend, and its commands do what the page says."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOY = ROOT / "examples/backends/toy"
WHOLE = os.environ.get("FLAMBEAU_TEST_WHOLE", "") not in ("", "0")
PAGE = (ROOT / "docs/backends/tutorial.md").read_text()
# The name stands above the block too, for what follows the language is shown nowhere.
FILE = re.compile(r"^`(\S+)`:\n\n```(?:python|toml) \1\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    return {found[1]: found[2] for found in FILE.finditer(PAGE)}


def code_lines(text: str) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    described: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            described.update(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        1 for i, line in lines if line.strip(" #") and i not in described and line.strip()[0] != "#"
    )


def test_the_page_shows_every_file_of_the_toy_as_it_is() -> None:
    there = {
        path.relative_to(TOY).as_posix(): path.read_text()
        for pattern in ("pyproject.toml", "src/**/*.py")
        for path in TOY.glob(pattern)
    }
    assert files() == there


def test_the_toy_has_at_most_a_hundred_lines_of_code() -> None:
    sources = [text for name, text in files().items() if name.endswith(".py")]
    assert 0 < sum(map(code_lines, sources)) <= 100


def test_the_toy_imports_nothing_of_flambeau_but_the_plugin_module() -> None:
    imports = re.findall(r"^(?:from|import) (flambeau\S*)", "\n".join(files().values()), re.M)
    own = [name for name in imports if not name.startswith("flambeau_toy")]
    assert set(own) == {"flambeau.plugin"}


def packages_of_others(folder: Path) -> Path:
    """`folder` with all that is installed here but flambeau, which has to be installed there."""
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "flambeau" not in entry.name.lower():
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an index would offer of flambeau."""
    folder = tmp_path_factory.mktemp("wheels")
    packages = ("core", "nn", "backends/cpu_numpy", "backends/cpu_native")
    subprocess.run(
        [sys.executable, ROOT / ".ci/wheels.py", "--offline", folder, *packages],
        check=True,
        timeout=300,
        env={**os.environ, "CC": "no-compiler"},  # kernels take a minute, and are not needed
    )
    return folder


@pytest.mark.slow
def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, wheels: Path) -> None:
    """Typed one after another in an environment of their own, without a network.

    The whole kit, which takes minutes, only where all that is wide is asked for.
    """
    project, environment = tmp_path / "toy", tmp_path / "env"
    for name, text in files().items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    shutil.copy(ROOT / "examples/digits.py", project)
    venv.create(environment, with_pip=True, symlinks=os.name != "nt")
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    variables = {
        **os.environ,
        "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
        "PYTHONPATH": str(packages_of_others(tmp_path / "others")),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads a switch that says no: 0 turns isolation off
    }
    said = {}
    for command in "".join(COMMANDS.findall(PAGE)).splitlines():
        if command.endswith("toy -q") and not WHOLE:
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=project,
            env=variables,
            capture_output=True,
            text=True,
            timeout=840,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        key = next((n for n in ("--profile", "--quick") if n in command), None)
        said[key or command.split()[2 if "-m" in command else 1]] = done.stdout
    assert "toy: every required kernel is there" in said["flambeau"]
    assert "toy: level reached: training, by a part of the kit (--quick)" in said["--quick"]
    assert "toy: badge: " not in said["--quick"]
    if WHOLE:
        assert "composites run decomposed" in said["pytest"]
        assert "toy: level reached: training\n" in said["pytest"]
        assert "toy: badge: " in said["pytest"]
    accuracy = re.search(r"accuracy ([\d.]+) %", said["digits.py"])
    assert accuracy
    assert float(accuracy[1]) > 90
    assert re.search(r"^bernoulli_scalar +\d+ ", said["--profile"], re.M), said["--profile"]
