"""Bad arguments of every public tensor function end in an exception that a program can handle.

The calls run in processes of their own whose memory is limited: a size that was not checked before
it was allocated, and a crash, both show.  The same calls are drawn in every run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROUPS = 4
ROUNDS = 16  # calls of every function
SEED = 20  # another number draws other calls
CALLS = Path(__file__).with_name("bad_input_calls.py")


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory and processor time")
@pytest.mark.parametrize("group", range(GROUPS))
def test_bad_arguments_raise_ordinary_exceptions(group):
    command = [sys.executable, str(CALLS), *map(str, (group, GROUPS, ROUNDS, SEED))]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired as hung:
        last = (hung.stderr or b"").decode(errors="replace").splitlines()[-1:]
        pytest.fail(f"no answer from {last}")
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stdout + run.stderr[-2000:]
