"""The examples of two processes learn what one with twice the batch learns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau as fb

FOLDER = Path(__file__).resolve().parents[1] / "examples/distributed"


def losses(program: Path, processes: int) -> list[str]:
    options = ["--steps", "20", "--backend", "reference", "--processes", str(processes)]
    done = subprocess.run(
        [sys.executable, program, *options], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return re.findall(r"loss (\d\.\d{4})", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("program", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_two_processes_have_the_losses_of_one_of_twice_the_batch(program: Path) -> None:
    one = losses(program, 1)
    assert len(one) == 2
    assert losses(program, 2) == one


@pytest.mark.slow
@pytest.mark.skipif(
    not fb.distributed.is_available(), reason="no engine is installed: pip install flambeau-mpi"
)
def test_the_program_of_the_guide_trains(tmp_path: Path) -> None:
    page = (FOLDER.parents[1] / "docs/guide/distributed.md").read_text()
    (program,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "train.py").write_text(program)
    command = [sys.executable, "-m", "flambeau.distributed.launch", "--standalone", "--use_env"]
    done = subprocess.run(
        [*command, "--nproc_per_node=2", "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert set(fb.load(tmp_path / "model.pt")) == {"weight", "bias"}
