"""CUDA devices: `flambeau.accelerator.namespace` of type ``cuda``, by PyTorch's names.

Importing it loads nothing. Without the package ``flambeau-cupy``, a driver or a device,
`is_available` is False, `device_count` is 0, and what needs a device says what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau._storages import typed as _storage_typed
from flambeau.absence import tell as _tell
from flambeau.accelerator._graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
    make_graphed_step,
)
from flambeau.accelerator._namespace import legacy_types as _legacy_types
from flambeau.accelerator._namespace import namespace as _namespace
from flambeau.cuda import amp, comm, nvtx
from flambeau.plugin.accelerator import DeviceError as _DeviceError

_devices = _namespace("cuda")
_memory = _devices._memory
_random = _devices._random

AcceleratorError = CudaError = _DeviceError
Event = _devices.Event
OutOfMemoryError = _devices.OutOfMemoryError
Stream = _devices.Stream
current_device = _devices.current_device
current_stream = _devices.current_stream
default_stream = _devices.default_stream
device = _devices.device
device_count = _devices.device_count
device_of = _devices.device_of
empty_cache = _memory.empty_cache
get_device_capability = _devices.get_device_capability
get_device_name = _devices.get_device_name
get_device_properties = _devices.get_device_properties
get_rng_state_all = _random.get_rng_state_all
init = _devices.init
initial_seed = _random.initial_seed
is_available = _devices.is_available
is_initialized = _devices.is_initialized
manual_seed = _random.manual_seed
manual_seed_all = _random.manual_seed_all
max_memory_allocated = _memory.max_memory_allocated
max_memory_cached = _memory.max_memory_cached
max_memory_reserved = _memory.max_memory_reserved
mem_get_info = _memory.mem_get_info
memory_allocated = _memory.memory_allocated
memory_cached = _memory.memory_cached
memory_reserved = _memory.memory_reserved
memory_stats = _memory.memory_stats
memory_summary = _memory.memory_summary
reset_max_memory_allocated = _memory.reset_max_memory_allocated
reset_max_memory_cached = _memory.reset_max_memory_cached
reset_peak_memory_stats = _memory.reset_peak_memory_stats
seed = _random.seed
seed_all = _random.seed_all
set_device = _devices.set_device
set_rng_state_all = _random.set_rng_state_all
set_stream = _devices.set_stream
stream = _devices.stream
synchronize = _devices.synchronize
get_rng_state = _random.get_rng_state
set_rng_state = _random.set_rng_state

globals().update(_legacy_types("cuda"))
globals().update(
    {_storage_typed.legacy_name(d): kind for d, kind in _storage_typed.CUDA_LEGACY.items()}
)


def check_error(res: int) -> None:
    """Raise `CudaError` unless the result of a call of the CUDA runtime says success, which is 0.

    >>> import flambeau as fb
    >>> fb.cuda.check_error(0)
    """
    if res:
        text = getattr(_devices._runtime.found(), "error_text", lambda code: "")
        raise CudaError(int(res), text(int(res)))


def current_blas_handle() -> int:
    """The address of the cuBLAS handle of the current device, for other libraries.

    Raises:
        RuntimeError: there is no device, or its backend has no cuBLAS handle to show.

    >>> import flambeau as fb
    >>> fb.cuda.is_available() or fb.cuda.device_count() == 0
    True
    """
    backend = _devices._runtime.needed()
    handle = getattr(backend, "blas_handle", None)
    if handle is None:
        raise RuntimeError("current_blas_handle(): this backend of 'cuda' shows no handle")
    return handle()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes in bfloat16; False where there is none.

    Args:
        including_emulation: whether a device counts that has no instructions for it.

    >>> import flambeau as fb
    >>> fb.cuda.is_available() or not fb.cuda.is_bf16_supported()
    True
    """
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


if TYPE_CHECKING:
    from flambeau._tensor.legacy import LegacyTensorType

    _initialized: bool
    BFloat16Tensor: LegacyTensorType
    BoolTensor: LegacyTensorType
    ByteTensor: LegacyTensorType
    CharTensor: LegacyTensorType
    DoubleTensor: LegacyTensorType
    FloatTensor: LegacyTensorType
    HalfTensor: LegacyTensorType
    IntTensor: LegacyTensorType
    LongTensor: LegacyTensorType
    ShortTensor: LegacyTensorType
else:

    def __getattr__(name: str) -> bool:
        if name == "_initialized":  # PyTorch keeps it as a variable, which programs look at
            return is_initialized()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_tell(__name__)
