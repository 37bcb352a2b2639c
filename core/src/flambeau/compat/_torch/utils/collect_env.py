"""What a report of a fault says of an installation."""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata

import flambeau as fb
from flambeau._cli.doctor import diagnose, format_findings
from flambeau.compat._versions import version as told_version
from flambeau.plugin.host import host

__all__ = [
    "get_cpu_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_nvidia_driver_version",
    "get_pretty_env_info",
    "main",
    "run",
]

Run = Callable[[str | list[str]], tuple[int, str, str]]


def run(command: str | list[str]) -> tuple[int, str, str]:
    """The status, the output and the errors of a command; a text goes through the shell."""
    done = subprocess.run(command, shell=isinstance(command, str), capture_output=True)
    encoding = locale.getpreferredencoding()
    output, errors = (part.decode(encoding, "replace") for part in (done.stdout, done.stderr))
    return done.returncode, output.strip(), errors.strip()


def _first_match(run_lambda: Run, command: str, pattern: str) -> str | None:
    status, output, _ = run_lambda(command)
    found = re.search(pattern, output) if status == 0 else None
    return found and found[1]


def get_gcc_version(run_lambda: Run) -> str | None:
    """What gcc says of its version; None without gcc."""
    return _first_match(run_lambda, "gcc --version", "gcc (.*)")


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The version of the driver, by nvidia-smi; None without it."""
    return _first_match(run_lambda, "nvidia-smi", "Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Run) -> str | None:
    """The CUDA devices, a line each, by nvidia-smi; None without one."""
    status, output, _ = run_lambda("nvidia-smi -L")
    return re.sub(r" \(UUID: .+?\)", "", output) if status == 0 else None


def get_cpu_info(run_lambda: Run) -> str:
    """What lscpu says of the processors; without it nothing."""
    status, output, errors = run_lambda("lscpu")
    return output if status == 0 else errors


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
