"""Names of ``torch.utils.cpp_extension`` that only programs for PyTorch want."""

from __future__ import annotations

import os
import re

from flambeau.compat._torch.torch_version import TorchVersion
from flambeau.utils.cpp_extension import CUDA_HOME, check_compiler_abi_compatibility
from flambeau.utils.cpp_extension._compiler import _cuda_home, compiler, is_cuda_source, version_of

__all__ = [
    "_find_cuda_home",
    "_find_rocm_home",
    "_get_pybind11_abi_build_flags",
    "_is_binary_build",
    "_is_cuda_file",
    "_join_cuda_home",
    "_join_rocm_home",
    "check_compiler_is_gcc",
    "check_compiler_ok_for_platform",
    "get_compiler_abi_compatibility_and_version",
    "get_cxx_compiler",
]

_find_cuda_home = _cuda_home
get_cxx_compiler = compiler
_is_cuda_file = is_cuda_source


def _find_rocm_home() -> str | None:
    """None: extensions are not compiled for ROCm."""
    return None


def _join_cuda_home(*paths: str) -> str:
    """A path below that of CUDA.

    Raises:
        OSError: nobody knows where CUDA is.
    """
    if CUDA_HOME is None:
        raise OSError(
            "CUDA_HOME environment variable is not set. Please set it to your CUDA install root."
        )
    return os.path.join(CUDA_HOME, *paths)


def _join_rocm_home(*paths: str) -> str:
    """A path below that of ROCm.

    Raises:
        OSError: always.
    """
    raise OSError("ROCM_HOME environment variable is not set: extensions are not built for ROCm")


def _get_pybind11_abi_build_flags() -> list[str]:
    """What a compiler is told so that libraries fit: nothing, all of it is in headers."""
    return []


def _is_binary_build() -> bool:
    """Whether a compiler has to be the one that built a library: no, there is none to fit."""
    return False


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a compiler says that it is GCC."""
    said = version_of(compiler)
    return "Free Software Foundation" in said or re.search(r"\b(gcc|g\+\+)\b", said) is not None


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler is there and is one that extensions are compiled with."""
    said = version_of(compiler)
    return check_compiler_is_gcc(compiler) or "clang" in said


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, TorchVersion]:
    """Whether a compiler can build extensions, and its version; 0.0.0 where it says none."""
    fits = check_compiler_abi_compatibility(compiler)
    found = re.search(r"(\d+\.\d+(?:\.\d+)?)", version_of(compiler))
    return fits, TorchVersion(found[1] if found else "0.0.0")
