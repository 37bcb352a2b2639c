"""Calls of kernels as calls of PyTorch's ops, which modes below autograd are told of."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._dispatch.dispatch import wrap
from flambeau.ops import OPS
from flambeau.utils import _aten
from flambeau.utils._aten import Overload, Packet

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend


__all__ = ["Call", "arrays", "call_of", "tensors"]

Call = tuple[Overload, tuple[Any, ...], dict[str, Any]]
"""An op, and what it is called with."""

_UNARY = """abs acos acosh angle asin asinh atan atanh bitwise_not ceil conj cos cosh digamma erf
    erfc erfinv exp expm1 floor i0 isfinite lgamma log log10 log1p log2 neg nonzero real reciprocal
    relu round rsqrt sgn sigmoid sign sin sinh sqrt square tan tanh trunc view_as_complex
    view_as_real imag clone silu"""
_BINARY_TENSOR = """add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    div eq fmod ge gt le lt mul ne remainder sub"""
_AS_THEY_ARE = """amax amin argmax argmin atan2 cat cumprod cumsum diagonal expand floor_divide
    gather maximum minimum permute scatter_add stack tril triu view"""
_OVERLOAD = {
    **dict.fromkeys(_UNARY.split(), "default"),
    **dict.fromkeys(_BINARY_TENSOR.split(), "Tensor"),
    **dict.fromkeys(_AS_THEY_ARE.split(), "default"),
    "pow": "Tensor_Tensor",
    "scatter": "src",
    "sum": "dim_IntList",
    "mean": "dim",
    "where": "self",
    "index": "Tensor",
}
"""Ops whose arguments are those of PyTorch's op of the same name, with its overload."""


def tensors(value: Any, be: BoundBackend) -> Any:
    """Arrays of a backend as tensors without history, in lists too."""
    if type(value) is be.array:
        return wrap(be, value, be.dtype_of(value))
    if type(value) in (list, tuple):
        return type(value)([tensors(each, be) for each in value])
    return value


def arrays(value: object) -> Any:
    """Tensors as what a kernel gives: arrays, in a tuple if there are several."""
    if isinstance(value, fb.Tensor):
        return value._a
    return tuple(map(arrays, value)) if isinstance(value, (list, tuple)) else value


def call_of(name: str, args: tuple[Any, ...], be: BoundBackend) -> Call:
    """The call of PyTorch's op that stands for a kernel's, or one of flambeau's own name.

    Args:
        name: of the op.
        args: its arguments, with tensors for arrays.
        be: the backend of the device.
    """
    if (special := _SPECIAL.get(name)) is not None and (found := special(*args)) is not None:
        return found
    plain = name.removesuffix("_")
    if plain in _OVERLOAD and (packet := _aten.find(name)) is not None:
        return getattr(packet, _OVERLOAD[plain]), args, {}
    return _own(name, be), args, {}


_packets: dict[tuple[str, int], Packet] = {}


def _own(name: str, be: BoundBackend) -> Overload:
    """An op of this library, as one of the namespace ``flambeau``."""
    op = OPS.get(name)
    key = (name, 0 if op is not None and op.inputs_at else id(be))
    if (found := _packets.get(key)) is None:

        def run(*args: object) -> Any:
            where = next((a._be for a in _flat(args) if isinstance(a, fb.Tensor)), be)
            result = getattr(where, name)(*_natives(args))
            if result is None:  # it wrote into the first
                return args[0]
            fresh = result if type(result) is tuple else where.fresh(result)
            return tensors(fresh, where)

        found = _packets[key] = Packet(run, "flambeau", name)
    return found.default


def _flat(args: Any) -> Any:
    for a in args:
        if type(a) in (list, tuple):
            yield from _flat(a)
        else:
            yield a


def _natives(args: Any) -> list[Any]:
    return [
        a._a
        if isinstance(a, fb.Tensor)
        else type(a)(_natives(a))
        if type(a) in (list, tuple)
        else a
        for a in args
    ]


def _aten_call(name: str, overload: str, *args: object, **kwargs: object) -> Call | None:
    packet = _aten.find(name)
    return None if packet is None else (getattr(packet, overload), args, kwargs)


def _matmul(first: fb.Tensor, second: fb.Tensor) -> Call | None:
    sizes = first.dim(), second.dim()
    if sizes == (3, 3) and first.shape[0] != second.shape[0]:
        return None
    names = {(2, 2): "mm", (3, 3): "bmm", (2, 1): "mv", (1, 1): "dot"}
    return _aten_call(names[sizes], "default", first, second) if sizes in names else None


def _addmm(
    base: fb.Tensor, first: fb.Tensor, second: fb.Tensor, beta: complex, alpha: complex
) -> Call | None:
    scales = {k: v for k, v in (("beta", beta), ("alpha", alpha)) if v != 1}
    return _aten_call("addmm", "default", base, first, second, **scales)


def _convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Call | None:
    rest = (list(stride), list(padding), list(dilation), False, [0] * len(stride), groups)
    return _aten_call("convolution", "default", input, weight, bias, *rest)


def _cast(self: fb.Tensor, dtype: fb.dtype) -> Call | None:
    return _aten_call("_to_copy", "default", self, dtype=dtype)


def _softmax_call(name: str) -> Callable[..., Call | None]:
    return lambda input, dim: _aten_call(name, "default", input, dim, False)


def _embedding(weight: object, indices: object, padding_idx: int, scale: bool) -> Call | None:
    return _aten_call("embedding", "default", weight, indices, padding_idx, scale)


_SPECIAL: dict[str, Callable[..., Call | None]] = {
    "addmm": _addmm,
    "cast": _cast,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "embedding": _embedding,
    "log_softmax": _softmax_call("_log_softmax"),
    "matmul": _matmul,
    "softmax": _softmax_call("_softmax"),
}
"""Ops whose arguments PyTorch's has in another form."""


def linear_calls(
    handle: Callable[[Call], Any], input: fb.Tensor, weight: fb.Tensor, bias: fb.Tensor | None
) -> fb.Tensor:
    """A linear layer as PyTorch tells of it: a product of matrices, with a sum if it has a bias."""
    rows = prod(input.shape[:-1])
    matrix = input if input.dim() == 2 else input.reshape(rows, input.shape[-1])
    if bias is None:
        call = _aten_call("mm", "default", matrix, weight.t())
    else:
        call = _aten_call("addmm", "default", bias, matrix, weight.t())
    assert call is not None  # both are functions of the library
    result: fb.Tensor = handle(call)
    return result.reshape(*input.shape[:-1], weight.shape[0])
