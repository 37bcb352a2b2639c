"""How the library is found, and what happens where there is none."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from mmap import ACCESS_READ, mmap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("flambeau_onednn") is None, reason="flambeau-onednn is not installed"
)

HEAD = """
import flambeau as fb
from flambeau.plugin.host import host
if "flambeau-onednn" not in {e.distribution for es in host.installed().values() for e in es}:
    from flambeau_onednn import plugin
    host.register(plugin, name="flambeau-onednn", device_types=["cpu"])
"""


def _run(program: str, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", HEAD + program]
    known = os.environ | environment
    done = subprocess.run(
        command, env=known, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_oneDNN_is_there(missing):
    if missing:
        pytest.skip(missing)


@pytest.mark.parametrize("path", ["nosuch.so", sys.executable])
def test_without_the_library_numpy_computes_and_the_report_says_why(path):
    program = (
        "x = fb.ones(1, 1, 3, 3); print(float(fb.nn.functional.conv2d(x, x)));"
        "print(host.providers('cpu')['conv2d'].split()[0]); print(host.report('cpu')['onednn'])"
    )
    total, provider, report = _run(program, FLAMBEAU_ONEDNN_LIBRARY=path).splitlines()
    assert (float(total), provider) == (9.0, "flambeau-numpy")
    assert report.startswith("not used: ")
    assert path in report


def test_the_doctor_says_why_the_library_is_not_used():
    program = (
        "from flambeau.__main__ import main; from flambeau.plugin.host import host; import sys;"
        "main(['doctor'], plugins=host)"
    )
    found = _run(program, FLAMBEAU_ONEDNN_LIBRARY="nosuch.so")
    line = next(line for line in found.splitlines() if "onednn" in line and "not used" in line)
    assert line.startswith("note")
    assert "nosuch.so" in line


def test_with_the_library_oneDNN_serves_convolutions_and_products_and_nothing_else(missing):
    if missing:
        pytest.skip(missing)
    program = (
        "host.activate('cpu');"
        "print([op for op, p in sorted(host.providers('cpu').items()) if 'onednn' in p])"
    )
    names = [f"conv{n}d{s}" for n in (2, 3) for s in ("", "_input_grad", "_weight_grad")]
    if platform.machine().lower() in ("x86_64", "amd64"):
        names += ["matmul", "addmm", "linear", "linear_activation"]
    assert _run(program) == str(sorted(names))


def test_building_anew_leaves_the_library_of_running_programs_as_it_is(tmp_path):
    hook = Path(__file__).parents[1] / "hatch_build.py"
    spec = spec_from_file_location("hatch_build", hook)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    new, placed = tmp_path / "new.so", tmp_path / "placed.so"
    new.write_bytes(b"new")
    placed.write_bytes(b"older")
    with placed.open("rb") as opened:
        loaded = mmap(opened.fileno(), 0, access=ACCESS_READ)
    module._put(new, placed)
    assert placed.read_bytes() == b"new"
    assert loaded[:] == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.so", "placed.so"]
