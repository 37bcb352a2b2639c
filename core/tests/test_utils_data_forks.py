"""Iterators of a loader with workers in a process that was forked amid an iteration."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

PROGRAM = """
import gc, os, sys
import flambeau as fb
from flambeau.utils.data import DataLoader

loader = DataLoader(range(8), 2, num_workers=2, persistent_workers=sys.argv[1] == "persistent")
under_way = iter(loader)
first = next(under_way)
ended = iter(DataLoader(range(2), num_workers=1))
list(ended)
child = os.fork()
if not child:
    assert next(ended, None) is None
    try:
        next(under_way)
    except RuntimeError as error:
        assert "forked" in str(error) and str(os.getppid()) in str(error), error
    else:
        raise AssertionError("a batch of the parent was taken")
    if sys.argv[2] == "anew":
        assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    del under_way, loader
    gc.collect()
    sys.exit(0)  # what stands until then is ended with the interpreter
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert [b.tolist() for b in under_way] == [[2, 3], [4, 5], [6, 7]]
assert [len(b) for b in loader] == [2] * 4
"""


@pytest.mark.parametrize(("workers", "child"), [("persistent", "anew"), ("new", "nothing")])
def test_a_forked_child_takes_no_batch_of_its_parent_and_ends_in_silence(workers, child):
    quiet = "-Wignore:This process:DeprecationWarning"
    found = subprocess.run(
        [sys.executable, quiet, "-c", PROGRAM, workers, child],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert not found.stderr
