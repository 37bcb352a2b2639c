"""What a report of a fault says of an installation."""

from __future__ import annotations

import locale
import os
import platform
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import NamedTuple

import flambeau as fb
from flambeau._cli.doctor import diagnose, format_findings
from flambeau.compat._versions import version as told_version
from flambeau.plugin.host import host

__all__ = [
    "SystemEnv",
    "get_clang_version",
    "get_cmake_version",
    "get_cpu_info",
    "get_env_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_libc_version",
    "get_nvidia_driver_version",
    "get_os",
    "get_pip_packages",
    "get_platform",
    "get_pretty_env_info",
    "get_python_platform",
    "get_running_cuda_version",
    "main",
    "pretty_str",
    "run",
    "run_and_parse_first_match",
    "run_and_read_all",
    "run_and_return_first_line",
]

Run = Callable[[str | list[str]], tuple[int, str, str]]


def run(command: str | list[str]) -> tuple[int, str, str]:
    """The status, the output and the errors of a command; a text goes through the shell."""
    done = subprocess.run(command, shell=isinstance(command, str), capture_output=True)
    encoding = locale.getpreferredencoding()
    output, errors = (part.decode(encoding, "replace") for part in (done.stdout, done.stderr))
    return done.returncode, output.strip(), errors.strip()


def run_and_parse_first_match(run_lambda: Run, command: str, regex: str) -> str | None:
    """What the first group of a pattern finds in the output of a command; None if it fails."""
    status, output, _ = run_lambda(command)
    found = re.search(regex, output) if status == 0 else None
    return found and found[1]


def run_and_read_all(run_lambda: Run, command: str) -> str | None:
    """The output of a command; None if it fails."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_return_first_line(run_lambda: Run, command: str) -> str | None:
    """The first line of the output of a command; None if it fails."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n")[0]


def get_clang_version(run_lambda: Run) -> str | None:
    """What clang says of its version; None without clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """What cmake says of its version; None without cmake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_running_cuda_version(run_lambda: Run) -> str | None:
    """The version of CUDA's compiler; None without it."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_platform() -> str:
    """The system: ``linux``, ``win32``, ``darwin`` and others."""
    return sys.platform


def get_os(run_lambda: Run) -> str:
    """The name and release of the operating system, and the machine."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.platform()
    return f"{name} ({platform.machine()})"


def get_python_platform() -> str:
    """What Python says of the system."""
    return platform.platform()


def get_libc_version() -> str:
    """The name and version of the C library of Linux."""
    return "-".join(platform.libc_ver()) if sys.platform == "linux" else "N/A"


def get_pip_packages(run_lambda: Run, patterns: Iterable[str] | None = None) -> tuple[str, str]:
    """The name of pip, and lines ``name==version`` of distributions that a pattern is part of.

    Args:
        run_lambda: not called: Python knows what is installed.
        patterns: parts of names, by default those of flambeau, PyTorch, NumPy, mypy and ONNX.
    """
    wanted = {"flambeau", "torch", "numpy", "mypy", "flake8", "optree", "onnx", "triton"}
    parts = wanted if patterns is None else set(patterns)
    lines = {
        f"{each.metadata['Name']}=={each.version}"
        for each in metadata.distributions()
        if any(part in each.metadata["Name"].lower() for part in parts)
    }
    return "pip3", "\n".join(sorted(lines, key=str.lower))


class SystemEnv(NamedTuple):
    """What a report says of an installation, by PyTorch's names; None is what nobody knows."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: str
    is_xnnpack_available: str
    cpu_info: str


def get_env_info() -> SystemEnv:
    """What there is to say."""
    pip_version, pip_packages = get_pip_packages(run)
    bits = 8 * struct.calcsize("P")
    version = sys.version.replace("\n", " ")
    return SystemEnv(
        torch_version=told_version(),
        is_debug_build="False",
        cuda_compiled_version=None,
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{version} ({bits}-bit runtime)",
        python_platform=get_python_platform(),
        is_cuda_available=str(fb.cuda.is_available()),
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading="N/A",
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=None,
        is_xpu_available=str("xpu" in host.device_types()),
        pip_version=pip_version,
        pip_packages=pip_packages,
        conda_packages=None,
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config="N/A",
        is_xnnpack_available="False",
        cpu_info=get_cpu_info(run),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """A line for each thing that is said, and several for those of several lines."""
    facts = envinfo._asdict()
    long = {name: facts.pop(name) for name in ("pip_packages", "cpu_info")}
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in facts.items()]
    for name, value in long.items():
        lines += ["", f"{name.replace('_', ' ')}:", value]
    return "\n".join(lines)


def get_gcc_version(run_lambda: Run) -> str | None:
    """What gcc says of its version; None without gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", "gcc (.*)")


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The version of the driver, by nvidia-smi; None without it."""
    return run_and_parse_first_match(run_lambda, "nvidia-smi", "Driver Version: (.*?) ")


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
