"""Classes that are scripted, interfaces, and the objects of both."""

from __future__ import annotations

import ast
import inspect
import sys
import weakref
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.jit import _decorators
from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend import data_classes
from flambeau.jit._frontend.function import ScriptFunction, bound_method, declaration_of
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import Argument, Schema
from flambeau.jit._types import ClassType, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.jit._frontend.function import Declaration
    from flambeau.jit._frontend.resolve import Resolver
    from flambeau.jit._frontend.source import Source
    from flambeau.jit._reader import _CodeResolver


_TYPES: weakref.WeakKeyDictionary[type, ClassType] = weakref.WeakKeyDictionary()


def class_type_of(cls: type) -> ClassType:
    """The type of the objects of a class; the class is scripted if it was not.

    Raises:
        AnnotationError: it is a class that cannot be scripted.
    """
    if cls in _TYPES:
        return _TYPES[cls]
    made = vars(cls).get("__torch_script_type__")
    if isinstance(made, ClassType):
        return made
    if cls in (fb.no_grad, fb.enable_grad):
        return _switch(cls)
    if cls.__module__ in ("builtins", "typing", "collections"):
        raise _annotations.AnnotationError(f"Unknown type name '{cls.__name__}'")
    if _is_module_class(cls):
        raise _annotations.AnnotationError(
            f"Type '{cls.__name__}' is a class of modules: only objects of it can be used"
        )
    return script_class(cls)


def _is_module_class(cls: type) -> bool:
    nn = sys.modules.get("flambeau.nn")
    return nn is not None and issubclass(cls, nn.Module)


def script_class(cls: type) -> ClassType:
    """The type of a class whose methods are compiled when they are needed."""
    if not inspect.isclass(cls):
        raise _annotations.AnnotationError(f"{cls!r} is no class")
    if len(cls.__mro__) > 2 and cls.__mro__[1:] != (object,):
        raise RuntimeError(
            "TorchScript classes does not support inheritance yet. Please directly inherit from "
            "'object' in order to script classes."
        )
    kind = ClassType(_annotations.qualified_name(cls), maker=cls)
    _TYPES[cls] = kind
    for name, value in vars(cls).items():
        if isinstance(value, staticmethod):
            kind.statics.add(name)
            kind.methods[name] = _static(kind, value.__func__, name)
        elif isinstance(value, classmethod):  # scripts call it on objects, as in PyTorch
            kind.methods[name] = bound_method(kind, value.__func__, name)
        elif isinstance(value, property):
            kind.properties[name] = name
            kind.methods[name] = bound_method(kind, value.fget, name)
        elif inspect.isfunction(value) and data_classes.is_generated(cls, value):
            if (method := data_classes.generated_method(kind, cls, name)) is not None:
                kind.methods[name] = method
        elif inspect.isfunction(value) and not _decorators.is_ignored(value):
            kind.methods[name] = bound_method(kind, value, name)
        elif _decorators.is_ignored(value):
            kind.values[name] = value
        elif not name.startswith("_") and isinstance(value, (bool, int, float, str)):
            kind.constants[name] = value
    hints = vars(cls).get("__annotations__", {})
    for name, hint in hints.items():
        if "Final" not in str(hint):
            of_function = compiler.resolve.of_function

            first = next((v for v in vars(cls).values() if inspect.isfunction(v)), None)
            resolver = of_function(first) if first is not None else None
            kind.attributes[name] = _annotations.of_object(hint, resolver)
    if "__init__" in kind.methods:
        method = kind.methods["__init__"]
        try:
            method.compile()
        except Exception:
            _TYPES.pop(cls, None)
            raise
    return kind


def _static(kind: ClassType, fn: Callable[..., Any], name: str) -> ScriptFunction:
    return ScriptFunction(name, f"{kind.name}.{name}", lambda: declaration_of(fn))


def type_of_object(value: object) -> ClassType:
    """The type of an object of a scripted class or of a module.

    Raises:
        TypeError: it is of no such class.
    """
    own = getattr(value, "_type_of_script", None)
    if isinstance(own, ClassType):
        return own
    try:
        return class_type_of(type(value))
    except (_annotations.AnnotationError, RuntimeError):
        raise TypeError from None


def object_of(value: object, kind: ClassType) -> object:
    """The value, if it is an object of a type.

    Code of archives takes for one whatever its lists and casts hold; attributes of anything else
    lead into the interpreter.

    Raises:
        RuntimeError: it is none.
    """
    have = vars(type(value)).get("__torch_script_type__") or getattr(value, "_type_of_script", None)
    if have is kind or (isinstance(have, ClassType) and T.is_subtype(have, kind)):
        return value
    raise RuntimeError(f"expected an object of {kind.name}, got a {type(value).__name__}")


def python_class(kind: ClassType) -> type:
    """The class of Python whose objects are those of a type; made, if it came from an archive."""
    if kind.maker is None:
        kind.maker = type(
            kind.name.rpartition(".")[2], (ScriptObject,), {"__torch_script_type__": kind}
        )
    return kind.maker


class ScriptObject:
    """An object of a class that has no class of Python: its methods are the compiled ones."""

    def __getattr__(self, name: str) -> Any:
        kind: ClassType = type(self).__torch_script_type__  # type: ignore[attr-defined]
        method = kind.method(name) if not name.startswith("__torch") else None
        if method is None:
            raise AttributeError(f"{kind.name} has no attribute {name!r}")
        checked = compiler.execute.checked

        return checked(method, 1).__get__(self) if method.owner is None else _bound(method, self)


def _bound(method: ScriptFunction, of: object) -> Callable[..., Any]:
    checked = compiler.execute.checked

    call = checked(method, 1)
    return lambda *args, **kwargs: call(of, *args, **kwargs)


_SWITCHES = """
class {name}:
    prev: bool
    def __init__(self) -> None:
        self.prev = False
    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled({on})
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)
"""


def _switch(cls: type) -> ClassType:
    """`no_grad` and `enable_grad`, which in a program are classes of it."""
    Resolver = compiler.resolve.Resolver
    AtenNamespace = compiler.values.AtenNamespace

    name = cls.__name__
    text = _SWITCHES.format(name=name, on=name == "enable_grad")
    resolver = Resolver({"torch": AtenNamespace()}, known=False)
    kind = ClassType(f"__torch__.torch.autograd.grad_mode.{name}")
    _TYPES[cls] = kind
    from_source(kind, text, resolver, f"<{name}>")
    return kind


def from_source(kind: ClassType, text: str, resolver: Resolver, filename: str) -> None:
    """Fill a type with the attributes and methods that a class in a source has."""
    parse = compiler.function.parse
    Source = compiler.source.Source

    source = Source(tuple(text.splitlines()), filename)
    tree = parse(text, source)
    node = next(each for each in tree.body if isinstance(each, ast.ClassDef))
    fill(kind, node, source, resolver)


def fill(
    kind: ClassType, node: ast.ClassDef, source: Source, resolver: Resolver | _CodeResolver
) -> None:
    """Fill a type with the attributes and methods of a class definition."""
    Declaration = compiler.function.Declaration
    literal_defaults = compiler.function.literal_defaults

    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            kind.attributes[each.target.id] = _annotations.of_syntax(each.annotation, resolver)
        elif isinstance(each, ast.FunctionDef):
            declaration = Declaration(
                each, source, resolver, literal_defaults(each, resolver), f"{kind.name}.{each.name}"
            )
            declaration.self_type = kind
            method = ScriptFunction(
                each.name, declaration.qualified_name, lambda given=declaration: given
            )
            method.owner = kind
            kind.methods[each.name] = method


def interface(obj: object) -> type[object]:
    """Mark a class as an interface: its methods say which ones an object has to have.

    >>> import flambeau as fb
    >>> @fb.jit.interface
    ... class Shape:
    ...     def area(self) -> float:
    ...         pass
    >>> @fb.jit.script
    ... class Square:
    ...     def __init__(self, side: float):
    ...         self.side = side
    ...     def area(self) -> float:
    ...         return self.side * self.side
    >>> @fb.jit.script
    ... def twice(shape: Shape) -> float:
    ...     return shape.area() * 2.0
    >>> twice(Square(3.0))
    18.0
    """
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    if len(obj.__mro__) > 2 and not _is_module_class(obj):
        raise RuntimeError("TorchScript interface does not support inheritance yet")
    kind = ClassType(_annotations.qualified_name(obj), interface=True, maker=obj)
    kind.is_module = _is_module_class(obj)
    _TYPES[obj] = kind
    for name, value in vars(obj).items():
        if inspect.isfunction(value):
            kind.methods[name] = _abstract(kind, value, name)
    setattr(obj, "__torch_script_interface__", True)  # noqa: B010 - what it is on is any class
    return obj


class _Abstract(ScriptFunction):
    """A method without a body."""

    @property
    def returned(self) -> Type:
        return self.schema.returns[0].type if self.schema.returns else T.NONE

    def compile(self) -> None:
        return None


def _abstract(kind: ClassType, fn: Callable[..., Any], name: str) -> ScriptFunction:
    def declare() -> Declaration:
        declaration = declaration_of(fn)
        declaration.self_type = kind
        return declaration

    made = _Abstract(name, f"{kind.name}.{name}", declare)
    made.owner = kind
    return made


def self_only(kind: ClassType) -> Schema:
    """The signature of a method without arguments."""
    return Schema("", "", (Argument("self", kind),), ())
