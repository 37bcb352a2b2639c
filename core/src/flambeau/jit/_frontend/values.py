"""What a name may mean that is no value of a graph: functions, modules, classes, namespaces."""

from __future__ import annotations

import collections
import enum
import functools
import importlib
import inspect
import math
import sys
import types
import typing
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.jit import _decorators
from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend import numbers as _numbers
from flambeau.jit._frontend.match import Mismatch, call_op, emit_op, match, unpack
from flambeau.jit._frontend.source import CompilationError
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import Argument, Schema, names, parse, schemas
from flambeau.jit._types import ClassType, EnumType, NamedTupleType, Type
from flambeau.utils._named_ops import DEFINED, CustomOp, OpsNamespace

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from flambeau.jit._frontend.function import ScriptFunction
    from flambeau.jit._frontend.state import Compilation


class Sugar:
    """Something that is known while a function is compiled and has no place in a graph."""

    what = "value"

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        """What ``it.name`` means."""
        c.fail(node, f"attribute lookup is not defined on {self.what}")

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        """What ``it(...)`` means."""
        c.fail(node, f"cannot call a {self.what}")

    def value(self, c: Compilation, node: ast.AST) -> Value:
        """The value of a graph that it is."""
        c.fail(node, f"{self.what} cannot be used as a value")

    def members(self, c: Compilation, node: ast.AST | None) -> list[Any] | None:
        """What iteration gives, one after the other, if that is known."""
        return None


class Builtin(Sugar):
    """An op, perhaps as the method of a value."""

    what = "builtin"

    def __init__(self, name: str, of: Value | None = None) -> None:
        self.name, self.of = name, of

    def call(
        self, c: Compilation, node: ast.Call, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        given = [self.of, *args] if self.of is not None else list(args)
        if self.name == "aten::to" and "non_blocking" in kwargs and len(given) > 2:
            kwargs = dict(kwargs)
        return call_op(c, self.name, given, kwargs, at=node)


class Special(Sugar):
    """A form of the language that sees its call before the arguments are compiled."""

    def __init__(self, name: str, of: Value | None = None) -> None:
        self.name, self.of = name, of

    @property
    def what(self) -> str:  # type: ignore[override]
        """The name."""
        return self.name


def _is_flambeau(module: object) -> bool:
    """Whether it is `flambeau`, under its own name or under that of PyTorch."""
    return module is fb or (
        getattr(module, "__name__", "") == "torch"
        and getattr(module, "__file__", None) == fb.__file__
    )


class Namespace(Sugar):
    """A module of Python; attributes of `flambeau` that are ops are found by name."""

    what = "python module"

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        if _is_flambeau(self.module):
            if name == "ops":
                return OpNamespace()
            if name in ("jit", "nn"):
                return Namespace(getattr(fb, name))
        try:
            found = getattr(self.module, name)
        except AttributeError:
            known = self.module is math or _is_flambeau(self.module)
            if known and schemas(f"aten::{name}"):
                return Builtin(f"aten::{name}")
            c.fail(
                node, f"module {getattr(self.module, '__name__', '')!r} has no attribute '{name}'"
            )
        return of_python(c, node, found, name)


class AtenNamespace(Sugar):
    """``torch`` in the code of an archive, where each name is that of an op."""

    what = "torch"

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        if name == "jit":
            return Namespace(importlib.import_module("flambeau.jit"))
        if schemas(f"aten::{name}"):
            return Builtin(f"aten::{name}")
        if name in ("device", "Tensor"):
            return of_python(c, node, getattr(fb, name), name)
        c.fail(node, f"Unknown builtin op: aten::{name}")


class OpNamespace(Sugar):
    """``torch.ops`` and ``torch.ops.prim``."""

    what = "torch.ops"

    def __init__(self, name: str = "") -> None:
        self.name = name

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        if not self.name:
            return OpNamespace(name)
        full = f"{self.name}::{name}"
        if full in ("prim::unchecked_cast", "prim::tolist", "prim::isinstance"):
            return Special(name)
        if schemas(full):
            return Builtin(full)
        defined = DEFINED.get(self.name, {}).get(name)
        if defined is not None and "->" in defined.schema:
            return NamedOp(defined)
        c.fail(node, f"Unknown builtin op: {full}")


class FunctionRef(Sugar):
    """A scripted function."""

    what = "function"

    def __init__(self, function: ScriptFunction) -> None:
        self.function = function

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        return call_function(c, node, self.function, args, kwargs)

    def value(self, c: Compilation, node: ast.AST) -> Value:
        return function_constant(c, node, self.function)

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        if name == "__name__":
            return c.constant(self.function.name, at=node)
        return super().attribute(c, node, name)


def function_constant(c: Compilation, node: ast.AST | None, function: ScriptFunction) -> Value:
    """A function as a value, which calls read."""
    return c.emit("prim::Constant", (), T.FUNCTION, at=node, name=function.name, _function=function)


class Overloads(Sugar):
    """Several functions of one name: the first that fits is called."""

    what = "function"

    def __init__(self, refs: Sequence[Sugar]) -> None:
        self.refs = refs

    def call(
        self, c: Compilation, node: object, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        last: CompilationError | None = None
        for ref in self.refs:
            before = len(c.block.nodes_)
            try:
                return ref.call(c, node, args, kwargs)
            except CompilationError as error:
                last = error
                for made in reversed(c.block.nodes_[before:]):
                    made.destroy()
        assert last is not None
        raise last


def call_function(
    c: Compilation,
    node: ast.AST | None,
    function: ScriptFunction,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
) -> Value:
    """Add a call of a scripted function."""
    function.compile_for(c, node)
    inputs = _matched(c, node, function.schema, args, kwargs)
    made = function_constant(c, node, function)
    return c.emit("prim::CallFunction", [made, *inputs], function.returned, at=node)


def _matched(
    c: Compilation,
    node: ast.AST | None,
    schema: Schema,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
) -> list[Value]:
    try:
        return match(c, schema, args, kwargs, allow=True, at=node)[0]
    except Mismatch as why:
        c.fail(node, f"\n{schema}:\n{why}")


class MethodRef(Sugar):
    """A method of a class or module."""

    what = "method"

    def __init__(self, of: Value, kind: ClassType, name: str) -> None:
        self.of, self.kind, self.name = of, kind, name

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        method = self.kind.method(self.name)
        assert method is not None
        method.compile_for(c, node)
        inputs = _matched(c, node, method.schema, [self.of, *args], kwargs)
        return c.emit("prim::CallMethod", inputs, method.returned, at=node, name=self.name)


_RUN_BY_PYTHON = (functools.partial, type(functools.lru_cache(len)))


class IgnoredRef(Sugar):
    """A function that Python runs."""

    what = "python function"

    def __init__(self, fn: Callable[..., Any], of: Value | None = None, name: str = "") -> None:
        self.fn, self.of, self.name = fn, of, name or getattr(fn, "__name__", "function")

    def call(
        self, c: Compilation, node: ast.Call, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        if self.fn is type or isinstance(self.fn, functools.partial):
            # Whatever a function is part of: tensors give a tensor.
            arguments = [Argument(f"input{i}", T.TENSOR) for i in range(len(args))]
            back = T.ANY if self.fn is type else None
        else:
            declared = compiler.function.declaration_of(self.fn)
            arguments, back = compiler.function.arguments_of(declared)
        told = back is not None
        back = T.TENSOR if back is None else back
        if self.of is not None:
            arguments = arguments[1:]
        schema = Schema(self.name, "", tuple(arguments), (Argument("", back),))
        inputs = _matched(c, node, schema, args, kwargs)
        if _decorators.is_unused(self.fn):
            message = (
                f"Python function '{self.name}' is marked as unused and cannot be called from "
                "TorchScript"
            )
            raises(c, node, message)
            return c.uninitialized(back)
        if self.of is not None:
            inputs = [self.of, *inputs]
        return c.emit(
            "prim::PythonOp", inputs, back, at=node, name=self.name, _function=self.fn, _told=told
        )


class NamedOp(Sugar):
    """An op that a program or a library defined, which Python runs."""

    what = "op"

    def __init__(self, op: CustomOp) -> None:
        self.op = op

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        schema = parse(self.op.schema)
        inputs = _matched(c, node, schema, args, kwargs)
        back = [each.type for each in schema.returns]
        kind = back[0] if len(back) == 1 else T.tuple_of(*back) if back else T.NONE
        name = self.op.__name__
        return c.emit("prim::PythonOp", inputs, kind, at=node, name=name, _function=self.op)


def raises(c: Compilation, node: ast.AST | None, message: str, kind: str | None = None) -> None:
    """Add a step that raises."""
    text = c.constant(message, T.STR, node)
    cls = c.constant(kind, T.STR if kind else T.NONE, node)
    c.node("prim::RaiseException", [text, cls], at=node)


class ClassRef(Sugar):
    """A scripted class, which makes objects."""

    what = "class"

    def __init__(self, kind: ClassType) -> None:
        self.kind = kind

    def call(
        self, c: Compilation, node: ast.Call, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        made = c.emit("prim::CreateObject", (), self.kind, at=node)
        if self.kind.method("__init__") is None:
            if args or kwargs:
                c.fail(node, "Class does not have an __init__ function defined")
            return made
        MethodRef(made, self.kind, "__init__").call(c, node, args, kwargs)
        return made

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        if name == "__new__":
            return NewRef(self.kind)
        if (method := self.kind.method(name)) is not None and name in self.kind.statics:
            return FunctionRef(method)
        c.fail(node, f"Tried to lookup '{name}' on the class {self.kind.name}")


class NewRef(Sugar):
    """``Class.__new__``, as the code of archives makes objects."""

    what = "method"

    def __init__(self, kind: ClassType) -> None:
        self.kind = kind

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        return c.emit("prim::CreateObject", (), self.kind, at=node)


class TypeRef(Sugar):
    """A type by itself, as `isinstance` and `annotate` read it."""

    what = "class"

    def __init__(self, kind: Type) -> None:
        self.kind = kind


class NamedTupleRef(Sugar):
    """The class of a named tuple."""

    what = "class"

    def __init__(self, kind: NamedTupleType) -> None:
        self.kind = kind

    def call(
        self, c: Compilation, node: ast.Call, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        kind = self.kind
        arguments = [
            Argument(name, each, kind.defaults[name])
            if name in kind.defaults
            else Argument(name, each)
            for name, each in zip(kind.fields, kind.args, strict=True)
        ]
        schema = Schema(kind.name, "", tuple(arguments), (Argument("", kind),))
        inputs = _matched(c, node, schema, args, kwargs)
        return c.emit("prim::TupleConstruct", inputs, kind, at=node)


class EnumRef(Sugar):
    """An enum, whose members are constants."""

    what = "enum"

    def __init__(self, kind: EnumType) -> None:
        self.kind = kind

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        try:
            return c.constant(self.kind.maker[name], self.kind, node)
        except KeyError:
            c.fail(node, f"Enum '{self.kind.name}' has no member '{name}'")

    def members(self, c: Compilation, node: ast.AST | None) -> list[Any]:
        return [c.constant(each, self.kind, node) for each in self.kind.maker]

    def value(self, c: Compilation, node: ast.AST) -> Value:
        members = self.members(c, node)
        return c.emit("prim::ListConstruct", members, T.list_of(self.kind), at=node)


class Many(Sugar):
    """A tuple of things that need not be values."""

    what = "tuple"

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)

    def members(self, c: Compilation, node: ast.AST | None) -> list[Any]:
        return self.parts

    def value(self, c: Compilation, node: ast.AST) -> Value:
        parts = [as_value(c, node, each) for each in self.parts]
        return c.emit(
            "prim::TupleConstruct", parts, T.tuple_of(*(each.type() for each in parts)), at=node
        )


class Bounds(Sugar):
    """``slice(start, end, step)``; what is left out is None."""

    what = "Python slice value"

    def __init__(self, start: Value | None, end: Value | None, step: Value | None) -> None:
        self.start, self.end, self.step = start, end, step


class SuperRef(Sugar):
    """``super()`` in a method: the methods of the classes above."""

    what = "super"

    def __init__(self, of: Value, above: type) -> None:
        self.of, self.above = of, above

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        bound_method = compiler.function.bound_method

        kind = self.of.type()
        assert isinstance(kind, ClassType)
        for cls in kind.maker.__mro__[kind.maker.__mro__.index(self.above) + 1 :]:
            if name in vars(cls):
                hidden = f"_super_{cls.__name__}_{name}"
                if hidden not in kind.methods:
                    kind.methods[hidden] = bound_method(kind, vars(cls)[name], hidden, cls)
                return MethodRef(self.of, kind, hidden)
        c.fail(node, f"'super' object has no attribute '{name}'")


def as_value(c: Compilation, node: ast.AST, what: Any) -> Value:
    """The value that something is.

    Raises:
        CompilationError: it is none.
    """
    return what if isinstance(what, Value) else what.value(c, node)


def constant_of(
    c: Compilation, node: ast.AST | None, value: object, kind: Type | None = None
) -> Value:
    """An object of Python as a constant; containers are made of constants."""
    if isinstance(value, (fb.dtype, fb.layout, fb.memory_format)):
        return c.constant(_numbers.number_of(value), T.INT, node)
    if isinstance(value, tuple):
        wanted = kind.args if kind is not None and kind.kind == "Tuple" else [None] * len(value)
        parts = [constant_of(c, node, v, k) for v, k in zip(value, wanted, strict=True)]
        made = T.tuple_of(*(part.type() for part in parts))
        if hasattr(value, "_fields"):
            made = _annotations.of_value(value)
        return c.emit("prim::TupleConstruct", parts, made, at=node)
    if isinstance(value, list):
        made = kind if kind is not None and kind.kind == "List" else _annotations.of_value(value)
        parts = [constant_of(c, node, each, made.args[0]) for each in value]
        return c.emit("prim::ListConstruct", parts, made, at=node)
    if isinstance(value, dict):
        made = kind if kind is not None and kind.kind == "Dict" else _annotations.of_value(value)
        parts = [constant_of(c, node, each) for pair in value.items() for each in pair]
        return c.emit("prim::DictConstruct", parts, made, at=node)
    found = _annotations.of_value(value)
    return c.constant(value, found, node)


def language() -> dict[str, Sugar]:
    """The forms that the code of archives names without a module."""
    words = "annotate unchecked_cast uninitialized fork wait"
    found: dict[str, Sugar] = {word: Special(word) for word in words.split()}
    return {**found, "ops": OpNamespace()}


def _op_of(value: object) -> str | None:
    """The op that a public function is.

    It is asked for by its name: which object that name has may change when a device is first used.
    """
    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    for prefix, module in (
        ("", fb),
        ("linalg_", sys.modules.get("flambeau.linalg")),  # whose function it may be, if it is there
        ("fft_", sys.modules.get("flambeau.fft")),
        ("special_", sys.modules.get("flambeau.special")),
        ("", fb.autograd),
        ("", fb.Tensor),
    ):
        if _decorators.plain(getattr(module, name, None)) is value and schemas(
            f"aten::{prefix}{name}"
        ):
            return f"aten::{prefix}{name}"
    same = _decorators.plain(getattr(fb, name, None)) is value
    return _renamed().get(name) if same else None


@functools.cache
def _renamed() -> dict[str, str]:
    """Public names of functions that are ops under another."""
    found = {}
    for name in names():
        base = name.partition("::")[2]
        made = getattr(fb, base, None)
        if name.startswith("aten::") and callable(made) and getattr(made, "__name__", base) != base:
            found.setdefault(made.__name__, name)
    return found


_SCALARS = (bool, int, float, complex, str)
_SPECIAL_OBJECTS: dict[int, str] = {}


def _special(value: object | None) -> str | None:
    if not _SPECIAL_OBJECTS:
        _calls = compiler.calls

        _SPECIAL_OBJECTS.update(_calls.special_objects())
    return _SPECIAL_OBJECTS.get(id(value))


def of_python(c: Compilation, node: ast.AST | None, value: Any, name: str = "") -> Value | Sugar:
    """What an object of Python means in a source."""
    if isinstance(value, Sugar | Value):
        return value
    value = _decorators.plain(value)
    if (special := _special(value)) is not None:
        return Special(special)
    if isinstance(value, enum.Enum):
        return c.constant(value, _annotations.of_enum(type(value)), node)
    if value is None or isinstance(value, _SCALARS):
        return c.constant(value, at=node)
    if isinstance(value, (fb.dtype, fb.layout, fb.memory_format, fb.device)) and not isinstance(
        value, type
    ):
        return constant_of(c, node, value)
    if isinstance(value, types.ModuleType):
        return Namespace(value)
    if isinstance(value, OpsNamespace):
        return OpNamespace(value._name)
    ScriptFunction = compiler.function.ScriptFunction
    recursive = compiler.function.recursive

    if isinstance(value, ScriptFunction):
        return FunctionRef(typing.cast("ScriptFunction", value))
    if isinstance(value, T.Type):
        return ClassRef(value) if isinstance(value, ClassType) else TypeRef(value)
    if isinstance(value, tuple):
        return Many([of_python(c, node, each) for each in value])
    if isinstance(value, type):
        return _of_class(c, node, value)
    if (chosen := compiler.choices.scripted(value)) is not None:
        return chosen
    if (op := _op_of(value)) is not None:
        return Builtin(op)
    if getattr(value, "__module__", None) == "math" and schemas(f"aten::{value.__name__}"):
        return Builtin(f"aten::{value.__name__}")
    if callable(value):
        _functional = compiler.functional

        if (known := _functional.scripted(value)) is not None:
            return known
        if _decorators.is_ignored(value) or isinstance(value, _RUN_BY_PYTHON):
            return IgnoredRef(value)
        if isinstance(value, types.FunctionType):
            return recursive(value)
        if (named := getattr(value, "__name__", "")) and schemas(f"aten::{named}"):
            return Builtin(f"aten::{named}")
        if isinstance(value, types.MethodType) or hasattr(value, "forward"):
            return _of_bound(c, node, value, name)
    c.fail(
        node,
        f"python value of type '{type(value).__name__}' cannot be used as a value. Perhaps it is "
        "a closed over global variable? If so, please consider passing it in as an argument or "
        "use a local variable instead.",
    )


def _of_bound(c: Compilation, node: ast.AST | None, value: object, name: str) -> Value | Sugar:
    ScriptFunction = compiler.function.ScriptFunction

    scripted = getattr(value, "_scripted_function", None)
    if isinstance(scripted, ScriptFunction):
        return FunctionRef(typing.cast("ScriptFunction", scripted))
    kind = getattr(value, "_type_of_script", None)
    if isinstance(kind, ClassType):
        of = c.emit("prim::Constant", (), kind, at=node, _object=value, name=kind.name)
        return of
    c.fail(
        node,
        f"python value of type '{type(value).__name__}' cannot be used as a value: only what is "
        "scripted can be called",
    )


def _of_class(c: Compilation, node: ast.AST | None, value: type) -> Value | Sugar:
    if issubclass(value, enum.Enum):
        return EnumRef(_annotations.of_enum(value))  # type: ignore[arg-type]
    if issubclass(value, BaseException):
        return ExceptionRef(value)
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        return NamedTupleRef(_annotations.of_named_tuple(value))  # type: ignore[arg-type]
    if value is fb.Tensor:
        return TensorClass()
    if value is fb.Size:
        return Special("list")
    if value is fb.device:
        return Builtin("aten::device")
    if value is fb.set_grad_enabled:
        return Builtin("aten::set_grad_enabled")
    if compiler.classes._is_module_class(value):
        return ModuleClass(value)
    if value is collections.OrderedDict:  # all that the language has are in order
        return Special("dict")
    try:
        kind = _annotations.of_object(value)
    except _annotations.AnnotationError as error:
        c.fail(node, str(error))
    return ClassRef(kind) if isinstance(kind, ClassType) else TypeRef(kind)


class ModuleClass(Sugar):
    """A class of modules, whose static methods and constants are read."""

    what = "class of modules"

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        try:
            return of_python(c, node, getattr(self.cls, name), name)
        except AttributeError:
            c.fail(node, f"class '{self.cls.__name__}' has no attribute '{name}'")

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        c.fail(
            node,
            f"Type '{self.cls.__name__}' is a class of modules: only objects of it can be used",
        )


class TensorClass(Sugar):
    """``torch.Tensor``: its methods as functions."""

    what = "class"
    kind = T.TENSOR

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Value | Sugar:
        if schemas(f"aten::{name}"):
            return Builtin(f"aten::{name}")
        return super().attribute(c, node, name)


class ExceptionRef(Sugar):
    """A class of exceptions, for `raise`."""

    what = "exception class"

    def __init__(self, cls: type[BaseException]) -> None:
        self.cls = cls

    def call(
        self, c: Compilation, node: ast.Call, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> ExceptionMade:
        return ExceptionMade(self.cls, list(args))


class ExceptionMade(Sugar):
    """An exception that is going to be raised."""

    what = "exception"

    def __init__(self, cls: type[BaseException], args: list[Value]) -> None:
        self.cls, self.args = cls, args


_TENSOR_ATTRIBUTES: dict[str, str] = {
    "dtype": "prim::dtype",
    "device": "prim::device",
    "grad": "prim::grad",
    "data": "prim::data",
    "shape": "aten::size",
    "is_cuda": "prim::is_cuda",
    "is_cpu": "prim::is_cpu",
    "is_xpu": "prim::is_xpu",
    "is_xla": "prim::is_xla",
    "is_sparse": "prim::is_sparse",
    "is_sparse_csr": "prim::is_sparse_csr",
    "is_mkldnn": "prim::is_mkldnn",
    "is_mps": "prim::is_mps",
    "is_quantized": "prim::is_quantized",
    "is_meta": "prim::is_meta",
    "is_leaf": "aten::is_leaf",
    "is_nested": "prim::is_nested",
    "requires_grad": "prim::requires_grad",
    "layout": "prim::layout",
    "T": "aten::numpy_T",
    "H": "aten::matrix_H",
    "mT": "aten::mT",
    "mH": "aten::mH",
    "ndim": "aten::dim",
    "real": "aten::real",
    "imag": "aten::imag",
    "itemsize": "prim::itemsize",
    "nbytes": "prim::nbytes",
    "name": "prim::name",
}


DTYPE_METHODS = {
    "byte": 0,
    "char": 1,
    "short": 2,
    "int": 3,
    "long": 4,
    "half": 5,
    "float": 6,
    "double": 7,
    "cfloat": 9,
    "cdouble": 10,
}
"""Methods that are ``to(dtype)``, with the number that the dtype has in graphs."""


def value_attribute(c: Compilation, node: ast.AST | None, of: Value, name: str) -> Any:
    """What ``value.name`` means."""
    kind = of.type()
    if kind is T.TENSOR and name in _TENSOR_ATTRIBUTES:
        return call_op(c, _TENSOR_ATTRIBUTES[name], [of], at=node)
    if kind is T.DEVICE and name in ("type", "index"):
        return call_op(c, f"prim::{name}", [of], at=node)
    if isinstance(kind, NamedTupleType) and name in kind.fields:
        at = kind.fields.index(name)
        return tuple_item(c, node, of, at)
    if isinstance(kind, EnumType) and name in ("name", "value"):
        op = "prim::EnumName" if name == "name" else "prim::EnumValue"
        return c.emit(op, [of], T.STR if name == "name" else kind.value_type, at=node)
    if isinstance(kind, ClassType):
        return _class_attribute(c, node, of, kind, name)
    if kind is T.STR and name == "format":
        return Special("format", of)
    if kind is T.TENSOR and name in DTYPE_METHODS:
        return Special(f"x.{name}()", of)
    if kind is T.TENSOR and name == "tolist":
        return Special("tolist", of)
    if kind.kind in ("Future", "Await") and name == "wait":
        return Builtin("aten::wait", of)
    if kind.kind == "Optional":
        c.fail(
            node,
            f"'{kind.annotation}' object has no attribute or method '{name}'. Did you forget to "
            "check that it is not None?",
        )
    if _has_method(kind, name):
        return Builtin(f"aten::{name}", of)
    shown = f"{kind.annotation} (inferred)" if of.inferred else kind.annotation
    c.fail(node, f"'{shown}' object has no attribute or method '{name}'.")


_RENAMED = {"Dict": ("Dict",), "List": ("List",), "str": ("str",), "Tensor": ("Tensor",)}


def _has_method(kind: Type, name: str) -> bool:
    if kind in (T.INT, T.FLOAT, T.BOOL, T.NUMBER, T.NONE, T.COMPLEX):
        return False
    for schema in schemas(f"aten::{name}"):
        if not schema.arguments:
            continue
        first = schema.arguments[0].type
        first = first.args[0] if first.kind == "Optional" else first
        if first.kind == kind.kind or first is kind or first.kind.startswith("var:"):
            return True
        if T.is_subtype(kind, first):
            return True
    return False


def tuple_item(c: Compilation, node: ast.AST | None, of: Value, at: int) -> Value:
    """A member of a tuple."""
    if of.node is not None and of.node.kind == "prim::TupleConstruct":
        return of.node.inputs_[at]
    index = c.constant(at, T.INT, node)
    return c.emit("prim::TupleIndex", [of, index], of.type().args[at], at=node)


def _class_attribute(c: Compilation, node: Any, of: Value, kind: ClassType, name: str) -> Any:
    if name in kind.attributes:
        made = c.emit("prim::GetAttr", [of], kind.attributes[name], at=node, name=name)
        made.name = name if name.isidentifier() else f"_{name}" if name.isdigit() else ""
        return made
    if name in kind.constants:
        value = kind.constants[name]
        if isinstance(value, (list, dict)):
            return constant_of(c, node, value)
        return of_python(c, node, value, name)
    if name in kind.properties:
        return MethodRef(of, kind, kind.properties[name]).call(c, node, [], {})
    if name in kind.values:
        return _of_module_value(c, node, of, kind, name)
    if "!container" in kind.values and name in ("keys", "values", "items"):
        return compiler.module_values.container_method(c, node, of, kind, name)
    if kind.method(name) is not None:
        if name in kind.statics:
            return FunctionRef(kind.methods[name])
        return MethodRef(of, kind, name)
    if name in kind.values:
        return _of_module_value(c, node, of, kind, name)
    if kind.is_module:
        container_method = compiler.module_values.container_method

        found = container_method(c, node, of, kind, name)
        if found is not None:
            return found
        reason = kind.values.get("!failed", {}).get(name)
        hint = f" {reason}" if reason else ""
        c.fail(
            node,
            f"Module '{kind.name.rpartition('.')[2]}' has no attribute '{name}'{hint}",
        )
    c.fail(
        node,
        f"Tried to access nonexistent attribute or method '{name}' of type '{kind.name}'. Did you "
        "forget to initialize an attribute in __init__()?",
    )


def _of_module_value(
    c: Compilation, node: ast.AST, of: Value, kind: ClassType, name: str
) -> Value | Sugar:
    value = kind.values[name]
    if _decorators.is_ignored(value):
        return IgnoredRef(value, of if inspect.isfunction(value) else None, name)
    return of_python(c, node, value, name)


def set_attribute(
    c: Compilation, node: ast.AST, of: Value | Sugar, name: str, value: Value
) -> None:
    """Compile ``of.name = value``."""
    convert = compiler.match.convert

    if not isinstance(of, Value) or not isinstance(of.type(), ClassType):
        c.fail(node, "Tried to set an attribute of what is no object of a class")
    kind = of.type()
    assert isinstance(kind, ClassType)
    if name not in kind.attributes:
        if not kind.is_module and c.name == "__init__":
            kind.attributes[name] = value.type()
        else:
            what = "module" if kind.is_module else "class"
            c.fail(
                node,
                f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in "
                f"__init__() of the {what}?",
            )
    want = kind.attributes[name]
    converted = convert(c, value, want, allow=False, at=node)
    if converted is None:
        c.fail(
            node,
            f"Wrong type for attribute assignment. Expected {want.annotation} but got "
            f"{value.type().annotation}",
        )
    c.node("prim::SetAttr", [of, converted], at=node, name=name)


__all__ = [
    "AtenNamespace",
    "Builtin",
    "ClassRef",
    "EnumRef",
    "ExceptionMade",
    "ExceptionRef",
    "FunctionRef",
    "IgnoredRef",
    "Many",
    "MethodRef",
    "NamedTupleRef",
    "Namespace",
    "OpNamespace",
    "Overloads",
    "Special",
    "Sugar",
    "SuperRef",
    "TensorClass",
    "TypeRef",
    "as_value",
    "call_function",
    "constant_of",
    "emit_op",
    "of_python",
    "raises",
    "set_attribute",
    "tuple_item",
    "unpack",
    "value_attribute",
]
