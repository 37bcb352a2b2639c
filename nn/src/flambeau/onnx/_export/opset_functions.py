"""The modules ``symbolic_opset9`` and so on: the symbolic functions, to be called by others.

They are called with arguments by place, as PyTorch's signature of the op has them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.jit._schemas import Schema, schemas
from flambeau.onnx._export.cells import annotate
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import SCALAR_TYPES, Graph, Value
from flambeau.onnx._export.inference import infer
from flambeau.onnx._export.table import custom, fitting, load

_SIZE = 2
"""What stands for a size that is not known, to learn the dtype of a result."""


def write_op(g: Graph, name: str, *args: object, **named: object) -> Any:
    """Write an op of PyTorch with arguments by place, as part of another one.

    Raises:
        UnsupportedOperatorError: there is no symbolic function for it.
    """
    own = custom(f"aten::{name}", g.opset)
    if own is not None:
        return own(g, *args, **named)
    entry = load().get(name)
    if entry is None or entry.since > g.opset:
        raise UnsupportedOperatorError(f"opset {g.opset} has no form of aten::{name}")
    schema = _schema(name, len(args), named)
    if schema is not None:
        args = tuple(
            _plain(a, "Tensor" in of.text, listed=(name, of.name) == ("select", "index"))
            for a, of in zip(args, schema.arguments, strict=False)
        )
        by_name = {of.name: a for a, of in zip(args, schema.arguments, strict=False)} | named
    else:
        parameters = entry.parameters or ()
        by_name = dict(zip(parameters, args, strict=False)) | named
    before = g.shared.results
    results, static = _results(name, args, named)
    g.shared.results = results
    try:
        made = entry.function(g, **fitting(entry.parameters, by_name, schema))
    finally:
        g.shared.results = before
    parts = made if isinstance(made, tuple | list) else (made,)
    for part, example in zip(parts, _flat(results), strict=False):
        if static and isinstance(part, Value) and part.maker is not None and part.tensor is None:
            annotate(part, (example,))
    return made


def _schema(name: str, count: int, named: dict[str, Any]) -> Schema | None:
    for schema in schemas(f"aten::{name}"):
        names = [a.name for a in schema.arguments]
        if len(names) >= count and named.keys() <= set(names[count:]):
            return schema
    return None


def _plain(value: object, tensor: bool, listed: bool) -> Any:
    """A constant as numbers, where an op takes numbers.

    A list of one is that one, unless it is `listed`: a place in a list keeps the dimension.
    """
    if tensor or not isinstance(value, Value) or value.maker is None or value.tensor is None:
        return value
    found = value.tensor.tolist()
    return found[0] if isinstance(found, list) and len(found) == 1 and not listed else found


def _results(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], bool]:
    """What the op makes of examples of these sizes, and whether all sizes are known."""
    static = True

    def example(value: object) -> Any:
        nonlocal static
        if isinstance(value, list | tuple):
            return type(value)(example(each) for each in value)
        if not isinstance(value, Value):
            return value
        infer(value)
        sizes = [n if isinstance(n, int) else None for n in value.shape or ()]
        static = static and value.shape is not None and None not in sizes
        return fb.empty(
            [_SIZE if n is None else n for n in sizes],
            dtype=value.dtype or fb.float32,
            device="meta",
        )

    given = [example(value) for value in args]
    for home in (fb, fb.nn.functional, Tensor):
        function = getattr(home, name, None)
        if callable(function):
            try:
                return [function(*given, **{k: example(v) for k, v in named.items()})], static
            except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
                continue  # arguments that only the symbolic function takes, such as a list
    first = next((each for each in given if isinstance(each, Tensor)), fb.empty(0))
    return [first], False


def _flat(results: list[Any]) -> list[Any]:
    first = results[0]
    return list(first) if isinstance(first, list | tuple) else results


def cast_to(g: Graph, dtype: fb.dtype, value: Value, non_blocking: bool = False) -> Value:
    """A value as another dtype: ``_cast_Long`` and so on."""
    return g.cast(value, dtype)


_CASTS = {f"_cast_{name}": dtype for dtype, name in SCALAR_TYPES.items()}


class OpsetModule(ModuleType):
    """A module whose functions write ops; its number stands in its name and changes nothing.

    The opset is that of the model that is being exported.
    """

    def __getattr__(self, name: str) -> Any:
        if name in _CASTS:
            dtype = _CASTS[name]
            return lambda g, value, non_blocking=False: cast_to(g, dtype, value, non_blocking)
        if name == "_slice":
            return importlib.import_module("flambeau.onnx.symbolic_helper")._slice_helper
        if name.startswith("__") or name not in load():
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

        def function(g: Graph, *args: object, **named: object) -> Any:
            return write_op(g, name, *args, **named)

        return functools.update_wrapper(function, load()[name].function)

    def __dir__(self) -> list[str]:
        return sorted({*load(), *_CASTS})


def modules(package: str) -> Iterator[tuple[str, OpsetModule]]:
    """Make a module for each opset that PyTorch has one of, below a package."""
    for opset in range(9, 21):
        name = f"symbolic_opset{opset}"
        module = OpsetModule(f"{package}.{name}", f"How ops are written in ONNX, opset {opset}.")
        sys.modules[module.__name__] = module
        yield name, module
