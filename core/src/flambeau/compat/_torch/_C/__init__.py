"""What PyTorch's compiled module tells Python programs: there is none, and this answers."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Generator, Size, Tensor, device, dtype, layout, memory_format
from flambeau.compat._torch._C import _nn

__all__ = [
    "Generator",
    "Size",
    "_nn",
    "device",
    "dtype",
    "layout",
    "memory_format",
]

TensorBase = _TensorBase = Tensor
_TensorMeta = type(Tensor)
_VariableFunctions = fb
has_cuda = has_mps = has_xpu = has_mkl = has_mkldnn = has_openmp = False
_has_cuda = _has_mps = _has_xpu = _has_mkldnn = _has_distributed = False
_get_default_dtype = fb.get_default_dtype
_GLIBCXX_USE_CXX11_ABI = True


def _log_api_usage_once(event: str) -> None:
    """Count the use of a name: nothing is counted."""


def _get_tracing_state() -> None:
    """The program that is being traced: none."""


def _get_privateuse1_backend_name() -> str:
    """The name of PyTorch's slot for other devices; here each type has its own name."""
    return "privateuseone"


def _are_functorch_transforms_active() -> bool:
    """False."""
    return False


def _jit_set_profiling_executor(value: Any) -> bool:
    """Set something of the compiler of scripts, and return what it was."""
    return False


_jit_set_profiling_mode = _jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = (
    _jit_set_profiling_executor
)
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_profiling_executor
_jit_set_texpr_fuser_enabled = _jit_set_profiling_executor


def _jit_can_fuse_on_cpu() -> bool:
    """False."""
    return False


_jit_can_fuse_on_gpu = _jit_can_fuse_on_cpu
