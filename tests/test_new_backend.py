"""``new-backend`` writes a package that works, and ``kernels`` says what it lacks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from flambeau.__main__ import main
from flambeau._cli.scaffold import LIKE, write_backend
from flambeau._tools import scaffolds
from flambeau.plugin import API_VERSION
from flambeau.plugin.discovery import Entry
from flambeau.plugin.host import PluginHost

REGISTER = (
    "import flambeau_acme.plugin as plugin\n"
    "from flambeau.plugin.host import host\n"
    "host.register(plugin, name='acme', device_types=['acme'])\n"
)
FLAMBEAU = (
    "import registered, sys\nfrom flambeau.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
)


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A fresh backend, and a module that registers it as its entry point would."""
    assert main(["new-backend", "acme", "--directory", str(tmp_path / "acme")]) == 0
    (tmp_path / "registered.py").write_text(REGISTER)
    (tmp_path / "flambeau_here.py").write_text(FLAMBEAU)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = [str(folder), str(folder / "acme/src"), *filter(None, sys.path)]
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_new_backend_passes_level_memory_at_once(acme: Path) -> None:
    command = ["-m", "pytest", "-q", "-p", "registered", "-p", "no:cacheprovider", "--pyargs"]
    command += ["flambeau.testing.backend", "--device", "acme", "--level", "memory"]
    done = run(acme, *command, "--conformance-json", "result.json")
    assert done.returncode == 0, done.stdout[-4000:]
    result = json.loads((acme / "result.json").read_text())
    assert result["api"] == API_VERSION
    assert result["devices"]["acme"]["reached"] == "memory"
    assert result["devices"]["acme"]["badge"] in done.stdout
    assert result["devices"]["acme"]["levels"]["primitives"]["verdict"] == "not run"


@pytest.mark.parametrize("kind", LIKE)
def test_templates_are_what_the_examples_are(kind: str) -> None:
    """If not: ``make generate``."""
    folder = scaffolds.TEMPLATES / kind / "src/@PACKAGE@"
    written = {
        path.relative_to(folder).as_posix().removesuffix(scaffolds.SUFFIX): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert written == scaffolds.sources(kind)


@pytest.mark.parametrize("kind", ["numpy", "accelerator"])
def test_a_backend_named_as_the_example_is_the_example(kind: str, tmp_path: Path) -> None:
    device = scaffolds.EXAMPLES[kind]
    write_backend(device, tmp_path, kind)
    example = scaffolds.ROOT / "examples/backends" / device / "src"
    for path in example.rglob("*.py"):
        assert (tmp_path / "src" / path.relative_to(example)).read_text() == path.read_text()


# Of the levels beyond memory what their examples are tested with, but for the lazy kind: no example
# is in one package with its library.
FIRST = {"numpy": "memory or softmax", "lazy": "not corners", "accelerator": "memory or streams"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIKE)
def test_a_backend_like_an_example_passes_its_first_verdict(kind: str, tmp_path: Path) -> None:
    (tmp_path / "registered.py").write_text(REGISTER)
    folder = tmp_path / "acme"
    assert main(["new-backend", "acme", "--like", kind, "--directory", str(folder)]) == 0
    command = ["-m", "pytest", "-q", "-p", "registered", "-p", "no:cacheprovider", "--pyargs"]
    command += ["-c", os.devnull, "flambeau.testing.backend", "--device", "acme", "--quick"]
    done = run(tmp_path, *command, "-k", FIRST[kind], "--conformance-json", "result.json")
    assert done.returncode == 0, done.stdout[-4000:]
    found = json.loads((tmp_path / "result.json").read_text())["devices"]["acme"]
    assert found["levels"]["memory"]["verdict"] == "passed"
    assert set(found["tests"]) <= {"skipped", "xfailed"}
    if kind == "lazy":
        assert found["reached"] == "training"
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            text = path.read_text()
            assert not re.search("@[A-Z]+@", text), path
            assert not re.search("toy|Toy|simulated:", text), path
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    imported = {
        found.partition(".")[0].replace("_", "-")
        for path in folder.rglob("*.py")
        for found in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.M)
    }
    needed = {re.match(r"[\w-]+", need)[0] for need in project["dependencies"]}  # type: ignore[index]
    assert imported - set(sys.stdlib_module_names) - {"flambeau", "flambeau-acme"} <= needed | (
        {"numpy"} if "flambeau-numpy" in needed else set()
    )


def test_a_kind_that_there_is_not_is_refused(tmp_path: Path, capsys) -> None:
    with pytest.raises(ValueError, match="no kind 'torch'.*numpy, lazy, accelerator"):
        write_backend("acme", tmp_path / "new", "torch")
    with pytest.raises(SystemExit):
        main(["new-backend", "acme", "--like", "torch", "--directory", str(tmp_path / "new")])
    assert "torch" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_what_is_missing_is_listed_and_gives_status_one(acme: Path) -> None:
    done = run(acme, "flambeau_here.py", "kernels", "acme", "--missing")
    missing = done.stdout.split()
    assert done.returncode == 1, done.stderr
    assert {"add", "matmul", "sort"} <= set(missing)
    assert not {"full", "view", "softmax"} & set(missing)


def test_a_new_backend_has_no_placeholders_left(acme: Path) -> None:
    files = [path for path in (acme / "acme").rglob("*") if path.is_file()]
    for path in files:
        assert not re.search("@[A-Z]+@", path.read_text()), path
    names = {path.relative_to(acme / "acme").as_posix() for path in files}
    assert {"pyproject.toml", "README.md", ".github/workflows/test.yml"} <= names
    assert {"src/flambeau_acme/plugin.py", "tests/test_conformance.py"} <= names


def test_steps_of_its_ci_that_fail_at_first_do_not_fail_the_run(acme: Path) -> None:
    workflow = (acme / "acme/.github/workflows/test.yml").read_text()
    (after,) = re.findall(r"kernels acme --missing\n(.*)", workflow)
    assert after.strip().startswith("continue-on-error: true")


@pytest.mark.slow
def test_a_new_backend_installs(acme: Path) -> None:
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    done = run(acme, *command, "--target", "installed", "./acme")
    assert done.returncode == 0, done.stderr
    assert (acme / "installed/flambeau_acme/kernels/movement.py").exists()
    (entries,) = (acme / "installed").glob("*.dist-info/entry_points.txt")
    assert entries.read_text() == "[flambeau.backends]\nacme = flambeau_acme.plugin\n"


@pytest.mark.parametrize("name", ["Toy", "my-device", "1st", "", "lambda", "cpu", "ref"])
def test_names_that_cannot_be_devices_are_refused(name: str, tmp_path: Path, capsys) -> None:
    assert main(["new-backend", name, "--directory", str(tmp_path / "new")]) == 1
    assert repr(name) in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(FileExistsError, match="is not empty"):
        write_backend("toy", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_decomposed_ops_of_a_program_are_ranked_by_time(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, flambeau as fb\n"
        "x = fb.ones(30, 30, device=sys.argv[1])\n"
        "for _ in range(2): (x * 2).softmax(1)\n"
        "fb.nn.functional.gelu(x)\n"
    )
    done = run(tmp_path, "-m", "flambeau", "kernels", "ref", "--profile", str(program), "ref")
    assert done.returncode == 0, done.stderr
    title, head, *lines = done.stdout.splitlines()
    assert title == "decomposed on 'ref', slowest first:"
    assert head.split() == ["op", "calls", "time", "share"]
    rows = {line.split()[0]: line.split() for line in lines}
    assert rows["softmax"][1] == "2"
    assert "gelu" in rows
    assert "mul" not in rows, "a primitive"
    times = [float(line.split()[2]) for line in lines]
    assert times == sorted(times, reverse=True)


def test_a_program_without_ops_has_nothing_to_rank(tmp_path: Path, capsys) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('hello')\n")
    assert main(["kernels", "ref", "--profile", str(program)]) == 1
    assert "ran no op" in capsys.readouterr().err
    program.write_text("raise SystemExit(3)\n")
    assert main(["kernels", "ref", "--profile", str(program)]) == 1
    assert "ended with status 3" in capsys.readouterr().err
    assert main(["kernels", "ref", "--profile", str(tmp_path / "absent.py")]) == 1
    assert "absent.py: there is no such file" in capsys.readouterr().err
    assert main(["kernels", "ref", "--profile"]) == 2
    assert "name the script to run" in capsys.readouterr().err


def test_what_a_program_does_on_other_devices_is_not_ranked(tmp_path: Path, capsys) -> None:
    program = tmp_path / "program.py"
    program.write_text("import flambeau as fb\nfb.ones(3, 3).softmax(0)\n")
    assert main(["kernels", "ref", "--profile", str(program)]) == 1
    assert "ran no op on 'ref'" in capsys.readouterr().err
    program.write_text(
        "import flambeau as fb\n"
        "fb.nn.functional.silu(fb.ones(3))\n"
        "fb.ones(3, device='ref').softmax(0)\n"
    )
    assert main(["kernels", "ref", "--profile", str(program)]) == 0
    said = capsys.readouterr().out
    assert "softmax" in said
    assert "silu" not in said


def test_the_shares_of_ops_outside_of_each_other_add_up_to_at_most_all(tmp_path, capsys) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import flambeau as fb\n"
        "x = fb.ones(9, 9, device='ref', requires_grad=True)\n"
        "x.softmax(0).sum().backward()\n"
    )
    assert main(["kernels", "ref", "--profile", str(program)]) == 0
    rows = dict(re.findall(r"^(\w+) .* ([\d.]+) %$", capsys.readouterr().out, re.M))
    assert {"softmax", "softmax_backward"} <= rows.keys()
    shares = [float(rows[name]) for name in ("softmax", "softmax_backward")]
    assert all(share > 0 for share in shares)
    assert sum(shares) <= 100.1


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m flambeau kernels ref | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["op", "tier", "provider"]
    assert done.stderr == ""


def test_the_device_of_another_package_is_noted(tmp_path: Path, capsys) -> None:
    class Elsewhere(PluginHost):
        def installed(self):
            return {"toy": (Entry("toy", "flambeau-toy", "0.1", "toy", lambda: None),)}

    folder = ["--directory", str(tmp_path / "new")]
    assert main(["new-backend", "toy", *folder], plugins=Elsewhere(entry_points=list)) == 0
    said = capsys.readouterr()
    assert "pip install -e . pytest && python -m pytest tests" in said.out
    assert said.err == (
        "note: flambeau-toy provides device 'toy' here already; only one package can own it\n"
    )
