"""What PyTorch's compiled module tells Python programs: there is none, and this answers."""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import flambeau as fb
from flambeau import Generator, Size, Tensor, device, dtype, layout, memory_format
from flambeau._autograd.node import AccumulateGrad
from flambeau._tensor import function_modes, overrides
from flambeau._tensor.overrides import DisableTorchFunctionSubclass
from flambeau.compat._torch._C import _nn

__all__ = [
    "DisableTorchFunctionSubclass",
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "Size",
    "Tag",
    "_ExcludeDispatchKeyGuard",
    "_IncludeDispatchKeyGuard",
    "_nn",
    "device",
    "dtype",
    "layout",
    "memory_format",
]

TensorBase = _TensorBase = Tensor
_TensorMeta = type(Tensor)
_VariableFunctions = fb
has_lapack = True
_LinAlgError = fb.linalg.LinAlgError
_functions = SimpleNamespace(AccumulateGrad=AccumulateGrad)
_infer_size = fb.broadcast_shapes
has_cuda = has_mps = has_xpu = has_mkl = has_mkldnn = has_openmp = False
_has_cuda = _has_mps = _has_xpu = _has_mkldnn = _has_distributed = False
_get_default_dtype = fb.get_default_dtype
_GLIBCXX_USE_CXX11_ABI = True
_cpu = SimpleNamespace(_get_cpu_capability=lambda: "DEFAULT", _init_amx=lambda: False)


def _log_api_usage_once(event: str) -> None:
    """Count the use of a name: nothing is counted."""


_PROGRAMS = frozenset(
    """Block CompilationUnit Graph Node ScriptFunction ScriptModule Value
    _create_function_from_graph _debug_set_autodiff_subgraph_inlining _get_tracing_state
    _is_tracing ExtraFilesMap JITException parse_ir""".split()
)


def __getattr__(name: str) -> Callable[..., Any]:
    """Names of scripts and traces, which are loaded when one is asked for."""
    if name.endswith("Type") and not name.startswith("_"):
        kinds = importlib.import_module("flambeau.compat._program_types")
        if name in kinds.__all__:
            return getattr(kinds, name)
    if name == "_DisableTorchDispatch":
        return importlib.import_module("flambeau.utils._wrapped_arrays").DisableTorchDispatch
    if name in _PROGRAMS or name.startswith("_jit_"):
        programs = importlib.import_module("flambeau.compat._programs")
        if hasattr(programs, name):
            return getattr(programs, name)
    raise AttributeError(name)


def _get_privateuse1_backend_name() -> str:
    """The name of PyTorch's slot for other devices; here each type has its own name."""
    return "privateuseone"


def _are_functorch_transforms_active() -> bool:
    """False."""
    return False


def _is_torch_function_mode_enabled() -> bool:
    """Whether this thread is in a block of a mode that sees functions."""
    return bool(function_modes.stack.modes)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither subclasses nor modes see the calls of functions."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, function_modes.stack.modes = function_modes.stack.modes, ()

    def __exit__(self, *exc: object) -> None:
        function_modes.stack.modes = self._modes
        super().__exit__(*exc)


_disabled_torch_function_impl = overrides.run_disabled
_disabled_torch_dispatch_impl = Tensor.__torch_dispatch__


def _get_default_device() -> str:
    """The type of the device on which tensors are made."""
    return fb.get_default_device().type


def _is_alias_of(data: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one storage."""
    return data.untyped_storage()._cdata == other.untyped_storage()._cdata


def _jit_set_profiling_executor(value: object) -> bool:
    """Set something of the compiler of scripts, and return what it was."""
    return False


_jit_set_profiling_mode = _jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = (
    _jit_set_profiling_executor
)
_jit_override_can_fuse_on_gpu = _jit_set_profiling_executor
_jit_set_texpr_fuser_enabled = _jit_set_profiling_executor


def _jit_can_fuse_on_gpu() -> bool:
    """False."""
    return False


class DispatchKey(enum.Enum):
    """PyTorch's names for what a call passes through; nothing is looked up by them here."""

    Undefined = 0
    Dense = 1
    CPU = 2
    CUDA = 3
    XPU = 4
    MPS = 5
    Meta = 6
    Sparse = 7
    SparseCPU = 8
    SparseCUDA = 9
    BackendSelect = 10
    Python = 11
    PythonTLSSnapshot = 12
    Functionalize = 13
    ADInplaceOrView = 14
    AutogradOther = 15
    AutogradFunctionality = 16
    Autograd = 17
    AutogradCPU = 18
    AutogradCUDA = 19
    AutogradXPU = 20
    AutocastCPU = 21
    AutocastCUDA = 22
    AutocastXPU = 23
    AutocastMPS = 24
    FuncTorchBatched = 25
    FuncTorchGradWrapper = 26
    CompositeImplicitAutograd = 27
    CompositeExplicitAutograd = 28
    CompositeExplicitAutogradNonFunctional = 29


Tag = enum.Enum(
    "Tag",
    """core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated
    inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides
    needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant
    pointwise pt2_compliant_tag reduction view_copy""",
    module="torch",
)
"""What libraries tell PyTorch's compiler of their ops; nothing asks for it here."""


class DispatchKeySet:
    """Some of these names."""

    def __init__(self, keys: DispatchKey | Iterable[DispatchKey] = ()) -> None:
        self._keys = frozenset((keys,) if isinstance(keys, DispatchKey) else keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether a name is one of them."""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """These and one more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """These without one."""
        return DispatchKeySet(self._keys - {key})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)


class _ExcludeDispatchKeyGuard(contextlib.nullcontext):
    """Leave out what these names stand for; calls pass through none of it here."""

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__()


_IncludeDispatchKeyGuard = _ExcludeDispatchKeyGuard
