"""Who sums checkpoints changes neither files nor what is found in them."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")

PROGRAM = """
import hashlib, io, sys
import flambeau as fb
from flambeau.serialization import CheckpointError, _checksum

x = {"a": fb.arange(300000), "b": fb.ones(2, 3)}
for format in ("archive", "safetensors"):
    file = io.BytesIO()
    options = {} if format == "archive" else {"format": format}
    fb.save(x, file, **options)
    data = bytearray(file.getvalue())
    print(hashlib.sha256(data).hexdigest())
    assert fb.load(io.BytesIO(data))["a"][-1] == 299999
    data[len(data) // 2] ^= 4
    try:
        fb.load(io.BytesIO(data))
    except CheckpointError:
        print("found")
print(_checksum.crc32.__module__, getattr(sys.modules.get("isal.isal_zlib"), "calls", None))
"""
STAND_IN = """
import zlib
calls = 0
def crc32(data, value=0):
    global calls
    calls += 1
    return zlib.crc32(data, value)
"""


def printed(folder):
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{PROGRAM}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def test_files_are_the_same_whoever_sums_them(tmp_path):
    absent, present = tmp_path / "absent", tmp_path / "present"
    for folder, text in ((absent, "raise ImportError"), (present, STAND_IN)):
        (folder / "isal").mkdir(parents=True)
        (folder / "isal" / "__init__.py").touch()
        (folder / "isal" / "isal_zlib.py").write_text(text)
    *by_zlib, who = printed(absent)
    assert who == "zlib None" and by_zlib.count("found") == 2
    assert len({line for line in by_zlib if len(line) == hashlib.sha256().digest_size * 2}) == 2
    *by_other, who = printed(present)
    name, calls = who.split()
    assert name == "isal.isal_zlib" and int(calls) >= 8
    assert by_other == by_zlib
