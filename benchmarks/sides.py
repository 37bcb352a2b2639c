"""The libraries that are compared: which are installed, their threads, versions, the machine."""

from __future__ import annotations

import datetime
import importlib
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness import OURS

OTHERS = ("torch", "numpy", "jax", "tinygrad", "chainer")
WATCHED = ("flambeau-native", "flambeau-onednn", "numpy", "scipy")
BUSY = 0.5
"""Load per processor at the start beyond which a machine is not quiet."""


def libraries(wanted: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The modules that can be imported, flambeau first, and why the others cannot.

    flambeau's device is used first, so that the OpenMP which flambeau and torch may share in one
    process waits as flambeau's does, for both.
    """
    found = {OURS: importlib.import_module(OURS)}
    found[OURS].ones(1).add(1)
    missing = {}
    for name in wanted:
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing[name] = "not installed" if error.name == name else str(error)
        except Exception as error:  # an old library and a new NumPy, say
            missing[name] = f"cannot be imported: {type(error).__name__}: {error}".split("\n")[0]
    return found, missing


def set_threads(sides: dict[str, Any], count: int) -> None:
    """All sides to `count` threads; those without a switch are left with what they have."""
    from threadpoolctl import threadpool_limits

    for module in sides.values():
        if hasattr(module, "set_num_threads"):
            module.set_num_threads(count)
    threadpool_limits(count, user_api="blas")


def environment(sides: dict[str, Any]) -> dict[str, Any]:
    """When, on what, and with which versions."""
    facts: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": platform.system(),
        "python": platform.python_version(),
    }
    for name, module in sides.items():
        facts[name] = str(getattr(module, "__version__", "?"))
    from importlib.metadata import PackageNotFoundError, version

    for name in WATCHED:
        try:
            facts.setdefault(name, version(name))
        except PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def is_busy(facts: dict[str, Any]) -> bool:
    """Whether others used the machine when the measuring began."""
    return (facts.get("load") or 0.0) > BUSY * (facts.get("processors") or 1)


def processor() -> str:
    """The product name of the processor, or its family."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
