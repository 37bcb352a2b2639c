"""What the headers ask Python for: facts of tensors, functions by the names that C++ gives them."""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Callable
from inspect import Parameter
from typing import Any

import flambeau as fb
from flambeau.utils import _named_ops

__all__ = [
    "DTYPES",
    "LAYOUTS",
    "MEMORY_FORMATS",
    "Tensor",
    "apply",
    "broadcast_tensors",
    "cuda_device_count",
    "current_cuda_device",
    "current_cuda_stream",
    "define_op",
    "describe",
    "device",
    "from_blob",
    "function",
    "implement_op",
    "index_put_",
    "is_contiguous",
    "meshgrid",
    "registration_failed",
    "set_cuda_device",
    "set_grad_enabled",
    "store",
    "type_number",
    "unique",
    "unique_consecutive",
]

Tensor = fb.Tensor
device = fb.device

DTYPES = {
    0: fb.uint8,
    1: fb.int8,
    2: fb.int16,
    3: fb.int32,
    4: fb.int64,
    5: fb.float16,
    6: fb.float32,
    7: fb.float64,
    9: fb.complex64,
    10: fb.complex128,
    11: fb.bool,
    15: fb.bfloat16,
}
"""By their numbers in C++."""

LAYOUTS = {0: fb.strided, 1: fb.sparse_coo}
MEMORY_FORMATS = {
    0: fb.contiguous_format,
    1: fb.preserve_format,
    2: fb.channels_last,
    3: fb.channels_last_3d,
}

_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
_UNDEFINED = 16


def describe(
    t: fb.Tensor, address: bool
) -> tuple[int, str, int, tuple[int, ...], tuple[int, ...], Any, int]:
    """Dtype, device, sizes, strides, and with `address` what keeps the memory and where it starts.

    The keeper is None where there is no memory with strides.
    """
    device = t.device
    index = -1 if device.index is None else device.index
    strided = t.layout is fb.strided
    strides = tuple(t.stride()) if strided else ()
    memory, start = None, 0
    if address and strided and t._be.strided:
        start = t.data_ptr()
        memory = t._a
    return _NUMBERS.get(t.dtype, _UNDEFINED), device.type, index, t.shape, strides, memory, start


def is_contiguous(t: fb.Tensor, memory_format: int) -> bool:
    """Whether the elements lie as a memory format says."""
    return t.is_contiguous(memory_format=MEMORY_FORMATS[memory_format])


def type_number(value: object) -> int:
    """The number of a dtype, -1 if it is none that C++ knows."""
    return _NUMBERS.get(value, -1) if isinstance(value, fb.dtype) else -1


def index_put_(t: fb.Tensor, indices: tuple[Any, ...], value: Any, accumulate: bool) -> None:
    """``t[indices] = value``, or ``+=`` where an index may occur more than once."""
    if accumulate:
        t.index_put_(indices, value, accumulate=True)
    else:
        t[indices] = value


def unique(
    t: fb.Tensor, sorted: bool, return_inverse: bool, return_counts: bool
) -> tuple[fb.Tensor, ...]:
    """Values, inverse, counts; empty what was not asked for."""
    found = fb.unique(t, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    return _three(found, return_inverse, return_counts)


def unique_consecutive(
    t: fb.Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[fb.Tensor, ...]:
    """As `unique`, of runs of equal values."""
    found = fb.unique_consecutive(
        t, return_inverse=return_inverse, return_counts=return_counts, dim=dim
    )
    return _three(found, return_inverse, return_counts)


def _three(found: Any, *given: bool) -> tuple[fb.Tensor, ...]:
    rest = list(found) if isinstance(found, tuple) else [found]
    values = rest.pop(0)
    none = fb.empty(0, dtype=fb.int64, device=values.device)
    return values, *(rest.pop(0) if asked else none for asked in given)


def store(result: fb.Tensor, value: fb.Tensor) -> None:
    """What ``out=result`` does."""
    result.resize_(value.shape).copy_(value)


class _OfCpp(fb.autograd.Function):
    """Two functions of C++ as one with a gradient."""

    _of_ops = True  # `forward` holds the arguments of one call: no trace can call it again

    @staticmethod
    def forward(ctx: Any, forward: Any, backward: Any, *inputs: Any) -> Any:
        ctx.of_cpp = backward
        result = forward(ctx)
        return tuple(result) if isinstance(result, list) else result

    @staticmethod
    def backward(ctx: Any, *gradients: object) -> tuple[Any, ...]:
        return None, None, *ctx.of_cpp(ctx, gradients)


def apply(forward: Callable[..., Any], backward: Callable[..., Any], inputs: list[Any]) -> Any:
    """What `forward` gives, recorded with `backward` as its gradient for the inputs."""
    return _OfCpp.apply(forward, backward, *inputs)


def current_cuda_device() -> int:
    """The index of the device of CUDA that is current in this thread."""
    return fb.cuda.current_device()


def cuda_device_count() -> int:
    """How many devices of CUDA there are."""
    return fb.cuda.device_count()


def set_cuda_device(index: int) -> None:
    """Make a device of CUDA current in this thread."""
    fb.cuda.set_device(index)


def current_cuda_stream(index: int) -> int:
    """The stream that is current on a device of CUDA (-1: on the current one), as CUDA's handle."""
    return fb.cuda.current_stream(None if index < 0 else index).cuda_stream


def meshgrid(tensors: tuple[fb.Tensor, ...]) -> tuple[fb.Tensor, ...]:
    """Coordinates of a grid, the first along the rows."""
    return tuple(fb.meshgrid(*tensors, indexing="ij"))


def broadcast_tensors(tensors: tuple[fb.Tensor, ...]) -> tuple[fb.Tensor, ...]:
    """The tensors in one shape."""
    return tuple(fb.broadcast_tensors(*tensors))


def set_grad_enabled(enabled: bool) -> None:
    """Switch the recording of this thread."""
    fb.set_grad_enabled(enabled)


def function(name: str) -> Callable[..., Any]:
    """The function that C++ calls `name`.

    Raises:
        NotImplementedError: flambeau has none.
    """
    nn = getattr(fb, "nn", None)
    for home in (fb, nn and nn.functional, fb.Tensor):
        if callable(found := getattr(home, name, None)):
            return found
    for prefix, home in (("linalg_", fb.linalg), ("special_", fb.special), ("fft_", fb.fft)):
        if name.startswith(prefix):
            if callable(found := getattr(home, name.removeprefix(prefix), None)):
                return found
    raise NotImplementedError(f"at::{name}: flambeau has no function of that name")


def define_op(space: str, schema: str) -> None:
    """Make an op of a namespace from a schema, or from a name alone."""
    _named_ops.define(space, schema).schema = schema


def registration_failed(error: BaseException) -> None:
    """Keep the error of an op for who loads its library, and tell it to who imports that."""
    _named_ops.FAILED.append(error)
    warnings.warn(f"a library cannot register an op: {error}", RuntimeWarning, stacklevel=2)


def implement_op(space: str, name: str, key: str, function: Callable[..., Any]) -> None:
    """Give an op its function of C++ for a dispatch key."""
    device = _named_ops.device_of(key)
    if device is None:
        return
    op = _named_ops.find_or_define(space, name)
    names = {p.name: p.default for p in _named_ops.parameters_of(op.schema)}
    op.register_kernel(device, _by_name(function, names, _sizes(op.schema)) if names else function)


def _sizes(schema: str) -> list[int]:
    """For each argument how many numbers it is a list of, so that one may stand for all; else 0."""
    sized = (re.search(r"\[(\d+)\]\??$", kind) for kind, *_ in _named_ops.declared(schema))
    return [int(found[1]) if found else 0 for found in sized]


def _by_name(
    function: Callable[..., Any], names: dict[str, Any], sizes: list[int]
) -> Callable[..., Any]:
    """A function of places that takes arguments by name and leaves out those with defaults."""
    sized = [at for at, size in enumerate(sizes) if size]

    def call(*args: object, **kwargs: object) -> Callable[..., Any]:
        given = list(args)
        for name, default in list(names.items())[len(args) :]:
            value = kwargs.pop(name, default)
            if value is Parameter.empty:
                raise TypeError(f"the argument {name!r} is missing")
            given.append(value)
        if kwargs:
            raise TypeError(f"unexpected arguments {', '.join(map(repr, kwargs))}")
        for at in sized:
            if isinstance(given[at], int | float):
                given[at] = [given[at]] * sizes[at]
        return function(*given)

    return call


def from_blob(
    address: int,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: fb.dtype,
    owner: object,
) -> fb.Tensor:
    """A tensor on memory of C++; `owner` lives as long as the memory is used."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if 0 in sizes:
        return fb.empty(sizes, dtype=dtype)
    memory = (ctypes.c_byte * (extent * dtype.itemsize)).from_address(address)
    memory.owner = owner  # type: ignore[attr-defined]
    return fb.frombuffer(memory, dtype=dtype).as_strided(sizes, strides)
