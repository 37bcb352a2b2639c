"""The public names of `flambeau` that are no submodules: every name that this module has.

What is for the module itself starts with an underscore.
"""

# ruff: noqa: F401

from math import e, inf, nan, pi

from flambeau._api.functions import *  # noqa: F403
from flambeau._api.inplace_functions import *  # noqa: F403
from flambeau._api.predicates import (
    allclose,
    compiled_with_cxx11_abi,
    equal,
    get_device,
    is_complex,
    is_distributed,
    is_floating_point,
    is_inference,
    is_nonzero,
    is_signed,
    is_storage,
    is_tensor,
    isclose,
)
from flambeau._api.tensor_functions import (
    as_strided_,
    detach,
    detach_,
    fill_,
    pin_memory,
    resize_as_,
    zero_,
)
from flambeau._autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from flambeau._autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from flambeau._dispatch.numerics import (
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    set_float32_matmul_precision,
    set_flush_denormal,
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
from flambeau._tensor.legacy import LegacyTensorType as _Legacy
from flambeau._tensor.legacy import set_default_tensor_type
from flambeau._tensor.printing import get_printoptions, set_printoptions
from flambeau._tensor.tensor import Tensor
from flambeau._types.device import device, get_default_device, set_default_device
from flambeau._types.dtype import (
    bfloat16,
    can_cast,
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
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from flambeau._types.dtype import bool_ as bool
from flambeau._types.finfo import finfo, iinfo
from flambeau._types.layout import layout, sparse_coo, strided
from flambeau._types.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    preserve_format,
)
from flambeau._types.size import Size
from flambeau.ops.layers.packing import pack_padded_sequence as _pack_padded_sequence
from flambeau.ops.layers.packing import pad_packed_sequence as _pad_packed_sequence
from flambeau.ops.randomness.pathwise import dirichlet_grad as _dirichlet_grad
from flambeau.ops.randomness.pathwise import standard_gamma_grad as _standard_gamma_grad
from flambeau.ops.randomness.variates import sample_dirichlet as _sample_dirichlet
from flambeau.ops.randomness.variates import standard_gamma as _standard_gamma
from flambeau.plugin.accelerator import OutOfMemoryError
from flambeau.plugin.fallback import (
    cpu_fallback,
    cpu_fallback_counts,
    is_cpu_fallback_enabled,
    set_cpu_fallback,
)
from flambeau.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128

BoolTensor = _Legacy(bool)
ByteTensor = _Legacy(uint8)
CharTensor = _Legacy(int8)
ShortTensor = _Legacy(int16)
IntTensor = _Legacy(int32)
LongTensor = _Legacy(int64)
HalfTensor = _Legacy(float16)
BFloat16Tensor = _Legacy(bfloat16)
FloatTensor = _Legacy(float32)
DoubleTensor = _Legacy(float64)


__all__ = [name for name in globals() if name[0].isalpha()]  # pytest adds names that are none
