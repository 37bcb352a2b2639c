"""`Tracer` and `symbolic_trace`: programs run with proxies, and become graphs."""

from __future__ import annotations

import builtins
import contextlib
import copy
import dataclasses
import functools
import inspect
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.fx._methods import METHODS, as_node, find_proxy
from flambeau.fx._trees import TreeCodeGen, over_leaves
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Argument
from flambeau.fx.proxy import (
    ParameterProxy,
    Proxy,
    Scope,
    ScopeContextManager,
    TracerBase,
)
from flambeau.nn import Module, Parameter, Sequential

if TYPE_CHECKING:
    from flambeau.fx.node import Node


__all__ = [
    "PH",
    "PHBase",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "symbolic_trace",
    "wrap",
]

_tracing = threading.local()


class PHBase:
    """What stands in ``concrete_args`` for an input that stays one."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class ProxyableClassMeta(type):
    """The metaclass of classes whose objects may be made in traced programs.

    Where an argument is a proxy, the call of the class is a node.

    >>> import flambeau as fb
    >>> class Pair(metaclass=fb.fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    ...     def add(self, other):
    ...         return Pair(self.left + other.left, self.right + other.right)
    >>> traced = fb.fx.symbolic_trace(lambda pair, x: pair.add(Pair(x, x)))
    >>> [node.op for node in traced.graph.nodes]
    ['placeholder', 'placeholder', 'call_function', 'call_method', 'output']
    """

    def __call__(cls, *args: object, **kwargs: object) -> object:
        if (proxy := find_proxy(args, kwargs)) is not None and is_fx_symbolic_tracing():
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def is_fx_symbolic_tracing() -> bool:
    """Whether this thread traces a program now."""
    return getattr(_tracing, "depth", 0) > 0


_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
"""The namespaces in which functions are kept as one node, with the functions' names."""


def wrap(fn_or_name: str | Callable[..., Any]) -> Callable[..., Any] | str:
    """Keep calls of a function as one node: it is not looked into when programs are traced.

    To be called at the top level of the module that calls the function, with its name, or as a
    decorator.

    Raises:
        RuntimeError: neither a function nor a name.
        NotImplementedError: not at the top level of a module.

    >>> import flambeau as fb
    >>> namespace = {"fb": fb}
    >>> exec('''
    ... fb.fx.wrap("len")
    ... def f(x): return x / len(x)
    ... ''', namespace)
    >>> print(fb.fx.symbolic_trace(namespace["f"]).graph)
    graph():
        %x : [num_users=2] = placeholder[target=x]
        %len_1 : [num_users=1] = call_function[target=builtins.len](args = (%x,), kwargs = {})
        %truediv : [num_users=1] = call_function[target=operator.truediv](args = (%x, %len_1), \
kwargs = {})
        return truediv
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    caller = sys._getframe(1)
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


class _Patches:
    """Attributes and entries that are other ones for a while."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: set[int] = set()

    def item(self, namespace: dict[str, Any], name: str, value: Callable[..., Any]) -> None:
        if name in namespace:
            self._undo.append(functools.partial(namespace.__setitem__, name, namespace[name]))
        else:
            self._undo.append(functools.partial(namespace.__delitem__, name))
        namespace[name] = value

    def attribute(self, owner: object, name: str, value: object) -> None:
        if name in vars(owner):
            self._undo.append(functools.partial(setattr, owner, name, vars(owner)[name]))
        else:  # inherited
            self._undo.append(functools.partial(delattr, owner, name))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


class Tracer(TracerBase):
    """Runs a module's ``forward``, or a function, with proxies, and notes what they are used for.

    Subclasses decide which submodules stay one node (`is_leaf_module`), and what nodes and
    arguments are made.

    Args:
        autowrap_modules: modules of Python whose functions stay one node each.
        autowrap_functions: further such functions.
        param_shapes_constant: shapes of parameters are numbers, also where a program branches on
            them.

    >>> import flambeau as fb
    >>> class Whole(fb.fx.Tracer):
    ...     def is_leaf_module(self, module, path):
    ...         return False
    >>> layer = fb.nn.ReLU()
    >>> print(Whole().trace(fb.nn.Sequential(layer)))
    graph():
        %input_1 : [num_users=1] = placeholder[target=input]
        %relu : [num_users=1] = call_function[target=torch.nn.functional.relu](args = (%input_1, \
False), kwargs = {})
        return relu
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrapped = {
            id(value): value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrapped.update((id(f), f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root: Any = None
        self.tensor_attrs: dict[Any, str] = {}
        self._qualname_counter: dict[str, int] = {}
        self.scope = Scope("", None)
        self.module_stack: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self.num_calls: dict[str, int] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a submodule are one node: by default those of `flambeau.nn`."""
        return type(m).__module__.startswith("flambeau.nn") and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of a submodule.

        Raises:
            NameError: it is none of the root's.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((n for n, p in self.root.named_modules() if p is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(
        self,
        m: Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Proxy:
        """What a call of a submodule gives: a proxy, or the result of tracing its ``forward``."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            number = self.num_calls.get(path, 0)
            self.num_calls[path] = number + 1
            key = f"{path}@{number}" if number else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                del self.module_stack[key]

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module gives: a proxy, for a parameter."""
        if isinstance(attr_val, Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, fb.Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        for name, value in named:
            if value is attr_val:
                if name not in parameter_proxy_cache:

                    def of_parameter(node: Node, name: str = name) -> Proxy:
                        return ParameterProxy(self, node, name, attr_val)

                    make = of_parameter if self.param_shapes_constant else None
                    parameter_proxy_cache[name] = self.create_proxy(
                        "get_attr", name, (), {}, proxy_factory_fn=make
                    )
                return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a: Any) -> Argument:
        """A value of the program as the argument of a node; a tensor becomes an attribute."""
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if p is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, fb.Tensor):
            for name, b in self.root.named_buffers():
                if b is a:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, Module):
            for name, m in self.root.named_modules():
                if m is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, fb.Tensor):
            name = self.tensor_attrs.get(a)
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if callable(a) and not isinstance(a, Proxy) and hasattr(a, "__name__"):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the root has no attribute of."""
        number = self._qualname_counter.get(prefix, 0)
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number + 1
        return f"{prefix}{number}"

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Inputs for the parameters of a function, as the arguments to call it with.

        Raises:
            RuntimeError: a method has no ``self``.
        """
        function = inspect.unwrap(root_fn)
        code: CodeType = function.__code__
        names = list(code.co_varnames)
        total = code.co_argcount + code.co_kwonlyargcount
        begin = 0
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            begin = 1
            args.append(self.root)
        parameters = inspect.signature(function).parameters
        concrete = self._named(concrete_args, names[begin:total])
        if not all(map(fb.utils._pytree.tree_is_leaf, concrete.values())):
            if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
                raise NotImplementedError(
                    f"concrete_args of {function.__name__}(): containers beside *args or **kwargs "
                    "are not taken apart; bind the argument with functools.partial instead"
                )
            return self._leaves(_by_place(root_fn, function), args, names[begin:total], concrete)
        for name in names[begin:total]:
            default = parameters[name].default
            args.append(self._input(name, default, concrete, function))
        at = total
        if code.co_flags & inspect.CO_VARARGS:
            args.append(self._star(f"*{names[at]}"))
            at += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            args.append(self._star(f"**{names[at]}"))
        return _by_place(root_fn, function), args

    @staticmethod
    def _named(
        concrete: dict[str, Any] | tuple[Any, ...] | None, names: list[str]
    ) -> dict[str, Any]:
        if isinstance(concrete, tuple):
            if len(concrete) != len(names):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete)} concrete "
                    "arguments"
                )
            return dict(zip(names, concrete, strict=True))
        return dict(concrete or {})

    def _input(
        self, name: str, default: object, concrete: dict[str, Any], function: Callable[..., Any]
    ) -> Any:
        given = () if default is inspect.Parameter.empty else (default,)
        kind = _annotation(function, name)
        if name not in concrete or concrete[name] is PH:
            return self.create_proxy("placeholder", name, given, {}, type_expr=kind)
        return self._specialised(name, f"{name}_1", given, concrete[name])

    def _leaves(
        self,
        function: Callable[..., object],
        args: list[object],
        names: list[str],
        concrete: dict[str, Any],
    ) -> tuple[Callable[..., object], list[object]]:
        """A function whose inputs are the leaves of its arguments, and these."""
        trees = fb.utils._pytree
        values = [concrete.get(name, PH) for name in names]
        self.graph.set_codegen(codegen := TreeCodeGen(names, trees.tree_structure(values)))
        before = len(args)
        for name, value in zip(names, values, strict=True):
            if name not in concrete:
                args.append(self._input(name, inspect.Parameter.empty, concrete, function))
                continue
            for at, leaf in enumerate(trees.tree_leaves(value), 1):
                if isinstance(leaf, PHBase):
                    args.append(self.create_proxy("placeholder", f"{name}_{at}", (), {}))
                else:
                    args.append(self._specialised(name, f"{name}_{at}", (), leaf))
        return over_leaves(function, before, codegen), args

    def _specialised(
        self, name: str, place: str, given: tuple[Any, ...], value: object | None
    ) -> object:
        """A value that an input has to have; the graph looks at it."""
        proxy = self.create_proxy("placeholder", place, given, {})
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
        elif isinstance(value, bool | int | float):
            self.create_proxy("call_function", fb._assert, (proxy == value, message), {})
        else:
            fb.overrides.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs you "
                "specialized the function with."
            )
        return value

    def _star(self, name: str) -> Proxy:
        return self.create_proxy("placeholder", name, (), {})

    def trace(
        self,
        root: Module | Callable[..., Any],
        concrete_args: dict[str, Any] | None = None,
    ) -> Graph:
        """The graph of a module or a function.

        Args:
            concrete_args: values for parameters that are not to be inputs, but are as the program
                sees them; the graph checks that it is called with the same.

        Raises:
            TraceError: the program asks for what only values could tell.
            AssertionError: `root` is neither a module nor a function.
        """
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            fn = getattr(type(root), self.traced_func_name)
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        else:
            self.root = Module()
            fn = root
            if isinstance(fn, MethodType):
                raise AssertionError("methods are not traced: give a module, or a function")
            self.submodule_paths = None
        self.graph = Graph(tracer_cls=type(self))
        self.num_calls = {}
        self.module_stack = OrderedDict()
        self.tensor_attrs = {
            value: f"{path}.{name}" if path else name
            for path, module in self.root.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, fb.Tensor)
        }
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        function = inspect.unwrap(fn)
        fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        with self._patched(function):
            result = self.create_arg(fn(*args))
        kind = _annotation(function, "return")
        self.create_node("output", "output", (result,), {}, type_expr=kind)
        self.submodule_paths = None
        return self.graph

    @contextlib.contextmanager
    def _patched(self, fn: Callable[..., Any]) -> Iterator[None]:
        """A block in which modules, functions and what is wrapped make nodes, on this thread."""
        owner = threading.get_ident()
        cache: dict[str, Any] = {}
        patches = _Patches()
        plain_call, plain_getattr = Module.__call__, Module.__getattr__
        with contextlib.ExitStack() as namespaces:
            seen: set[int] = set()

            def look_at(function: Callable[..., Any]) -> None:
                """See to the functions that a program has in its own namespace."""
                namespace = getattr(function, "__globals__", None)
                if namespace is not None and id(namespace) not in seen:
                    seen.add(id(namespace))
                    namespaces.enter_context(fb.overrides.offering_calls(namespace))
                    self._autowrap(patches, namespace)

            def call(module: Module, *args: object, **kwargs: object) -> Any:
                if threading.get_ident() != owner:
                    return plain_call(module, *args, **kwargs)

                def forward(*args: object, **kwargs: object) -> Any:
                    look_at(inspect.unwrap(getattr(module.forward, "__func__", module.forward)))
                    return plain_call(module, *args, **kwargs)

                return self.call_module(module, forward, args, kwargs)

            def get(module: Module, name: str) -> object:
                value = plain_getattr(module, name)
                if threading.get_ident() != owner:
                    return value
                return self.getattr(name, value, cache)

            namespaces.callback(patches.undo)
            patches.attribute(Module, "__call__", call)
            patches.attribute(Module, "__getattr__", get)
            for name in METHODS:
                patches.attribute(fb.Tensor, name, as_node(getattr(fb.Tensor, name), name))
            look_at(fn)
            for module in self._autowrap_search:
                self._autowrap(patches, vars(module))
            for (_, name), namespace in list(_wrapped.items()):
                found = namespace.get(name, getattr(builtins, name, None))
                if found is not None:
                    patches.item(namespace, name, _keeping(found))
            _tracing.depth = getattr(_tracing, "depth", 0) + 1
            namespaces.callback(_left_tracing)
            yield

    def _autowrap(self, patches: _Patches, namespace: dict[str, Any]) -> None:
        for name, value in list(namespace.items()):
            if not name.startswith("_") and id(value) in self._autowrapped:
                patches.item(namespace, name, _keeping(value))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        new = type(self).__new__(type(self))
        for name, value in vars(self).items():
            if name == "_autowrap_search":
                value = list(value)
            elif name != "_autowrapped":
                value = copy.deepcopy(value, memo)
            vars(new)[name] = value
        return new


def _left_tracing() -> None:
    _tracing.depth -= 1


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls with a proxy are one node."""

    @functools.wraps(function)
    def kept(*args: object, **kwargs: object) -> object:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return kept


def _by_place(called: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes every argument by place, also ``*args`` and ``**kwargs``, as one each.

    Args:
        called: what is to be called, which may be a decorated form of `function`.

    Raises:
        NotImplementedError: it is, and `function` has ``*args`` or ``**kwargs``.
    """
    code: CodeType = function.__code__
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if not (code.co_kwonlyargcount or code.co_flags & stars):
        return called
    if called is not function:
        if code.co_flags & stars:
            raise NotImplementedError("*args and **kwargs of a decorated function are not traced")
        count, names = code.co_argcount, code.co_varnames

        @functools.wraps(called)
        def by_name(*args: object) -> object:
            return called(*args[:count], **dict(zip(names[count:], args[count:], strict=False)))

        return by_name
    # The local variables stand in this order: by place, by name, *args, **kwargs.
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS)
    count += bool(code.co_flags & inspect.CO_VARKEYWORDS)
    flat = code.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~stars,
    )
    made = FunctionType(flat, function.__globals__, function.__name__, None, function.__closure__)
    made.__annotations__ = function.__annotations__
    return made


def _annotation(function: Callable[..., Any], name: str) -> Any:
    """The type that a function gives a parameter or its result, if any.

    Those of flambeau's own modules say no more than that they take what PyTorch's do.
    """
    if (function.__module__ or "").startswith("flambeau."):
        return None
    found = getattr(function, "__annotations__", {}).get(name)
    if isinstance(found, str):  # `from __future__ import annotations`
        with contextlib.suppress(Exception):
            found = inspect.get_annotations(function, eval_str=True).get(name)
    return found


def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A module or a function as a `GraphModule`: its operations as a graph that can be changed.

    The program runs once with proxies in place of its inputs.  Modules of `flambeau.nn` stay one
    node each; functions and methods are noted; what does not depend on an input is computed while
    it is traced.  An ``if`` on a value, and a loop over one, is refused.

    Args:
        concrete_args: values for parameters that decide what the program does, such as flags.

    Raises:
        TraceError: the program asks for what only values could tell.

    >>> import flambeau as fb
    >>> traced = fb.fx.symbolic_trace(lambda x: (x + 1).relu())
    >>> print(traced.code.strip())
    def forward(self, x):
        add = x + 1;  x = None
        relu = add.relu();  add = None
        return relu
    >>> traced(fb.tensor([-2.0, 2.0]))
    tensor([0., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
