"""Compiled functions refuse integers that lead out of their arrays, or do no harm and end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from flambeau_native.extension import native

MISUSE = Path(__file__).with_name("misuse.py")


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect, and timers of processor time")
@pytest.mark.parametrize(
    "count", [40, pytest.param(1000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_no_integers_lead_a_function_out_of_its_arrays_or_keep_it_busy(count, tmp_path):
    journal = tmp_path / "journal"
    journal.write_bytes(bytes(1 << 14))
    command = [sys.executable, MISUSE, journal, str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    last = journal.read_bytes().split(b"\0")[0].decode()
    assert (ended.returncode, ended.stderr) == (0, ""), f"in {last}\n{ended.stderr}"
    refused, done = (int(word) for word in ended.stdout.split() if word.isdigit())
    assert refused > 0 and done > 1000, "what is always refused shows nothing"


def test_sums_along_no_elements_read_nothing():
    native.cumsum_f32(np.zeros(0, np.float32), np.zeros(0, np.float32), 3, 0, 1 << 20)


def test_a_copy_before_its_target_is_refused():
    with pytest.raises(RuntimeError, match="bytes"):
        native.copy(np.zeros(8, np.uint8), np.zeros(8, np.uint8), 8, -8)


@pytest.mark.parametrize("block", [0, -1])
def test_blocks_of_no_rows_are_refused(block):
    a = np.zeros(4, np.float32)
    with pytest.raises(RuntimeError, match="bytes"):
        native.layer_norm_backward_f32(*[a] * 9, 2, 2, block)


def test_parts_hold_the_sums_of_every_block():
    a, parts = np.zeros(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(RuntimeError, match="array 3 has 16 bytes, where 32 are"):
        native.layer_norm_backward_f32(a, a, a, parts, a, a, a, a, a, 2, 2, 1)
    native.layer_norm_backward_f32(a, a, a, parts, a, a, a, a, a, 2, 2, 2)


@pytest.mark.parametrize("step", [0, -1, 1 << 62])
def test_windows_go_on_by_steps_that_lead_somewhere(step):
    out, x = np.zeros(4, np.float32), np.zeros(16, np.float32)
    with pytest.raises(RuntimeError, match="nowhere"):
        native.avg_pool2d_f32(out, x, 1, 4, 4, 2, 2, 2, 2, 2, step, 0, 0, 1, 0.0)


def test_an_address_of_nothing_is_refused():
    with pytest.raises(RuntimeError, match="address"):
        native.words(np.zeros(4, np.uint32), 0, 4)


@pytest.mark.parametrize("name", ["avg_pool2d_f32", "avg_pool2d_backward_f32"])
def test_rows_of_no_windows_are_not_counted(name):
    out, x = np.zeros(0, np.float32), np.ones(2, np.float32)
    if "backward" in name:
        out, x = x, out
    getattr(native, name)(out, x, 1, 1, 2, 1 << 40, 0, 3, 1, 2, 1, 1, 0, 3, 0.0)
    assert x.tolist() in ([1.0, 1.0], []) and not ("backward" in name and out.any())
