"""`script` and what programs say to it."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.jit import _decorators
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend.annotations import Future
from flambeau.jit._frontend.function import ScriptFunction, declarations, scripted
from flambeau.jit._frontend.resolve import Resolver, frame_of, of_caller, seen_from
from flambeau.jit._frontend.values import FunctionRef
from flambeau.jit._parts import compiler
from flambeau.jit._tracing.state import tracing_now
from flambeau.jit._types import ClassType

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from flambeau.jit._modules import ScriptModule


V = TypeVar("V")


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """Compile a function, a class or a module: its source becomes a typed graph.

    A function becomes a `ScriptFunction`.  Arguments without an annotation are tensors.  A class
    stays what it is, and can be used in other scripted functions.  A module becomes a
    `RecursiveScriptModule` with the same parameters, whose `forward`, and what that calls, are
    compiled.  `example_inputs` is accepted and not looked at: types come from annotations.

    Raises:
        CompilationError: the source is no TorchScript; says what and where.

    >>> import flambeau as fb
    >>> @fb.jit.script
    ... def clip(x, most: float = 1.0):
    ...     if bool(x.abs().max() > most):
    ...         x = x * (most / x.abs().max())
    ...     return x
    >>> clip(fb.tensor([1.0, 4.0]))
    tensor([0.2500, 1.0000])
    """
    if isinstance(obj, ScriptFunction):
        return obj
    if not _enabled():
        return obj
    nn = _nn()
    if nn is not None and isinstance(obj, nn.Module):
        _modules = compiler.modules

        if isinstance(obj, _modules.ScriptModule):
            return obj
        return _modules.script_module(obj)
    if isinstance(obj, type):
        with seen_from(frame_of(1 + _frames_up), {obj.__name__: obj}):
            return _class(obj)
    if isinstance(obj, (dict, list)):
        return obj.copy()
    obj = _decorators.plain(obj)
    if inspect.isfunction(obj) or inspect.ismethod(obj) or isinstance(obj, functools.partial):
        if isinstance(obj, functools.partial):
            raise RuntimeError("partial functions cannot be scripted: script the function itself")
        if inspect.ismethod(obj):
            raise RuntimeError(
                f"methods cannot be scripted by themselves: script the module that {obj} is of"
            )
        own = compiler.functional.scripted(obj)
        if isinstance(own, FunctionRef) and isinstance(own.function, ScriptFunction):
            own.function.compile()
            return own.function
        made = scripted(obj.__dict__.get("__original_fn", obj))
        with seen_from(frame_of(1 + _frames_up), {}):
            made.compile()
        made.__dict__["__wrapped__"] = obj
        return made
    if hasattr(obj, "__script_if_tracing_wrapper"):
        return script(obj.__original_fn)
    if callable(obj) or hasattr(type(obj), "__dict__"):
        _class(type(obj))
        return obj
    raise RuntimeError(f"a {type(obj).__name__} cannot be scripted")


def _enabled() -> bool:
    import os

    return os.environ.get("PYTORCH_JIT", "1") != "0"


def _nn() -> ModuleType | None:
    return sys.modules.get("flambeau.nn")


def _class(cls: type) -> type:
    nn = _nn()
    if nn is not None and issubclass(cls, nn.Module):
        raise RuntimeError(
            f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing "
            "an instance instead"
        )
    if hasattr(cls, "__torch_script_interface__"):
        return cls
    try:
        kind = _annotations.of_class(cls)
    except _annotations.AnnotationError as error:
        raise RuntimeError(str(error)) from None
    if isinstance(kind, ClassType):
        for method in list(kind.methods.values()):
            method.compile()
    return cls


class CompilationUnit:
    """Functions that a text defines.

    >>> import flambeau as fb
    >>> unit = fb.jit.CompilationUnit('''
    ... def triple(x):
    ...     return x * 3
    ... ''')
    >>> unit.triple(fb.ones(1))
    tensor([3.])
    """

    @takes_as_annotated
    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, ScriptFunction] = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang: str, rcb: object = None, _frames_up: int = 0) -> CompilationUnit:
        """Add the functions of a text; those that it calls may be in it, in any order.

        Raises:
            CompilationError: the text is no TorchScript.
        """
        outer = of_caller(_frames_up + 1)
        resolver = Resolver(*outer.scopes, scripted=self._lookup)
        found = declarations(lang, resolver)
        for name, declaration in found.items():
            self._functions[name] = ScriptFunction(
                name, declaration.qualified_name, lambda given=declaration: given
            )
        for name in found:
            self._functions[name].compile()
        return self

    def _lookup(self, name: str) -> FunctionRef | None:
        found = self._functions.get(name)
        return FunctionRef(found) if found is not None else None

    def find_function(self, name: str) -> ScriptFunction | None:
        """A function, or None."""
        return self._functions.get(name)

    def get_functions(self) -> list[ScriptFunction]:
        """All functions."""
        return list(self._functions.values())

    def __getattr__(self, name: str) -> ScriptFunction:
        found = self.__dict__.get("_functions", {}).get(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return found


def annotate(the_type: object, the_value: V) -> V:
    """Say of which type a value is: a scripted function takes it so, Python as it is.

    >>> import flambeau as fb
    >>> fb.jit.annotate(list[int], [])
    []
    """
    return the_value


def is_scripting() -> bool:
    """Whether this runs as a scripted function: in Python it is False, in such a function True.

    >>> import flambeau as fb
    >>> fb.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Whether this thread is in a trace now.

    >>> import flambeau as fb
    >>> fb.jit.is_tracing()
    False
    """
    return tracing_now()


class Attribute(typing.NamedTuple):
    """A value for an attribute of a `ScriptModule`, with its type.

    >>> import flambeau as fb
    >>> fb.jit.Attribute({}, dict[str, int]).type
    dict[str, int]
    """

    value: Any
    type: Any


def _unwrap_optional(x: V | None) -> V:
    """A value that is not None.

    Raises:
        AssertionError: it is.
    """
    assert x is not None, "Unwrapping null optional"
    return x


def fork(func: Callable[..., Any], *args: object, **kwargs: object) -> Future:
    """A call that may run beside others: it runs at once, and `wait` gives what it returned.

    >>> import flambeau as fb
    >>> future = fb.jit.fork(fb.mul, fb.ones(2), 3)
    >>> fb.jit.wait(future)
    tensor([3., 3.])
    """
    return Future(lambda: func(*args, **kwargs))


@takes_as_annotated
def wait(future: Future) -> Any:
    """What a call of `fork` returned; what it raised is raised.

    >>> import flambeau as fb
    >>> fb.jit.wait(fb.jit.fork(fb.neg, fb.ones(1)))
    tensor([-1.])
    """
    return future.wait()


def export_opnames(m: ScriptModule) -> list[str]:
    """The names of the ops that a scripted module or function runs, in order.

    >>> import flambeau as fb
    >>> fb.jit.export_opnames(fb.jit.script(lambda x: x + x))
    ['aten::add.Tensor']
    """
    graphs: list[Any] = [m.inlined_graph] if type(m) is ScriptFunction else []
    if not graphs:
        scripted_type = getattr(m, "__dict__", {}).get("_type_of_script")
        if scripted_type is None:
            raise TypeError(
                f"export_opnames(): a scripted function or module is needed, got {type(m).__name__}"
            )
        graphs = [method.inlined_graph for method in scripted_type.methods.values()]
    found = set()
    for graph in graphs:
        for node in graph.block.all_nodes():
            if node.schema is not None:
                dot = f".{node.schema.overload}" if node.schema.overload else ""
                found.add(node.schema.name + dot)
    return sorted(found)
