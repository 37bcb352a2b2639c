"""Compilers, where headers are, and which options sources need."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sysconfig
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

__all__ = [
    "CUDA_HOME",
    "CUDNN_HOME",
    "check_compiler_abi_compatibility",
    "compile_options",
    "compiler",
    "cuda_options",
    "headers",
    "include_paths",
    "is_cuda_source",
    "is_ninja_available",
    "library_paths",
    "modern",
    "nvcc",
    "verify_ninja_availability",
    "version_of",
]

STANDARD = "-std=c++17"

_OLDEST = {"GCC": (9,), "Clang": (7,), "Apple": (11,)}
"""The versions that know C++17 as the headers use it."""


def _cuda_home() -> str | None:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            return home
    found = shutil.which("nvcc")
    guesses = [Path(found).resolve().parent.parent] if found else []
    # What is found on the path may be a script that lies beside no headers.
    for home in (*guesses, Path("/usr/local/cuda")):
        if (home / "bin" / "nvcc").exists() and (home / "include" / "cuda_runtime.h").exists():
            return str(home)
    return None


CUDA_HOME = _cuda_home()
"""Where CUDA is: ``CUDA_HOME`` of the environment, else where nvcc is; None if nowhere."""

CUDNN_HOME = os.environ.get("CUDNN_HOME") or os.environ.get("CUDNN_PATH")
"""Where cuDNN is, as the environment says."""


def headers() -> Path:
    """The folder of the headers."""
    return Path(__file__).with_name("include")


def include_paths(cuda: bool = False) -> list[str]:
    """The folders that a compiler has to search for ``torch/extension.h`` and what it includes.

    Args:
        cuda: with those of CUDA.

    Raises:
        ImportError: pybind11 is not installed.

    >>> from flambeau.utils import cpp_extension
    >>> cpp_extension.include_paths()[0].endswith("include")
    True
    """
    try:
        import pybind11
    except ImportError as error:
        raise ImportError(
            "C++ extensions are compiled with pybind11: pip install 'pybind11>=3.0' setuptools"
        ) from error
    if int(pybind11.__version__.partition(".")[0]) < 3:
        raise ImportError(
            f"C++ extensions need pybind11 3 or newer, this is {pybind11.__version__}: "
            "pip install --upgrade pybind11"
        )
    paths = [str(headers()), pybind11.get_include()]
    if cuda:
        if CUDA_HOME is None:
            raise OSError("CUDA was not found: set CUDA_HOME to where it is installed")
        paths.append(str(Path(CUDA_HOME, "include")))
    return paths


def library_paths(cuda: bool = False) -> list[str]:
    """The folders of libraries to link: none but CUDA's, the headers have all there is."""
    if not cuda or CUDA_HOME is None:
        return []
    return [str(path) for name in ("lib64", "lib") if (path := Path(CUDA_HOME, name)).is_dir()]


def compiler() -> str:
    """The compiler of C++: ``CXX`` of the environment, else ``c++``.

    Raises:
        RuntimeError: there is none.
    """
    command = os.environ.get("CXX") or "c++"
    if shutil.which(command.split()[0]) is None:
        raise RuntimeError(
            f"there is no compiler {command!r}: install one for C++17 (GCC 9, Clang 7 or newer), "
            "or name it in the environment variable CXX"
        )
    return command


def nvcc() -> str:
    """The compiler of CUDA.

    Raises:
        RuntimeError: there is none.
    """
    if CUDA_HOME is None or not Path(CUDA_HOME, "bin", "nvcc").exists():
        raise RuntimeError("nvcc was not found: set CUDA_HOME to where CUDA is installed")
    return str(Path(CUDA_HOME, "bin", "nvcc"))


@cache
def version_of(command: str) -> str:
    """What a compiler says of itself; empty if it says nothing."""
    try:
        said = subprocess.run(
            [*command.split(), "--version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return said.stdout.strip()


def check_compiler_abi_compatibility(compiler: str) -> bool:
    """Whether a compiler can build extensions; warns and says why if not.

    Everything that extensions use is in headers, so any compiler of C++17 fits: GCC from 9 on,
    Clang from 7 on.

    >>> from flambeau.utils import cpp_extension
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     cpp_extension.check_compiler_abi_compatibility("no-such-compiler")
    False
    """
    if not isinstance(compiler, str):
        raise TypeError(f"the compiler must be named by a str, not {type(compiler).__name__}")
    said = version_of(compiler)
    for kind, pattern in (
        ("Apple", r"Apple clang version ([\d.]+)"),
        ("Clang", r"clang version ([\d.]+)"),
        ("GCC", r"\) ([\d.]+)"),
    ):
        if found := re.search(pattern, said):
            version = tuple(int(part) for part in found[1].strip(".").split("."))
            if version >= _OLDEST[kind]:
                return True
            oldest = ".".join(map(str, _OLDEST[kind]))
            reason = f"{kind} {found[1]} is older than {oldest}, which extensions need"
            break
    else:
        reason = "it is not there, or is neither GCC nor Clang"
    warnings.warn(f"the compiler {compiler!r} may not build extensions: {reason}", stacklevel=2)
    return False


def is_ninja_available() -> bool:
    """Whether ninja can be run.  `load` and `BuildExtension` leave it to run compilers then."""
    try:
        done = subprocess.run(["ninja", "--version"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def verify_ninja_availability() -> None:
    """Raise an error unless ninja can be run.  Without it, extensions are compiled all the same.

    Raises:
        RuntimeError: it cannot be run.

    >>> from flambeau.utils import cpp_extension
    >>> if cpp_extension.is_ninja_available():
    ...     cpp_extension.verify_ninja_availability()
    """
    if not is_ninja_available():
        raise RuntimeError("ninja cannot be run: pip install ninja")


def is_cuda_source(path: str | os.PathLike[str]) -> bool:
    """Whether nvcc compiles it."""
    return os.fspath(path).endswith((".cu", ".cuh"))


def modern(options: Iterable[str]) -> list[str]:
    """Options without a standard of C++ that is older than the headers."""
    old = re.compile(r"[-/]std[=:](c|gnu)\+\+(0x|11|1y|14|98|03)")
    return [option for option in options if not old.fullmatch(option)]


def compile_options(module: str, extra: Sequence[str] = ()) -> list[str]:
    """Options for a source of the module of this name, without the folders of headers."""
    options = [STANDARD, "-fPIC", "-fvisibility=hidden", "-O2"]
    return [*options, *_names(module), *modern(extra)]


def cuda_options(module: str, extra: Sequence[str] = ()) -> list[str]:
    """The same for nvcc."""
    options = [STANDARD, "--expt-relaxed-constexpr", "--expt-extended-lambda", "-O2"]
    host = ["--compiler-options", "-fPIC,-fvisibility=hidden"]
    return [*options, *host, *_names(module), *modern(extra)]


def _names(module: str) -> list[str]:
    return [f"-DTORCH_EXTENSION_NAME={module}", "-DTORCH_API_INCLUDE_EXTENSION_H"]


def link_options() -> list[str]:
    """Options for the library."""
    shared = ["-shared"]
    if platform.system() == "Darwin":
        shared = ["-bundle", "-undefined", "dynamic_lookup"]
    return shared


def python_include() -> str:
    """The folder of ``Python.h``.

    Raises:
        RuntimeError: it is not installed.
    """
    folder = sysconfig.get_paths()["include"]
    if not Path(folder, "Python.h").exists():
        raise RuntimeError(
            f"{folder} has no Python.h: install the headers of this Python (python3-dev)"
        )
    return folder
