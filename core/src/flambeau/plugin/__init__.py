"""What a backend imports: the only module of flambeau that a plugin needs.

A backend package announces a device type by an entry point in the group ``flambeau.backends`` and
answers the hooks of `flambeau.plugin.hookspecs` with a `Backend` and a `KernelSet`. Nothing here
knows tensors, ops or gradients, so a plugin written against it cannot depend on how the core works
inside.
"""

from flambeau._types.dtype import ALL as dtypes  # noqa: N811
from flambeau._types.dtype import LIMITED as limited_dtypes  # noqa: N811
from flambeau._types.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from flambeau._types.spec import Spec
from flambeau.plugin.accelerator import (
    Accelerator,
    DeviceProperties,
    OutOfMemoryError,
    numerics,
)
from flambeau.plugin.backend import Backend, MemoryStatistics
from flambeau.plugin.communication import (
    Communicator,
    Compared,
    Done,
    Engine,
    Job,
    Request,
    Steps,
)
from flambeau.plugin.forks import make_lock
from flambeau.plugin.formats import Format
from flambeau.plugin.hookspecs import API_VERSION, hookimpl
from flambeau.plugin.kernels import Expectations, KernelSet

__all__ = [
    "API_VERSION",
    "Accelerator",
    "Backend",
    "Communicator",
    "Compared",
    "DeviceProperties",
    "Done",
    "Engine",
    "Expectations",
    "Format",
    "Job",
    "KernelSet",
    "MemoryStatistics",
    "OutOfMemoryError",
    "Request",
    "Spec",
    "Steps",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "dtype",
    "dtypes",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float16",
    "float32",
    "float64",
    "hookimpl",
    "int8",
    "int16",
    "int32",
    "int64",
    "limited_dtypes",
    "make_lock",
    "numerics",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
