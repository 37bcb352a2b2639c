"""What functions that write ops ask of their arguments, under PyTorch's names.

A symbolic function gets a value of the graph for each tensor, and plain numbers, lists and text
for the rest, so that most of these have little to do. They serve sources written for PyTorch,
where numbers are values too.

>>> from flambeau.onnx import symbolic_helper
>>> symbolic_helper.cast_pytorch_to_onnx["Long"]
7
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._export.errors import OnnxExporterError, UnsupportedOperatorError
from flambeau.onnx._export.graph import SCALAR_TYPES, Graph, Node, Value, number_of
from flambeau.onnx._export.opset_functions import write_op

__all__ = [
    "cast_pytorch_to_onnx",
    "check_training_mode",
    "parse_args",
    "pytorch_name_to_type",
    "scalar_name_to_pytorch",
    "scalar_type_to_onnx",
    "scalar_type_to_pytorch_type",
]

scalar_type_to_pytorch_type = [
    fb.uint8, fb.int8, fb.int16, fb.int32, fb.int64, fb.float16, fb.float32, fb.float64,
    None, fb.complex64, fb.complex128, fb.bool, None, None, None, fb.bfloat16,
]  # fmt: skip
"""Dtypes by PyTorch's numbers; None for those that there are none of."""

scalar_type_to_onnx = [
    0 if dtype is None else number_of(dtype) for dtype in scalar_type_to_pytorch_type
]
"""ONNX's numbers of dtypes, by PyTorch's."""

cast_pytorch_to_onnx = {name: number_of(dtype) for dtype, name in SCALAR_TYPES.items()}
"""ONNX's numbers of dtypes, by the names in graphs."""

pytorch_name_to_type = {name: dtype for dtype, name in SCALAR_TYPES.items()}
"""Dtypes by their names in graphs."""

scalar_name_to_pytorch = {
    "uint8_t": "Byte", "int8_t": "Char", "double": "Double", "float": "Float", "half": "Half",
    "int": "Int", "int64_t": "Long", "int16_t": "Short", "bool": "Bool",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble", "bfloat16": "BFloat16",
}  # fmt: skip
"""The names in graphs of C++'s types."""

_default_onnx_opset_version = 9
_onnx_main_opset = 23
_onnx_stable_opsets = list(range(9, 23))


def parse_args(*kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have the arguments of a symbolic function, after the graph, as what letters say.

    Args:
        kinds: ``"v"`` a value, ``"i"``, ``"f"``, ``"b"``, ``"s"`` a number or text, ``"t"`` a
            tensor, ``"is"`` and ``"fs"`` lists, ``"none"`` as it is.

    Raises:
        OnnxExporterError: when the function is called, with a value in place of a constant.

    >>> from flambeau.onnx.symbolic_helper import parse_args
    >>> @parse_args("v", "i")
    ... def symbolic(g, x, n):
    ...     return n
    >>> symbolic(None, None, 3.0)
    3
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(function, "__name__", "symbolic")

        @functools.wraps(function)
        def wrapped(g: Graph, *args: object, **named: object) -> Any:
            if len(args) > len(kinds):
                raise OnnxExporterError(
                    f"{name} has {len(args)} arguments, and parse_args says of {len(kinds)} "
                    "what they are"
                )
            parsed = [
                g.constant(a) if kind == "v" and _is_number(a) else _parse_arg(a, kind)
                for a, kind in zip(args, kinds, strict=False)
            ]
            return function(g, *parsed, **named)

        return wrapped

    return decorate


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float)


def _plain(value: Any) -> Any:
    """What a constant is, as Python has it."""
    if _is_value(value):
        if not _is_constant(value):
            raise OnnxExporterError(
                f"%{value.name} depends on the input, and ONNX wants a constant here: make it a "
                "number of the program if it can be"
            )
        return value.tensor.tolist()
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, fb.dtype):
        return scalar_type_to_pytorch_type.index(value)
    return value


def _parse_arg(value: Any, kind: str, arg_name: str | None = None, node_name: str = "") -> Any:
    """A constant as what a letter says."""
    if kind in ("none", "v") or value is None:
        return value
    if kind == "t":
        return value.tensor if _is_value(value) and _is_constant(value) else fb.as_tensor(value)
    plain = _plain(value)
    scalar = {"i": int, "f": float, "b": bool, "s": str}
    if kind in scalar:
        while isinstance(plain, list | tuple) and len(plain) == 1:
            plain = plain[0]
        return scalar[kind](plain)
    if kind in ("is", "fs"):
        flat = list(plain) if isinstance(plain, list | tuple) else [plain]
        return [scalar[kind[0]](_plain(each)) for each in flat]
    raise OnnxExporterError(f"parse_args knows no {kind!r}")


def _get_const(value: Any, kind: str, arg_name: str) -> Any:
    if _is_value(value) and not _is_constant(value):
        raise OnnxExporterError(
            f"the argument {arg_name} has to be a constant, and %{value.name} depends on the input"
        )
    return _parse_arg(value, kind)


def _maybe_get_const(value: object, kind: str) -> Any:
    return _parse_arg(value, kind) if not _is_value(value) or _is_constant(value) else value


def _maybe_get_scalar(value: Any) -> Any:
    if _is_value(value) and _is_constant(value) and value.tensor.numel() == 1:
        return value.tensor
    return value


def _scalar(value: object) -> Any:
    found = _maybe_get_scalar(value)
    return found.item() if isinstance(found, Tensor) and found.numel() == 1 else None


def _unpack_list(value: Any) -> list[Any]:
    return list(value)


def _is_packed_list(value: object) -> bool:
    return isinstance(value, list | tuple)


_is_list = _is_tensor_list = _is_packed_list


def _is_value(value: object) -> bool:
    return isinstance(value, Value)


def _is_constant(value: Any) -> bool:
    return not _is_value(value) or value.node().kind() == "onnx::Constant"


_is_onnx_constant = _is_constant


def _is_none(value: object) -> bool:
    return value is None


def _is_tensor(value: object) -> bool:
    return _is_value(value)


def _node_get(node: Node, key: str) -> Any:
    return node[key]


def _get_tensor_rank(value: Value) -> int | None:
    return value.type().dim()


def _get_tensor_sizes(value: Value, allow_nonstatic: bool = True) -> list[int | str | None] | None:
    sizes = value.type().sizes()
    return None if sizes is None or (not allow_nonstatic and None in sizes) else sizes


def _get_tensor_dim_size(value: Value, dim: int) -> int | str | None:
    sizes = value.type().sizes()
    return None if sizes is None else sizes[dim]


def _try_get_scalar_type(*values: Any) -> str | None:
    """The name of the dtype of the first value that has a known one."""
    for value in values:
        if _is_value(value) and (found := value.type().scalarType()) is not None:
            return found
    return None


def _is_fp(value: Any) -> bool:
    dtype = value.type().dtype() if _is_value(value) else None
    return dtype is not None and dtype.is_floating_point


def _is_bool(value: Any) -> bool:
    return _is_value(value) and value.type().dtype() is fb.bool


def _if_scalar_type_as(g: Any, *values: Any) -> Any:
    """A number in the dtype of a tensor; the first versions pass the graph as well."""
    number, tensor = (values if isinstance(g, Graph) else (g, *values))[:2]
    if _is_value(number) or not _is_value(tensor):
        return number
    return fb.as_tensor(number, dtype=tensor.type().dtype())


def _unimplemented(op: str, msg: str, value: Value | None = None) -> NoReturn:
    raise UnsupportedOperatorError(f"{op}: {msg}")


def _onnx_unsupported(op_name: str, value: Value | None = None) -> NoReturn:
    raise UnsupportedOperatorError(f"operator {op_name} has no form in ONNX")


def _onnx_opset_unsupported(
    op_name: str, current_opset: int, supported_opset: int, value: Value | None = None
) -> NoReturn:
    raise UnsupportedOperatorError(
        f"{op_name} has no form in opset {current_opset}; it needs {supported_opset}"
    )


def _onnx_opset_unsupported_detailed(
    op_name: str,
    current_opset: int,
    supported_opset: int,
    reason: str,
    value: Value | None = None,
) -> NoReturn:
    raise UnsupportedOperatorError(
        f"{op_name} has no form in opset {current_opset}: {reason}; it needs {supported_opset}"
    )


def _block_list_in_opset(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise UnsupportedOperatorError(f"{name} has no form in this opset")

    return refuse


_black_list_in_opset = _block_list_in_opset


def _set_opset_version(opset_version: int) -> None:
    """Nothing: the opset is that of the export."""


def check_training_mode(op_train_mode: int, op_name: str) -> None:
    """Warn of an op that is exported as it is in training."""
    if op_train_mode:
        warnings.warn(f"{op_name} is exported as it is in training", stacklevel=2)


def _select_helper(g: Graph, self: Value, dim: Any, index: Any, apply_reshape: bool = True) -> Any:
    index = index if _is_value(index) else g.constant(int(index))
    return g.op("Gather", self, index, axis_i=_parse_arg(dim, "i"))


def _slice_helper(
    g: Graph,
    input: Value,
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    steps: Sequence[int] | None = None,
    dynamic_slice: bool = False,
) -> Value:
    def numbers(given: object) -> list[Any]:
        found = _plain(given) if not _is_value(given) or _is_constant(given) else [given]
        return list(found) if isinstance(found, list | tuple) else [found]

    step = None if steps is None else numbers(steps)
    return g.slice(input, numbers(starts), numbers(ends), numbers(axes), step)


def _axes(value: Value, axes: object, added: int = 0) -> list[int]:
    """Axes counted from the front, where the number of dimensions is known."""
    found = _parse_arg(axes, "is")
    if min(found, default=0) < 0:
        return [axis % (value.rank + added) for axis in found]
    return found


def _unsqueeze_helper(g: Graph, input: Any, axes_i: Sequence[int]) -> Value:
    value = input if _is_value(input) else g.constant(input)
    return g.unsqueeze(value, _axes(value, axes_i, len(axes_i)))


def _squeeze_helper(g: Graph, input: Value, axes_i: Sequence[int]) -> Value:
    return g.squeeze(input, _axes(input, axes_i))


def _reducesum_helper(
    g: Graph,
    input: Value,
    axes_i: object = None,
    keepdims_i: int = 1,
    noop_with_empty_axes_i: int = 0,
) -> Value:
    axes = None if axes_i is None else _axes(input, axes_i)
    return g.reduce("ReduceSum", input, axes, bool(keepdims_i))


def _reshape_helper(g: Graph, input: Value, shape: Any, allowzero: int = 0) -> Value:
    if _is_value(shape):
        return g.op("Reshape", input, shape, allowzero_i=allowzero or None)
    return g.op("Reshape", input, g.ints(shape), allowzero_i=allowzero or None)


def _size_helper(g: Graph, self: Value, dim: object) -> Any:
    size = g.size(self, _parse_arg(dim, "i"))
    return size if _is_value(size) else g.constant(size)


def _numel_helper(g: Graph, self: Value) -> Any:
    count = g.numel(self)
    return count if _is_value(count) else g.constant(count)


def _topk_helper(
    g: Graph, input: Value, k: object, dim: object, largest: bool = True, sorted: bool = False
) -> Any:
    count = _maybe_get_const(k, "i")
    return write_op(g, "topk", input, count, _parse_arg(dim, "i"), bool(largest), bool(sorted))


def _sort_helper(g: Graph, input: Value, dim: object, descending: bool = True) -> Any:
    return write_op(g, "sort", input, _parse_arg(dim, "i"), bool(descending))


def _flatten_helper(g: Graph, input: Value, start_dim: int, end_dim: int, dim: int) -> Any:
    return write_op(g, "flatten", input, start_dim, end_dim)


def _scatter_helper(g: Graph, self: Value, dim: object, index: Value, src: object) -> Any:
    return write_op(g, "scatter", self, _parse_arg(dim, "i"), index, src)
