"""What the make targets lean on: long steps show that they live, failures are named at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STEP = [sys.executable, ROOT / ".ci/step.py"]
FAILURES = [sys.executable, ROOT / ".ci/failures.py"]


@pytest.fixture
def environment():
    """Variables of a process that is no worker of this run and sees the repository's conftest."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**kept, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def pytest_of(folder: Path, *arguments: str) -> list[str | Path]:
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider"),
        *("--rootdir", folder, *arguments),
    ]


def test_step_shows_that_it_lives_and_hides_what_succeeds():
    program = "import time; print('said'); time.sleep(0.5)"
    done = subprocess.run(
        [*STEP, "--every", "0.05", "a thing (a second)", sys.executable, "-c", program],
        capture_output=True,
        text=True,
    )
    first, *signs = done.stdout.splitlines()
    assert (done.returncode, first) == (0, "a thing (a second) ...")
    assert signs
    assert all(sign.strip().endswith(" s") for sign in signs)


def test_step_that_fails_shows_what_it_said_and_has_its_status():
    program = "import sys; print('because'); print('of this', file=sys.stderr); sys.exit(3)"
    done = subprocess.run([*STEP, "a thing", sys.executable, "-c", program], capture_output=True)
    assert done.returncode == 3
    assert b"because" in done.stdout
    assert b"of this" in done.stdout
    assert done.stdout.endswith(b"a thing: failed with status 3\n")


def test_failures_of_several_runs_are_named_at_the_end(tmp_path, environment):
    (tmp_path / "test_one.py").write_text(
        "def test_wrong():\n    assert 0\n\ndef test_fine():\n    pass\n"
    )
    (tmp_path / "test_torn.py").write_text("def\n")
    runs = [list(map(str, pytest_of(tmp_path, f"test_{name}.py"))) for name in ("one", "torn")]
    program = f"import subprocess, sys; sys.exit(max([subprocess.call(r) for r in {runs!r}]))"
    done = subprocess.run(
        [*FAILURES, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.endswith("\n2 failed:\n  test_one.py::test_wrong\n  test_torn.py\n")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("ignored", [False, True], ids=["of a terminal", "in the background"])
def test_failures_are_named_when_the_run_is_stopped(tmp_path, environment, ignored):
    os.mkfifo(tmp_path / "begun")
    (tmp_path / "test_long.py").write_text(
        "import time\n\ndef test_first():\n    assert 0\n\n"
        # A signal that comes before `signal.pause` has begun would be waited for ever.
        "def test_second():\n    open('begun', 'w').close()\n"
        "    while True:\n        time.sleep(0.01)\n"
    )
    # A shell lets what it starts in the background ignore SIGINT.
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"] if ignored else []
    run = subprocess.Popen(
        [*shell, *FAILURES, *pytest_of(tmp_path, "test_long.py")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    (tmp_path / "begun").open().close()  # until the second test has begun
    run.send_signal(signal.SIGTERM)
    said, _ = run.communicate()
    assert run.returncode == 2
    assert said.endswith("\n1 failed:\n  test_long.py::test_first\n")
