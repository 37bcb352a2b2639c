"""Scripted modules: of modules of Python, of classes of older programs, and of archives."""

from __future__ import annotations

import collections
import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import nn
from flambeau.jit import _decorators
from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend.function import ScriptFunction, bound_method, declarations
from flambeau.jit._frontend.resolve import Resolver, of_caller, of_function
from flambeau.jit._graph import Graph
from flambeau.jit._parts import compiler
from flambeau.jit._script import Attribute
from flambeau.jit._types import ClassType, Type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flambeau.jit._schemas import Schema
    from flambeau.nn.module import Module


_BASE = frozenset(dir(nn.Module())) | {"forward"}
_STATE = frozenset(vars(nn.Module()))
_CONTAINERS = {
    nn.ModuleList: "list",
    nn.ParameterList: "list",
    nn.Sequential: "list",
    nn.ModuleDict: "dict",
    nn.ParameterDict: "dict",
}
_SIMPLE = (bool, int, float, str, complex, type(None))


class ScriptMethod:
    """A method of one scripted module."""

    def __init__(self, function: ScriptFunction, of: Any) -> None:
        self.function, self.of = function, of
        self.name = self.__name__ = function.name

    def __call__(self, *args: object, **kwargs: object) -> Any:
        run = self.function._run
        if run is None:
            checked = compiler.execute.checked

            run = self.function._run = checked(self.function, 1)
        try:
            return run(self.of, *args, **kwargs)
        except TypeError:
            compiler.execute.refuse(self.function, args, kwargs)
            raise
        except compiler.execute.OverriddenError as overridden:
            return overridden.call(self, args, kwargs)

    @property
    def owner(self) -> Module:
        """The module."""
        return self.of

    @property
    def graph(self) -> Graph:
        """The graph, with calls as calls."""
        return self.function.graph

    @property
    def inlined_graph(self) -> Graph:
        """The graph, with other functions in the place of their calls."""
        return self.function.inlined_graph

    @property
    def code(self) -> str:
        """The source."""
        return self.function.code

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """The source, and the tensors that it names."""
        return self.function.code_with_constants

    @property
    def schema(self) -> Schema:
        """The signature."""
        self.function.compile()
        return self.function.schema

    def graph_for(self, *args: object, **kwargs: object) -> Graph:
        """The graph that runs: inlined, and simplified."""
        return self.function.graph_for(*args, **kwargs)


class ScriptModule(nn.Module):
    """A module of which methods are compiled.

    Older programs derive from it, mark methods by `script_method`, and list constants in
    ``__constants__``; attributes that are no parameters are given as `Attribute`.  Methods can also
    be added as text by `define`.

    >>> import flambeau as fb
    >>> class Scale(fb.jit.ScriptModule):
    ...     __constants__ = ["by"]
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.by = 3
    ...     @fb.jit.script_method
    ...     def forward(self, x):
    ...         return x * self.by
    >>> Scale()(fb.ones(1))
    tensor([3.])
    """

    _type_of_script: ClassType

    def __init_subclass__(cls, recursive: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if recursive:
            return
        original = cls.__init__

        @functools.wraps(original)
        def initialise(self: Any, *args: object, **given: object) -> None:
            original(self, *args, **given)
            if type(self) is cls:
                _finish(self)

        cls.__init__ = initialise  # type: ignore[method-assign]

    def __init__(self, optimize: Any = None) -> None:
        super().__init__()
        self.__dict__["_attribute_types"] = {}
        self.__dict__["_stubs"] = {}

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, Attribute):
            self.__dict__.setdefault("_attribute_types", {})[name] = value.type
            value = value.value
            if not isinstance(value, (fb.Tensor, nn.Module)):
                self.__dict__[name] = value
                return
            if isinstance(value, fb.Tensor) and not isinstance(value, nn.Parameter):
                self.__dict__[name] = value
                return
        kind = self.__dict__.get("_type_of_script")
        if kind is not None and not name.startswith("_"):
            if name in kind.constants and name != "training":
                raise AttributeError(
                    f"Cannot mutate TorchScript constant value: '{name}'. Value: '{value}'"
                )
            known = kind.attributes.get(name)
            if known is not None and not isinstance(value, (fb.Tensor, nn.Module)):
                cast = compiler.execute.cast

                try:
                    value = cast(value, known)
                except TypeError:
                    raise RuntimeError(
                        f"Could not assign to attribute '{name}': expected a value of type "
                        f"{known.annotation}, got a {type(value).__name__}"
                    ) from None
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        kind = self.__dict__.get("_type_of_script")
        if kind is not None:
            if name in kind.methods:
                return self._method(name)
            if name in kind.constants:
                return kind.constants[name]
        return super().__getattr__(name)

    def _method(self, name: str) -> ScriptMethod:
        """A compiled method."""
        cache = self.__dict__.setdefault("_bound_methods", {})
        found = cache.get(name)
        if found is None:
            method = self._type_of_script.method(name)
            if method is None:
                raise AttributeError(f"'{self.original_name}' object has no attribute '{name}'")
            found = cache[name] = ScriptMethod(method, self)
        return found

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_bound_methods", None)
        return state

    def __copy__(self) -> ScriptModule:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__getstate__())
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptModule:
        import copy

        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__getstate__().items():
            keep = name in ("_type_of_script", "_stubs", "_attribute_types")
            made.__dict__[name] = value if keep else copy.deepcopy(value, memo)
        return made

    copy = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "scripted modules cannot be pickled: torch.jit.save writes them, and torch.jit.load "
            "reads them"
        )

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        kind = self.__dict__.get("_type_of_script")
        return kind.name.rpartition(".")[2] if kind is not None else type(self).__name__

    @property
    def forward(self) -> Any:  # type: ignore[override]
        """The compiled `forward`."""
        try:  # each call of the module asks
            return self.__dict__["_bound_methods"]["forward"]
        except KeyError:
            return self._method("forward")

    def define(self, src: str) -> None:
        """Add the methods that a text defines; the module is their `self`."""
        resolver = of_caller(1)
        found = declarations(src, resolver)
        self.__dict__["_stubs"].update(found)
        kind = self.__dict__.get("_type_of_script")
        if kind is None and type(self) is ScriptModule:  # there is no class whose __init__ ends
            _finish(self)
        elif kind is not None:
            if type(self) is ScriptModule:  # what it was given since it was last asked
                kind.attributes.update(_type_of(self, script=True).attributes)
            _compile_stubs(self, found)

    @property
    def graph(self) -> Graph:
        """The graph of `forward`."""
        return self._method("forward").graph

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward`, with other functions in the place of their calls."""
        return self._method("forward").inlined_graph

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self._method("forward").code

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """The source of `forward`, and the tensors that it names."""
        return self._method("forward").code_with_constants

    def graph_for(self, *args: object, **kwargs: object) -> Graph:
        """The graph that runs: inlined, and simplified."""
        return self._method("forward").graph_for(*args, **kwargs)

    def save(self, f: object, _extra_files: Mapping[str, Any] | None = None) -> None:
        """Write an archive: see `flambeau.jit.save`."""
        save = compiler.archive.save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Mapping[str, Any] | None = None) -> bytes:
        """The bytes of the archive."""
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    def get_debug_state(self, *args: object, **kwargs: object) -> Any:
        """There is none: a graph runs as it is."""
        raise NotImplementedError("scripted modules have no state of an executor to show")

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"


class RecursiveScriptModule(ScriptModule, recursive=True):
    """What `script` makes of a module: its parameters, and the compiled methods.

    >>> import flambeau as fb
    >>> net = fb.jit.script(fb.nn.Sequential(fb.nn.Linear(2, 1), fb.nn.ReLU()))
    >>> net(fb.ones(3, 2)).shape
    torch.Size([3, 1])
    """

    def compile(self, **options: object) -> None:
        """Refused: what `script` made is compiled.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("a module that was scripted is compiled already; compile the module")

    @property
    def forward_magic_method(self) -> Any:
        """Special methods are those that were compiled."""
        return self._method

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[Any]:
        container = self._type_of_script.values.get("!container")
        if container == "dict":
            return iter(self._type_of_script.values["!items"])
        return iter(self._held())

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            return getattr(self, at)
        return self._held()[at]

    def __contains__(self, what: object) -> bool:
        return what in self._type_of_script.values.get("!items", ())

    def __bool__(self) -> bool:
        return True

    def _held(self) -> list[Any]:
        kind = self._type_of_script
        if "!container" not in kind.values:
            raise TypeError(f"'{self.original_name}' is no container")
        return [getattr(self, name) for name in kind.values["!items"]]

    def keys(self) -> Iterable[str]:
        """The names of a dict of modules."""
        self._held()  # or this is none
        return list(self._type_of_script.values["!items"])

    def values(self) -> Any:
        """The modules of a dict."""
        return self._held()

    def items(self) -> list[tuple[str, Any]]:
        """The names and modules of a dict."""
        return list(zip(self.keys(), self.values(), strict=True))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._type_of_script.methods})


class _Marked:
    """A method that is compiled when the module is made."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.__doc__ = fn.__doc__

    def __get__(self, of: Any, owner: type) -> Any:
        if of is None:
            return self.fn
        if "_type_of_script" not in of.__dict__:
            raise RuntimeError(
                f"the method {self.fn.__name__!r} is called before the module is made: it is "
                "compiled after __init__"
            )
        return of._method(self.fn.__name__)


def script_method(fn: Callable[..., Any]) -> _Marked:
    """Compile a method of a `ScriptModule`, when an object of the class has been made.

    >>> import flambeau as fb
    >>> class Twice(fb.jit.ScriptModule):
    ...     @fb.jit.script_method
    ...     def forward(self, x):
    ...         return x + x
    >>> Twice()(fb.ones(1))
    tensor([2.])
    """
    return _Marked(fn)


def _finish(module: ScriptModule) -> None:
    """Compile the methods of an object of an older class."""
    if "_type_of_script" in module.__dict__:
        return
    for name, child in list(module._modules.items()):
        if child is not None and not isinstance(child, ScriptModule):
            module._modules[name] = script_module(child)
    kind = _type_of(module, script=True)
    module.__dict__["_type_of_script"] = kind
    for cls in reversed(type(module).__mro__):
        for name, value in vars(cls).items():
            if isinstance(value, _Marked):
                kind.methods[name] = bound_method(kind, value.fn, name, cls)
    _compile_stubs(module, module.__dict__.get("_stubs", {}))
    for method in list(kind.methods.values()):
        method.compile()


def _compile_stubs(module: ScriptModule, found: Mapping[str, Any]) -> None:
    kind = module._type_of_script
    for name, declaration in found.items():
        declaration.self_type = kind
        declaration.owner = type(module)
        made = ScriptFunction(name, f"{kind.name}.{name}", lambda given=declaration: given)
        made.owner = kind
        kind.methods[name] = made
    for name in found:
        kind.methods[name].compile()


_SHARED: dict[Any, ClassType] = {}
_MANGLED: collections.Counter[str] = collections.Counter()


def script_module(module: nn.Module) -> RecursiveScriptModule:
    """The scripted form of a module; its parts become scripted modules too.

    Raises:
        CompilationError: `forward`, or something it calls, is no TorchScript.
    """
    return _script(module, {})


def _script(module: nn.Module, memo: dict[int, Any]) -> Any:
    if isinstance(module, ScriptModule):
        return module
    if id(module) in memo:
        return memo[id(module)]
    if hasattr(module, "__prepare_scriptable__"):
        module = module.__prepare_scriptable__()
    made = RecursiveScriptModule.__new__(RecursiveScriptModule)
    nn.Module.__init__(made)
    memo[id(module)] = made
    made.__dict__["_attribute_types"] = {}
    made.__dict__["_stubs"] = {}
    made.__dict__["training"] = module.training
    made._parameters.update(module._parameters)
    made._buffers.update(module._buffers)
    made._non_persistent_buffers_set.update(getattr(module, "_non_persistent_buffers_set", ()))
    ignored = getattr(module, "__jit_ignored_attributes__", ())
    for name, child in module._modules.items():
        if name not in ignored:
            made._modules[name] = None if child is None else _script(child, memo)
    kind = _type_of(module, made._modules)
    made.__dict__["_type_of_script"] = kind
    for name in kind.attributes:
        if name in ("training",) or name in made._parameters or name in made._buffers:
            continue
        if name not in made._modules and name not in made.__dict__:
            made.__dict__[name] = _copied(getattr(module, name), kind.attributes[name])
    _compile_entries(module, kind)
    return made


def traced_shell(module: nn.Module, cls: type = RecursiveScriptModule) -> Any:
    """A module with the parameters, buffers and parts of another, and no methods yet."""
    return _shell(module, {}, cls)


def _shell(module: Any, memo: dict[int, Any], cls: type[Any]) -> Any:
    if isinstance(module, ScriptModule) and module.__dict__.get("_type_of_script") is not None:
        return module
    if id(module) in memo:
        return memo[id(module)]
    made = object.__new__(cls)
    nn.Module.__init__(made)
    memo[id(module)] = made
    made.__dict__["_attribute_types"] = {}
    made.__dict__["_stubs"] = {}
    made.__dict__["training"] = module.training
    made._parameters.update(module._parameters)
    made._buffers.update(module._buffers)
    made._non_persistent_buffers_set.update(getattr(module, "_non_persistent_buffers_set", ()))
    kind = ClassType(mangled(_name_of(type(module))), module=True, maker=type(module))
    for name, child in module._modules.items():
        held = None if child is None else _shell(child, memo, RecursiveScriptModule)
        made._modules[name] = held
    for held in (module._parameters, module._buffers):
        for name, tensor in held.items():
            kind.attributes[name] = T.NONE if tensor is None else T.TENSOR
    for name, child in made._modules.items():
        kind.attributes[name] = T.NONE if child is None else child._type_of_script
    kind.attributes["training"] = T.BOOL
    kind.parameters.update(module._parameters)
    kind.buffers.update(module._buffers)
    kind.values["!modules"] = tuple(made._modules)
    kind.values["!compiled"] = True
    made.__dict__["_type_of_script"] = kind
    return made


def _copied(value: object, kind: Type) -> Any:
    cast = compiler.execute.cast

    try:
        return cast(value, kind)
    except TypeError:
        return value


def _compile_entries(module: Module, kind: ClassType) -> None:
    """Compile `forward` and what is exported."""
    if kind.values.get("!compiled"):
        return
    kind.values["!compiled"] = True
    cls = type(module)
    entries = []
    forward = getattr(cls, "forward", None)
    own = getattr(forward, "__module__", "") or ""
    unwritten = forward is nn.Module.forward or getattr(forward, "__name__", "") != "forward"
    container = isinstance(module, tuple(_CONTAINERS)) and not isinstance(module, nn.Sequential)
    if forward is not None and not unwritten and not _decorators.is_ignored(forward):
        if not (container and own.startswith("flambeau.nn")):
            entries.append("forward")
    for name in dir(cls):
        value = getattr(cls, name, None)
        if inspect.isfunction(value) and _decorators.is_exported(value):
            entries.append(name)
    try:
        for name in entries:
            method = kind.method(name)
            if method is not None:
                method.compile()
    except Exception:
        kind.values.pop("!compiled")
        kind.methods.clear()
        raise


def _name_of(cls: type) -> str:
    name = _annotations.qualified_name(cls)
    if cls.__module__.startswith("flambeau.nn") and name.count(".") < 5:
        return name
    return name


def _type_of(
    module: Module, children: Mapping[str, Any] | None = None, script: bool = False
) -> ClassType:
    """The type of a module: what it holds, and of which types that is."""
    cls = type(module)
    held: Mapping[str, Any] = module._modules if children is None else children
    attributes: dict[str, Type] = {}
    failed: dict[str, str] = {}
    constants: dict[str, Any] = {}
    values: dict[str, Any] = {}
    hints = _hints(cls)
    noted = dict(getattr(module, "_attribute_types", {}))
    ignored = set(getattr(module, "__jit_ignored_attributes__", ()))
    for name, parameter in module._parameters.items():
        attributes[name] = T.TENSOR if parameter is not None else T.NONE
    for name, buffer in module._buffers.items():
        attributes[name] = T.TENSOR if buffer is not None else T.NONE
    for name in (*module._parameters, *module._buffers):
        hint = hints.get(name)
        if hint is not None and _is_optional(hint) and name not in module._parameters:
            attributes[name] = T.optional(T.TENSOR) if attributes[name] is T.TENSOR else T.NONE
            attributes[name] = (
                T.TENSOR if _own(cls) and attributes[name] is not T.NONE else attributes[name]
            )
    for name, child in held.items():
        if child is None:
            attributes[name] = T.NONE
            continue
        kind = child._type_of_script
        hint = hints.get(name)
        if isinstance(hint, type) and hasattr(hint, "__torch_script_interface__"):
            kind = _annotations.of_object(hint)
        attributes[name] = kind
    attributes["training"] = T.BOOL
    fixed = set(getattr(module, "__constants__", ())) | {
        name for name, hint in hints.items() if _is_final(hint)
    }
    for name in _names(module, cls):
        if name in attributes or name in ignored:
            continue
        try:
            value = _decorators.plain(getattr(module, name))
        except Exception:  # a property of the program's that has no value now is no attribute
            continue
        if name in fixed or (_own(cls) and _is_simple(value)):
            constants[name] = tuple(value) if isinstance(value, fb.Size) else value
            continue
        if (
            script
            and name not in noted
            and not isinstance(value, (fb.Tensor,))
            and _callable(value)
        ):
            values[name] = value
            continue
        if _callable(value):
            values[name] = value
            continue
        hint = noted.get(name, hints.get(name))
        try:
            attributes[name] = _attribute_type(cls, value, hint)
        except (_annotations.AnnotationError, RuntimeError, TypeError) as error:
            failed[name] = (
                f"(This attribute exists on the Python module, but we failed to convert Python "
                f"type: '{type(value).__name__}' to a TorchScript type. {error})"
            )
    container = next((what for c, what in _CONTAINERS.items() if isinstance(module, c)), "")
    items = tuple(held) if not isinstance(module, (nn.ParameterList, nn.ParameterDict)) else ()
    if isinstance(module, (nn.ParameterList, nn.ParameterDict)):
        items = tuple(module._parameters)
    key = (
        cls,
        tuple(attributes.items()),
        repr(sorted(constants.items(), key=lambda pair: pair[0])),
        tuple((name, id(value)) for name, value in values.items()),
        tuple(module._parameters),
        tuple(module._buffers),
    )
    if not script and (found := _SHARED.get(key)) is not None:
        return found
    kind = ClassType(mangled(_name_of(cls)), module=True, maker=cls)
    kind.attributes.update(attributes)
    kind.parameters.update(module._parameters)
    kind.buffers.update(module._buffers)
    kind.constants.update(constants)
    kind.values.update(values)
    kind.values["!failed"] = failed
    kind.values["!modules"] = tuple(held)
    if container:
        kind.values["!container"] = container
        kind.values["!items"] = items
    unused = set(getattr(module, "__jit_unused_properties__", ()))
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property) and name not in _BASE and name not in unused:
            if value.fget is not None and not _decorators.is_ignored(value.fget):
                if name not in attributes and name not in constants:
                    kind.properties[name] = name
    kind.compiler = _compiler(module, cls, kind)
    if not script:
        _SHARED[key] = kind
        kind.values["!kept"] = list(values.values())  # their identity is part of the key
    return kind


def mangled(name: str) -> str:
    """A name that no other type has."""
    count = _MANGLED[name]
    _MANGLED[name] += 1
    if not count:
        return name
    head, _, tail = name.rpartition(".")
    return f"{head}.___torch_mangle_{count - 1}.{tail}"


def unmangled(name: str) -> str:
    """The name that a type would have if no other had it."""
    return re.sub(r"\.___torch_mangle_\d+", "", name)


def _own(cls: type) -> bool:
    return cls.__module__.startswith("flambeau.nn")


def _is_simple(value: object | None) -> bool:
    if isinstance(value, (tuple, list)) and not isinstance(value, list):
        return all(map(_is_simple, value))
    return isinstance(value, _SIMPLE)


def _callable(value: object) -> bool:
    return (
        isinstance(value, ScriptFunction)
        or inspect.isroutine(value)
        or isinstance(value, (type, ScriptMethod))
    )


def _names(module: Module, cls: type) -> list[str]:
    """The names of what a module holds besides parameters, buffers and modules."""
    found = [
        name
        for name, value in vars(module).items()
        if name not in _STATE and (name not in _BASE or not callable(value))
    ]
    known = set(found)
    for owner in cls.__mro__:
        if owner in (nn.Module, ScriptModule, RecursiveScriptModule, object):
            continue
        for name, value in vars(owner).items():
            if name in known or name in _BASE or name.startswith("__"):
                continue
            if isinstance(value, (property, classmethod, _Marked)) or inspect.isfunction(value):
                continue
            known.add(name)
            found.append(name)
    skip = {"_stubs", "_bound_methods", "_type_of_script", "_is_full_backward_hook"}
    skip |= {"_abc_impl", "_attribute_types"}
    return [name for name in found if name not in skip]


def _hints(cls: type) -> dict[str, Any]:
    """The annotations of a class and those above it.

    Those of this library's layers are for type checkers, and count for these layers alone: what a
    program derives from one has the types of its values.
    """
    found: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        if owner in (nn.Module, ScriptModule, object):
            continue
        if _own(owner) and not _own(cls):
            continue
        hints = vars(owner).get("__annotations__", {})
        for name, hint in hints.items():
            if isinstance(hint, str):
                module = inspect.getmodule(owner)
                try:
                    hint = eval(hint, vars(module) if module else {}, dict(vars(owner)))
                except Exception:  # a name that is there for type checkers alone
                    continue
            found[name] = hint
    return found


def _is_optional(hint: object) -> bool:
    return type(None) in typing.get_args(hint)


def _is_final(hint: object) -> bool:
    return hint is typing.Final or typing.get_origin(hint) is typing.Final


def _attribute_type(cls: type, value: object, hint: object | None) -> Type:
    if hint is not None:
        resolver = None
        if isinstance(hint, str):
            forward = getattr(cls, "forward", None)
            resolver = of_function(forward) if inspect.isfunction(forward) else Resolver()
        try:
            return _annotations.of_object(hint, resolver)
        except _annotations.AnnotationError:
            if not _own(cls):
                raise
    return _annotations.of_value(value)


def _compiler(module: Module, cls: type, kind: ClassType) -> Callable[[str], ScriptFunction | None]:
    """What compiles a method when it is first called."""
    replaced = {name: value for name, value in vars(module).items() if inspect.ismethod(value)}

    def compile_method(name: str) -> ScriptFunction | None:
        if name.startswith("!") or name in kind.attributes:
            return None
        if name in kind.properties:
            found = inspect.getattr_static(cls, name).fget
        elif name in replaced:
            found = replaced[name].__func__
        else:
            try:
                found = inspect.getattr_static(cls, name)
            except AttributeError:  # a part of what the text of a layer has instead of Python
                owner = next(filter(_own, cls.__mro__), cls)
                made = compiler.layers.declaration_for(kind, owner, name, module)
                if made is not None:
                    kind.methods[name] = made
                return made
        if isinstance(found, staticmethod):
            kind.values[name] = found.__func__
            return None
        if not inspect.isfunction(found):
            return None
        owner = next((c for c in cls.__mro__ if name in vars(c)), cls)
        if owner is nn.Module:
            return None
        if _decorators.is_ignored(found):
            kind.values[name] = found
            return None
        declaration_for = compiler.layers.declaration_for

        made = declaration_for(kind, owner, name, module)
        if made is None:
            made = bound_method(kind, found, name, owner)
        kind.methods[name] = made
        return made

    return compile_method
