"""A backend costs nothing until its device is used, and does its own work."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau as fb
from flambeau.plugin.host import host
from flambeau.testing.backend import _support as kit

LEVEL = "memory"


def packages(device: str) -> list[str]:
    """The modules that the plugins of a device consist of, as installed."""
    entries = host.installed().get(device, ())
    modules = [e.target.partition(":")[0] for e in entries if not host.is_blocked(e.name)]
    # Those of the core itself share its package, which is there anyway.
    return [m if m.startswith("flambeau.") else m.partition(".")[0] for m in modules]


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_plugin_is_imported_at_first_use_of_its_device(device: str) -> None:
    names = packages(device)
    if not names:
        pytest.skip(f"device {device!r} was registered by code, not installed")
    program = (
        "import sys, flambeau as fb\n"
        f"names = {names!r}\n"
        "def loaded(): return sorted(n for n in names if n in sys.modules)\n"
        "fb.zeros(2, device='meta') + 1\n"
        f"fb.device({device!r})\n"
        "print(loaded())\n"
        f"fb.zeros(2, device={device!r})\n"
        "print(loaded())\n"
    )
    before, after = run(program).splitlines()
    assert before == "[]", "imported before its device was used"
    assert after == repr(sorted(names))


def test_no_cpu_fallback_is_switched_on(device: str) -> None:
    assert not fb.is_cpu_fallback_enabled()
    assert not [key for key in fb.cpu_fallback_counts() if key[1] == device]


def test_threads_may_use_the_device_first_at_the_same_time(device: str) -> None:
    if not packages(device):
        pytest.skip(f"device {device!r} was registered by code, not installed")
    (dtype, *_) = kit.supported(device)
    program = (
        "import threading, flambeau as fb\n"
        "start, found = threading.Barrier(8), []\n"
        "def work():\n"
        "    start.wait()\n"
        f"    found.append((fb.ones(3, dtype=fb.{dtype.name}, device={device!r})).tolist())\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[t.start() for t in threads]\n"
        "[t.join() for t in threads]\n"
        "print(len(found), all(f == found[0] for f in found))\n"
    )
    assert run(program).split() == ["8", "True"]
