"""Annotations as types: those that are written in a source, and Python's own objects."""

from __future__ import annotations

import ast
import enum
import inspect
import types
import typing
from typing import Any

import flambeau as fb
from flambeau._tensor.legacy import LegacyTensorType
from flambeau.jit import _types as T
from flambeau.jit._parts import compiler
from flambeau.jit._types import Type

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.jit._frontend.resolve import Resolver

_NAMED: dict[str, Type] = {
    "Tensor": T.TENSOR,
    "int": T.INT,
    "float": T.FLOAT,
    "bool": T.BOOL,
    "str": T.STR,
    "complex": T.COMPLEX,
    "number": T.NUMBER,
    "None": T.NONE,
    "NoneType": T.NONE,
    "Device": T.DEVICE,
    "Any": T.ANY,
    "Generator": T.GENERATOR,
    "Stream": T.STREAM,
    "AnyEnumType": T.ANY_ENUM,
    "Function": T.FUNCTION,
}
_DOTTED = {
    "torch.Tensor": T.TENSOR,
    "torch.device": T.DEVICE,
    "torch.dtype": T.INT,
    "torch.layout": T.INT,
    "torch.memory_format": T.INT,
    "torch.Generator": T.GENERATOR,
    "torch.Size": T.list_of(T.INT),
    "typing.Any": T.ANY,
}
_GENERIC = {"List": 1, "Optional": 1, "Dict": 2, "Future": 1, "Final": 1, "Await": 1, "RRef": 1}
_LOWER = {"list": "List", "dict": "Dict", "tuple": "Tuple"}


class AnnotationError(ValueError):
    """What is no type of TorchScript."""


def _generic(name: str, members: list[Type]) -> Type:
    if name == "Tuple":
        return T.tuple_of(*members)
    if name == "Union":
        return T.union(*members)
    if name == "Optional":
        return T.optional(members[0])
    if name == "Final":
        return members[0]
    if len(members) != _GENERIC[name]:
        raise AnnotationError(f"{name} takes {_GENERIC[name]} types, got {len(members)}")
    return Type(name, *members)


def parsed(text: str) -> ast.expr:
    """The syntax of a type that is written as a text.

    Raises:
        AnnotationError: it is no expression.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise AnnotationError(f"{text!r:.80} is no type: {error}") from None


def of_syntax(node: ast.expr, resolver: Resolver) -> Type:
    """The type that an expression names.

    Raises:
        AnnotationError: it names none.
    """
    if isinstance(node, ast.Constant):
        if node.value is None:
            return T.NONE
        if isinstance(node.value, str):
            return of_syntax(parsed(node.value), resolver)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return T.union(of_syntax(node.left, resolver), of_syntax(node.right, resolver))
    if isinstance(node, ast.Tuple) and not node.elts:
        return T.tuple_of()
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.value).rpartition(".")[2]
        name = _LOWER.get(name, name)
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Tuple" and isinstance(node.slice, ast.Tuple) and not node.slice.elts:
            return T.tuple_of()
        if name.startswith("BroadcastingList"):
            return T.list_of(of_syntax(inside[0], resolver))
        if name in _GENERIC or name in ("Tuple", "Union"):
            return _generic(name, [of_syntax(each, resolver) for each in inside])
    written = ast.unparse(node)
    if isinstance(node, ast.Name) and written in _NAMED:
        return _NAMED[written]
    if written in _DOTTED:
        return _DOTTED[written]
    found = resolver.type_of_name(written)
    if found is not None:
        return found
    try:
        value = resolver.evaluate(node)
    except Exception:  # the program's own code, run to find a class: then it names none
        value = None
    if value is not None:
        return of_object(value, resolver)
    if written in ("List", "list", "Dict", "dict", "Tuple", "tuple", "Optional"):
        raise AnnotationError(
            f"Attempted to use {written} without a contained type. Please add a contained type, "
            f"e.g. {written}[int]"
        )
    raise AnnotationError(f"Unknown type name '{written}'")


def of_object(value: object, resolver: Resolver | None = None) -> Type:
    """The type that an object of Python (a class, ``typing.List[int]``) stands for.

    Raises:
        AnnotationError: it stands for none.
    """
    if isinstance(value, Type):
        return value
    if isinstance(value, str) and resolver is not None:
        return of_syntax(parsed(value), resolver)
    if isinstance(value, typing.ForwardRef) and resolver is not None:
        return of_object(value.__forward_arg__, resolver)
    simple = _simple().get(id(value))
    if simple is not None:
        return simple
    origin = typing.get_origin(value)
    inside = typing.get_args(value)
    if origin in (typing.Union, types.UnionType):
        return T.union(*(of_object(each, resolver) for each in inside))
    if origin in (list, dict):
        return Type(origin.__name__.title(), *(of_object(each, resolver) for each in inside))
    if origin is tuple:
        if inside == ((),):
            inside = ()
        return T.tuple_of(*(of_object(each, resolver) for each in inside))
    if origin in (typing.Final, typing.ClassVar):
        return of_object(inside[0], resolver)
    if value in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple):  # noqa: UP006
        name = getattr(value, "__name__", str(value)).title()
        raise AnnotationError(
            f"Attempted to use {name} without a contained type. Please add a contained type, "
            f"e.g. {name}[int]"
        )
    if isinstance(value, LegacyTensorType):
        return T.TENSOR
    if isinstance(value, type):
        return of_class(value, resolver)
    raise AnnotationError(f"Unknown type annotation: '{value}'")


def _simple() -> dict[int, Type]:
    if not _SIMPLE:
        pairs: list[tuple[Any, Type]] = [
            (fb.Tensor, T.TENSOR),
            (int, T.INT),
            (float, T.FLOAT),
            (bool, T.BOOL),
            (str, T.STR),
            (complex, T.COMPLEX),
            (None, T.NONE),
            (type(None), T.NONE),
            (fb.device, T.DEVICE),
            (fb.dtype, T.INT),
            (fb.layout, T.INT),
            (fb.memory_format, T.INT),
            (fb.Generator, T.GENERATOR),
            (fb.Size, T.list_of(T.INT)),
            (typing.Any, T.ANY),
        ]
        _SIMPLE.update((id(value), kind) for value, kind in pairs)
    return _SIMPLE


_SIMPLE: dict[int, Type] = {}


def qualified_name(obj: Callable[..., Any]) -> str:
    """The name in graphs of a class or function: ``__torch__.module.Name``."""
    module = getattr(obj, "__module__", None) or "__main__"
    name = getattr(obj, "__qualname__", obj.__name__).rpartition("<locals>.")[2]
    if name == "<lambda>":
        name = "__lambda__"
    own, _, rest = module.partition(".")
    if own == "flambeau":
        module = f"torch.{rest}" if rest else "torch"
    module = ".".join(p if p.isidentifier() else "_" for p in module.split("."))
    return f"__torch__.{name}" if module == "__main__" else f"__torch__.{module}.{name}"


def of_class(value: type, resolver: Resolver | None = None) -> Type:
    """The type of a class's objects: an enum, a named tuple, a scripted class.

    Raises:
        AnnotationError: it is another class, or one that cannot be scripted.
    """
    if issubclass(value, fb.Tensor):
        return T.TENSOR
    if issubclass(value, enum.Enum):
        return of_enum(value)
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        return of_named_tuple(value, resolver)
    class_type_of = compiler.classes.class_type_of

    return class_type_of(value)


_ENUMS: dict[type, Type] = {}
_TUPLES: dict[type, Type] = {}


def of_enum(value: type[enum.Enum]) -> Type:
    """The type of the members of an enum."""
    if value not in _ENUMS:
        kinds = {type(each.value) for each in value}
        if len(kinds) != 1:
            raise AnnotationError(
                f"Could not infer a common type of the values of Enum {value.__name__}: "
                f"they are {sorted(kind.__name__ for kind in kinds)}"
            )
        _ENUMS[value] = T.EnumType(qualified_name(value), value, of_object(kinds.pop()))
    return _ENUMS[value]


def of_named_tuple(value: type, resolver: Resolver | None = None) -> Type:
    """The type of a named tuple; members without an annotation are tensors."""
    if value not in _TUPLES:
        hints = getattr(value, "__annotations__", {})
        members = []
        for name in value._fields:
            hint = hints.get(name, fb.Tensor)
            if isinstance(hint, (str, typing.ForwardRef)):
                if resolver is None:
                    hint = typing.get_type_hints(value)[name]
                elif isinstance(hint, str):
                    hint = hint.strip()
            members.append(of_object(hint, resolver))
        _TUPLES[value] = T.NamedTupleType(qualified_name(value), value._fields, members, value)
    return _TUPLES[value]


def of_value(value: object) -> Type:
    """The type of a value of Python.

    Raises:
        AnnotationError: it has none in TorchScript.
    """
    if isinstance(value, fb.Tensor):
        return T.TENSOR
    if isinstance(value, enum.Enum):
        return of_enum(type(value))
    for kind in (bool, int, float, str, complex):
        if isinstance(value, kind):
            return of_object(kind)
    if value is None:
        return T.NONE
    if isinstance(value, fb.device):
        return T.DEVICE
    if isinstance(value, (fb.dtype, fb.layout, fb.memory_format)):
        return T.INT
    if isinstance(value, fb.Generator):
        return T.GENERATOR
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return of_named_tuple(type(value))
    if isinstance(value, fb.Size):
        return T.list_of(T.INT)
    if isinstance(value, tuple):
        return T.tuple_of(*map(of_value, tuple.__iter__(value)))
    if isinstance(value, list):
        if not value:
            return T.list_of(T.TENSOR)
        return T.list_of(_common(value, "list"))
    if isinstance(value, dict):
        if not value:
            raise AnnotationError("Dictionary inputs must have entries")
        return T.dict_of(_common(list(value), "dict"), _common(list(value.values()), "dict"))
    if isinstance(value, Future):
        return Type("Future", of_value(value.value())) if value.done() else Type("Future", T.ANY)
    made = vars(type(value)).get("__torch_script_type__") or getattr(value, "_type_of_script", None)
    if isinstance(made, Type):
        return made
    class_type_of = compiler.classes.class_type_of

    return class_type_of(type(value))


def _common(values: list[Any], what: str) -> Type:
    found = of_value(values[0])
    for value in values[1:]:
        joined = T.unify(found, of_value(value))
        if joined is None:
            raise AnnotationError(
                f"{what.title()} inputs to traced or scripted functions must have consistent "
                f"element types: found {found.annotation} and {of_value(value).annotation}"
            )
        found = joined
    return found


class Future:
    """What a forked call will have returned.

    >>> import flambeau as fb
    >>> fb.jit.wait(fb.jit.fork(fb.add, fb.ones(1), 1))
    tensor([2.])
    """

    __slots__ = ("_error", "_then", "_value")

    def __init__(self, call: Callable[[], Any] | None = None) -> None:
        self._value: Any = None
        self._error: BaseException | None = None
        self._then: list[Any] = []
        if call is not None:
            try:
                self._value = call()
            except Exception as error:
                self._error = error

    def wait(self) -> Any:
        """The result.  What the call raised is raised here."""
        if self._error is not None:
            raise self._error
        return self._value

    value = wait

    def done(self) -> bool:
        """True: a forked call has ended when `fork` returns."""
        return True

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of what `callback` returns for this one."""
        return Future(lambda: callback(self))

    def __class_getitem__(cls, item: object) -> Any:
        return types.GenericAlias(cls, item)


def signature_of(fn: Callable[..., Any], resolver: Resolver) -> tuple[list[Type], Type] | None:
    """The types of a function that is not compiled, from its annotations; None without any."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return None
    hints = getattr(fn, "__annotations__", {})
    if not hints:
        return None
    given = [
        of_object(p.annotation, resolver) if p.annotation is not p.empty else T.TENSOR
        for p in parameters
    ]
    back = of_object(hints["return"], resolver) if "return" in hints else T.TENSOR
    return given, back
