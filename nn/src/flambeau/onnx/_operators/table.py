"""The table of operators, and what each of them is told of its node."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import flambeau as fb
from flambeau import Tensor

Operator = Callable[..., Any]
OPERATORS: dict[tuple[str, str], Operator] = {}
"""By domain and name: ``f(context, *inputs, **attributes)``, with None for an absent input."""


class UnsupportedError(NotImplementedError):
    """A model asks for what flambeau has no operator, dtype or form of."""


@dataclass(frozen=True)
class Context:
    """What an operator is told beside inputs and attributes.

    Attributes:
        opset: the version of the operator's domain in the model.
        outputs: how many results the node names.
        run: runs a subgraph with inputs, and what the graph around it has computed.
    """

    opset: int
    outputs: int
    run: Callable[[Any, Sequence[Any]], tuple[Any, ...]]


def operator(*names: str, domain: str = "") -> Callable[[Operator], Operator]:
    """Put a function of (context, inputs, attributes) into the table."""

    def add(function: Operator) -> Operator:
        for name in names:
            OPERATORS[domain, name] = function
        return function

    return add


def late(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of flambeau that is looked up when it is called; others as they are.

    A trace sees the calls of what has a name in a module, and none of what was taken before.

    >>> import flambeau as fb
    >>> from flambeau.onnx._operators.table import late
    >>> late(fb.add)(fb.ones(1), 2)
    tensor([3.])
    """
    name = getattr(function, "__name__", "")
    for home in (fb, fb.nn.functional):
        if getattr(home, name, None) is function:
            return lambda *args, **named: getattr(home, name)(*args, **named)
    return function


def plain(**functions: Callable[..., Any]) -> None:
    """Put functions of the inputs alone into the table."""

    def without_context(function: Callable[..., Any]) -> Operator:
        return lambda context, *inputs: function(*inputs)

    for name, function in functions.items():
        OPERATORS["", name] = without_context(late(function))


DTYPES: dict[int, fb.dtype] = {
    1: fb.float32,
    2: fb.uint8,
    3: fb.int8,
    4: fb.uint16,
    5: fb.int16,
    6: fb.int32,
    7: fb.int64,
    9: fb.bool,
    10: fb.float16,
    11: fb.float64,
    12: fb.uint32,
    13: fb.uint64,
    14: fb.complex64,
    15: fb.complex128,
    16: fb.bfloat16,
    17: fb.float8_e4m3fn,
    18: fb.float8_e4m3fnuz,
    19: fb.float8_e5m2,
    20: fb.float8_e5m2fnuz,
}
"""flambeau's dtypes by ONNX's numbers."""


def dtype_of(number: int | str) -> fb.dtype:
    """The dtype of ONNX's number, or of its name as the first versions had it.

    Raises:
        UnsupportedError: strings, and numbers of four bits and fewer.
    """
    from onnx import TensorProto

    code = TensorProto.DataType.Value(number) if isinstance(number, str) else number
    if code not in DTYPES:
        raise UnsupportedError(f"tensors of ONNX's type {TensorProto.DataType.Name(code)}")
    return DTYPES[code]


def integers(values: Tensor | Iterable[int] | None) -> list[int]:
    """A list of integers, given as a tensor by new models and as an attribute by old ones."""
    if values is None:
        return []
    return [int(v) for v in (values.reshape(-1).tolist() if isinstance(values, Tensor) else values)]


def number(value: object) -> Any:
    """A number that may be given as a tensor of one element."""
    return value.item() if isinstance(value, Tensor) else value


def shortest(value: float) -> float:
    """The shortest decimal number that a float32 stands for: what was written before rounding."""
    for digits in range(1, 9):
        short = float(f"{value:.{digits}g}")
        if ctypes.c_float(short).value == value:
            return short
    return value


def axis_of(axis: int, dims: int) -> int:
    """An axis counted from the front.

    Raises:
        IndexError: there is none.
    """
    if not -dims <= axis < max(dims, 1):
        raise IndexError(f"axis {axis} of a tensor with {dims} dimensions")
    return axis % max(dims, 1)


def wide(x: Tensor) -> Tensor:
    """Numbers of 16 bits and fewer as float32, in which ONNX computes with them."""
    return x.float() if x.dtype in (fb.float16, fb.bfloat16) else x
