"""The public names of `flambeau` that are no submodules."""

from __future__ import annotations

import math

from flambeau._api import functions as _functions
from flambeau._api.functions import *  # noqa: F403
from flambeau._api.inplace_functions import *  # noqa: F403
from flambeau._api.inplace_functions import __all__ as _inplace_names
from flambeau._api.predicates import (
    allclose,
    as_strided_,
    compiled_with_cxx11_abi,
    detach,
    detach_,
    equal,
    fill_,
    finfo,
    get_device,
    iinfo,
    is_complex,
    is_floating_point,
    is_nonzero,
    is_signed,
    is_storage,
    is_tensor,
    isclose,
    pin_memory,
    resize_as_,
    set_flush_denormal,
    zero_,
)
from flambeau._autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from flambeau._autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from flambeau._dispatch.numerics import (
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    set_float32_matmul_precision,
    use_deterministic_algorithms,
)
from flambeau._dispatch.promotion import result_type
from flambeau._dispatch.threads import get_num_threads, set_num_threads
from flambeau._random.generator import Generator, default_generator
from flambeau._storages.foreign import from_dlpack, frombuffer
from flambeau._storages.typed import (
    BFloat16Storage,
    BoolStorage,
    ByteStorage,
    CharStorage,
    ComplexDoubleStorage,
    ComplexFloatStorage,
    DoubleStorage,
    FloatStorage,
    HalfStorage,
    IntStorage,
    LongStorage,
    ShortStorage,
    TypedStorage,
)
from flambeau._storages.untyped import UntypedStorage
from flambeau._tensor.legacy import LegacyTensorType, set_default_tensor_type
from flambeau._tensor.printing import get_printoptions, set_printoptions
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.device import device, get_default_device, set_default_device
from flambeau._types.dtype import (
    bfloat16,
    can_cast,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)
from flambeau._types.layout import layout, sparse_coo, strided
from flambeau._types.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    preserve_format,
)
from flambeau._types.size import Size
from flambeau.plugin.accelerator import OutOfMemoryError
from flambeau.plugin.fallback import (
    cpu_fallback,
    cpu_fallback_counts,
    is_cpu_fallback_enabled,
    set_cpu_fallback,
)
from flambeau.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

bool = D.bool_
half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128
inf = math.inf
nan = math.nan
pi = math.pi
e = math.e

BoolTensor = LegacyTensorType(D.bool_)
ByteTensor = LegacyTensorType(uint8)
CharTensor = LegacyTensorType(int8)
ShortTensor = LegacyTensorType(int16)
IntTensor = LegacyTensorType(int32)
LongTensor = LegacyTensorType(int64)
HalfTensor = LegacyTensorType(float16)
BFloat16Tensor = LegacyTensorType(bfloat16)
FloatTensor = LegacyTensorType(float32)
DoubleTensor = LegacyTensorType(float64)

Storage = FloatStorage

# Of tensors only: as functions their names say too little; `fft` is a module that can be called.
_METHODS_ONLY = frozenset(
    """coalesce dense_dim fft indices is_coalesced sparse_dim sparse_mask to_dense to_sparse
    values""".split()
)

_IN_PLACE = frozenset({"embedding_renorm_"})  # a function that writes and is no method

__all__ = [
    *(
        name
        for name in _functions.__all__
        if (not name.endswith("_") or name in _IN_PLACE)
        and not name.startswith("new_")
        and name not in _METHODS_ONLY
    ),
    *_inplace_names,
    "BFloat16Storage",
    "BFloat16Tensor",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "DoubleTensor",
    "FloatStorage",
    "FloatTensor",
    "Generator",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "OutOfMemoryError",
    "ShortStorage",
    "ShortTensor",
    "Size",
    "Storage",
    "Tensor",
    "TypedStorage",
    "UntypedStorage",
    "allclose",
    "are_deterministic_algorithms_enabled",
    "as_strided_",
    "bfloat16",
    "bool",
    "can_cast",
    "cdouble",
    "cfloat",
    "channels_last",
    "channels_last_3d",
    "compiled_with_cxx11_abi",
    "complex64",
    "complex128",
    "contiguous_format",
    "cpu_fallback",
    "cpu_fallback_counts",
    "default_generator",
    "detach",
    "detach_",
    "device",
    "double",
    "dtype",
    "e",
    "enable_grad",
    "equal",
    "fill_",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "fork_rng",
    "from_dlpack",
    "frombuffer",
    "get_default_device",
    "get_default_dtype",
    "get_float32_matmul_precision",
    "get_device",
    "get_num_threads",
    "get_printoptions",
    "get_rng_state",
    "half",
    "iinfo",
    "inf",
    "inference_mode",
    "initial_seed",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_complex",
    "is_cpu_fallback_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_floating_point",
    "is_grad_enabled",
    "is_nonzero",
    "is_signed",
    "is_storage",
    "is_tensor",
    "isclose",
    "layout",
    "long",
    "manual_seed",
    "memory_format",
    "nan",
    "no_grad",
    "pi",
    "pin_memory",
    "preserve_format",
    "promote_types",
    "resize_as_",
    "result_type",
    "seed",
    "set_cpu_fallback",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "short",
    "sparse_coo",
    "strided",
    "uint8",
    "use_deterministic_algorithms",
    "zero_",
]
