"""Signals during a product: none is delivered while the library computes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from flambeau_onednn.library import onednn

PROGRAM = """
import signal, time
import numpy as np
import flambeau as fb

fb.zeros(1)
from flambeau_onednn.kernels.linalg import _gemm

a, b = np.ones((600, 500), np.float32), np.ones((500, 400), np.float32)
out = np.empty((600, 400), np.float32)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 2e-4)
end = time.monotonic() + 2
while time.monotonic() < end:
    _gemm(a, b, out)
signal.setitimer(signal.ITIMER_REAL, 0)
assert (out == 500).all()
kept = [bytearray(size) for size in range(2000)]
"""


@pytest.mark.skipif(
    onednn() is None or not hasattr(signal, "setitimer"), reason="no oneDNN, or no timer signals"
)
def test_signals_leave_the_heap_alone():
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
