"""The runner of other people's programs compares what it runs, and says what it could not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
sys.path.insert(0, str(PROGRAMS))

import judging  # noqa: E402  the folder is no package: its files are found once it is on the path
import running  # noqa: E402
import table  # noqa: E402
from table import Program  # noqa: E402

SUITE = """
import unittest
import torch
from beside import three

class Tests(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(torch.ones(3).sum().item(), three)

    def test_wrong(self):
        self.assertEqual(torch.ones(3).sum().item(), 4)
"""


def source_of(tmp_path: Path, files: dict[str, str]) -> tuple[running.Place, str]:
    """A place whose sources are one repository of these files; and the repository at its commit."""
    clone = tmp_path / "sources" / "someone+something"
    for name, text in files.items():
        path = clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *command], check=True)
    told = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    place = running.Place(tmp_path / "build", sys.executable, tmp_path / "sources")
    return place, f"github:someone/something@{told.stdout.strip()}"


def test_pytorch_s_own_source_does_not_hide_the_pytorch_that_is_installed(tmp_path: Path) -> None:
    files = {
        "torch/__init__.py": "raise ImportError('not compiled')",
        "test/beside.py": "three = 3",
        "test/test_sums.py": SUITE,
    }
    place, source = source_of(tmp_path, files)
    suite = Program("a/b", source, "test/test_sums.py", check="suite", arguments=("60",))
    torch, flambeau = (place.run(suite, each, again=True) for each in ("torch", "flambeau"))
    assert judging.passed(torch.output) == {"test_sums.Tests.test_sum"}
    verdict = judging.judge(suite, torch, flambeau)
    assert verdict == judging.Verdict("runs", "1 of 2 tests, 1 on PyTorch 2.13")


def test_a_program_that_uses_up_its_processor_time_is_stopped(tmp_path: Path) -> None:
    place, source = source_of(tmp_path, {"loop.py": "print(1, flush=True)\nwhile True: pass\n"})
    loop = Program("a/b", source, "loop.py", limit=1)
    outcome = place.run(loop, "flambeau", again=True)
    assert outcome.status == 124
    assert "no end in" in judging.last_line(outcome)


def test_programs_find_stand_ins_for_older_packages_and_libraries_do_not(tmp_path: Path) -> None:
    old = Program("a/b", "github:a/b@1", "main.py")
    new = Program("a/c", "github:a/c@1", "main.py", era="2")
    library = Program("a/d", "pypi:d==1", "drivers/d.py", era="2")
    stand_ins = PROGRAMS / "stand_ins"
    assert running.import_paths(old, tmp_path) == [tmp_path, stand_ins]
    assert running.import_paths(new, tmp_path) == [tmp_path, stand_ins]
    assert running.import_paths(library, tmp_path) == [tmp_path]
    modern = Program("a/e", "github:a/e@1", "main.py", era="2", stand_ins=False)
    assert running.import_paths(modern, tmp_path) == [tmp_path]


COMPILE = """
import pathlib, sys, torch
by = pathlib.Path(torch.__file__).parent.name
pathlib.Path(sys.argv[1]).write_text(f"by = {by!r}; at = {pathlib.Path.cwd().name!r}")
"""


def test_what_is_compiled_is_found_by_the_program_and_by_what_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "inner/setup.py": COMPILE,
        "inner/lib/plain.py": "",
        "first.py": "import plain, made; print('PASSED', made.by, made.at)",
        "second.py": "import made; print('PASSED', made.by)",
    }
    place, source = source_of(tmp_path, files)
    build = ("mkdir -p lib", "inner/setup.py ../lib/made.py")
    first = Program(
        "a/b", source, "first.py", build=build, paths=("lib", "inner/lib"), check="lines"
    )
    second = Program("a/c", source, "second.py", needs="a/b", check="lines")
    monkeypatch.setattr(running, "programs", lambda: [first, second])
    for library in ("torch", "flambeau"):
        outcome = place.run(second, library, again=True)
        assert (outcome.built, judging.passed(outcome.output)) == (True, {library}), outcome.errors
        assert judging.passed(place.run(first, library, again=True).output) == {f"{library} inner"}


def test_a_program_whose_build_fails_is_not_run_and_says_what_failed(tmp_path: Path) -> None:
    files = {"setup.py": "raise OSError('no compiler')", "main.py": "print('PASSED all')"}
    place, source = source_of(tmp_path, files)
    program = Program("a/b", source, "main.py", build=("setup.py",), check="tests", least=1)
    outcome = place.run(program, "flambeau", again=True)
    assert (outcome.built, outcome.status, outcome.output) == (False, 1, "")
    verdict = judging.judge(program, running.NOT_BUILT, outcome)
    assert verdict == judging.Verdict("fails", "is not built: OSError: no compiler")


def test_what_pytorch_does_not_build_is_judged_by_the_number_of_tests_that_pass() -> None:
    program = Program("a/b", "github:a/b@1", "test", check="tests", build=("setup.py",), least=2)
    for told, state in (("PASSED a\nPASSED b\n", "runs"), ("PASSED a\nFAILED b\n", "fails")):
        outcome = running.Outcome(0, told, "", 1.0)
        verdict = judging.judge(program, running.NOT_BUILT, outcome)
        count = told.count("PASSED")
        assert verdict == judging.Verdict(state, f"{count} pass; not built on PyTorch")


def test_the_table_names_programs_that_it_has_and_says_how_much_extensions_pass() -> None:
    found = {program.name: program for program in table.programs()}
    assert {program.needs for program in found.values()} - {""} <= set(found)
    compiled = [program for name, program in found.items() if name.startswith("extensions")]
    assert len(compiled) >= 13
    assert [program.name for program in compiled if not program.least] == []


def test_scripts_run_one_after_the_other_each_where_it_lies(tmp_path: Path) -> None:
    files = {
        "a/one.py": "import os, sys, beside; print(os.path.basename(os.getcwd()), sys.argv[1:])",
        "a/beside.py": "",
        "two.py": "import sys; sys.exit(3)",
        "three.py": "raise KeyError('x')",
        "four.py": "import sys; sys.exit()",
    }
    place, source = source_of(tmp_path, files)
    lines = ("a/one.py -x 'y z'", "two.py", "three.py", "four.py")
    program = Program("a/b", source, "drivers/scripts.py", arguments=lines, check="lines")
    outcome = place.run(program, "flambeau", again=True)
    said = outcome.output.splitlines()
    assert said[0] == "a ['-x', 'y z']"
    assert said[1:] == [f"PASSED {lines[0]}", "FAILED two.py", "FAILED three.py", "PASSED four.py"]


def test_drivers_on_libraries_draw_nothing_before_they_set_a_seed() -> None:
    drivers = sorted((PROGRAMS / "drivers" / "libraries").glob("*.py"))
    # At the top level: what a function draws, it draws when it is called.
    draws = re.compile(
        r"^\w[^#\n]*\.rand|^(?!from|import|class|def)\w[^#\n]*(seed|set_determinism)", re.M
    )
    first = {path.stem: draws.search(path.read_text("utf-8")) for path in drivers}
    assert len(first) > 30
    assert [name for name, drawn in first.items() if drawn and ".rand" in drawn[0]] == []
