"""What a report of a fault says of an installation."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import flambeau as fb
from flambeau._cli.doctor import diagnose, format_findings
from flambeau.compat._versions import version as told_version
from flambeau.plugin.host import host

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """Versions, devices and the machine, and what ``python -m flambeau doctor`` prints."""
    versions = {name: _version(name) for name in ("numpy", "flambeau-core", *_PARTS)}
    facts = {
        "PyTorch version": f"{told_version()} (flambeau)",
        "Is debug build": "No",
        "CUDA used to build PyTorch": "None",
        "OS": platform.platform(),
        "Processor": platform.machine(),
        "Byte order": sys.byteorder,
        "Processors": os.cpu_count(),
        "Python version": platform.python_version(),
        "Python implementation": platform.python_implementation(),
        "C compiler of Python": platform.python_compiler(),
        "Is CUDA available": "Yes" if fb.cuda.is_available() else "No",
        "Devices": ", ".join(host.device_types()),
    }
    lines = [f"{name}: {value}" for name, value in facts.items()]
    lines += ["", "Versions of relevant libraries:"]
    lines += [f"[pip] {name}=={version}" for name, version in versions.items() if version]
    return "\n".join([*lines, "", format_findings(diagnose(host))])


_PARTS = ("flambeau-nn", "flambeau-numpy", "flambeau-native", "flambeau-cupy")


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())
