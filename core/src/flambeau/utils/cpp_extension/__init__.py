"""Extensions in C++ and CUDA: `load`, `load_inline`, and classes for ``setup.py``.

Sources for PyTorch 1.x, with ``#include <torch/extension.h>``, are compiled against headers of
this package: an ``at::Tensor`` is a tensor of Python, functions of ``at`` and ``torch`` call
flambeau's, accessors and ``data_ptr`` are its memory. Gradients are given by an
`autograd.Function`.
Needed are a compiler for C++17 and pybind11 (``pip install 'pybind11>=3.0' setuptools``).

>>> import flambeau as fb
>>> from flambeau.utils import cpp_extension
>>> source = "at::Tensor twice(at::Tensor x) { return x * 2; }"
>>> module = cpp_extension.load_inline("doubling", source, functions="twice")  # doctest: +SKIP
>>> module.twice(fb.ones(2))                                                   # doctest: +SKIP
tensor([2., 2.])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from flambeau.utils.cpp_extension._build import get_default_build_root
from flambeau.utils.cpp_extension._compiler import (
    CUDA_HOME,
    CUDNN_HOME,
    check_compiler_abi_compatibility,
    include_paths,
    is_ninja_available,
    library_paths,
    verify_ninja_availability,
)
from flambeau.utils.cpp_extension._load import load, load_inline

if TYPE_CHECKING:
    from flambeau.utils.cpp_extension._setuptools import (
        BuildExtension as BuildExtension,
    )
    from flambeau.utils.cpp_extension._setuptools import (
        CppExtension as CppExtension,
    )
    from flambeau.utils.cpp_extension._setuptools import (
        CUDAExtension as CUDAExtension,
    )

__all__ = [
    "CUDA_HOME",
    "CUDNN_HOME",
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "check_compiler_abi_compatibility",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]

ROCM_HOME = None
IS_HIP_EXTENSION = False
IS_WINDOWS = False

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # They derive from setuptools, which only a setup.py needs.
        if name in ("BuildExtension", "CUDAExtension", "CppExtension"):
            return getattr(importlib.import_module(f"{__name__}._setuptools"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
