"""Bad arguments of every public tensor function end in an exception that a program can handle.

The calls run in processes of their own whose memory is limited: a size that was not checked before
it was allocated, and a crash, both show.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROUPS = 6
LIMIT = 2 << 30  # bytes of address space beyond what the imports take
CALLS = Path(__file__).with_name("bad_input_calls.py")


@pytest.mark.parametrize("group", range(GROUPS))
def test_bad_arguments_raise_ordinary_exceptions(group):
    run = subprocess.run(
        [sys.executable, str(CALLS), str(group), str(GROUPS), str(LIMIT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, ""), run.stdout + run.stderr[-2000:]
