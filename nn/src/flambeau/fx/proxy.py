"""`Proxy`: what a traced program computes with, and the base of tracers."""

from __future__ import annotations

import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.fx._operators import INPLACE, OPERATORS
from flambeau.fx.graph import Graph
from flambeau.fx.node import Argument, BaseArgumentTypes, Node, Target, map_aggregate
from flambeau.nn import Module
from flambeau.overrides import takes_as_annotated

if TYPE_CHECKING:
    from types import FrameType

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """The program asks for what only values could tell, such as the way that an ``if`` takes."""


class Scope:
    """The submodule that is being traced."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


@contextmanager
def ScopeContextManager(scope: Scope, current_scope: Scope) -> Iterator[Scope]:
    """A block within a submodule."""
    before = Scope(scope.module_path, scope.module_type)
    scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
    try:
        yield scope
    finally:
        scope.module_path, scope.module_type = before.module_path, before.module_type


class TracerBase:
    """What makes nodes of the operations on proxies; subclasses say how."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Add a node to the graph; a subclass may check or note something here."""
        if kind == "call_function" and self.check_mutable_operations:
            _refuse_writes(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        stack = getattr(self, "module_stack", None)
        if stack:
            node.meta["nn_module_stack"] = OrderedDict(stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """What stands for the result of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node whose arguments are what the program gives, and let a proxy stand for it."""
        made_args = tuple(self.create_arg(a) for a in args)
        made_kwargs = {k: self.create_arg(v) for k, v in kwargs.items()}
        node = self.create_node(kind, target, made_args, made_kwargs, name, type_expr)
        made = self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)
        if self.record_stack_traces and made.node.stack_trace is None:
            made.node.stack_trace = _stack_trace()
        return made

    def create_arg(self, a: Any) -> Argument:
        """A value of the program as the argument of a node: its node, for a proxy.

        Raises:
            NotImplementedError: a value of this type cannot stand in a graph.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            items = [self.create_arg(x) for x in a]
            return self.create_node("call_function", type(a), tuple(items), {})
        if isinstance(a, tuple | list):
            return type(a)([self.create_arg(x) for x in a])
        if isinstance(a, dict):
            made = {}
            for k, v in a.items():
                key = self.create_arg(k)

                def refuse(x: Any, key: object = key) -> Proxy:
                    if isinstance(x, Node):
                        raise RuntimeError(
                            f"Keys for dictionaries used as an argument cannot contain a Node. "
                            f"Got key: {key}"
                        )
                    return x

                map_aggregate(key, refuse)
                made[key] = self.create_arg(v)
            return made
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if a is None or a is ... or isinstance(a, (*BaseArgumentTypes, *_PLAIN)):
            return a
        if callable(a) and hasattr(a, "__name__"):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a proxy, for ``if`` and the like.

        Raises:
            TraceError: always, unless a subclass knows better.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The items of a proxy; of one that is unpacked, as many as the statement wants.

        Raises:
            TraceError: the number is not known.
        """
        wanted = _unpacked(sys._getframe(2))
        if wanted:
            return iter([operator.getitem(obj, i) for i in range(wanted)])  # type: ignore[index]
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors"
        )

    def keys(self, obj: Proxy) -> Proxy:
        """What ``obj.keys()`` gives, which is wanted for ``**obj``."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph, for passes that write it with proxies.

    >>> import flambeau as fb
    >>> graph = fb.fx.Graph()
    >>> x = fb.fx.Proxy(graph.placeholder("x"))
    >>> _ = graph.output((x + 1).node)
    >>> fb.fx.GraphModule({}, graph)(2)
    3
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()


class Proxy:
    """Stands for a value that a traced program computes: what is done with it becomes a node.

    Its truth, its length and its items are not known while a program is traced.  A program that
    needs them is given them as ``concrete_args`` of `symbolic_trace`, or is traced with a `Tracer`
    that keeps the part as one node: a submodule by ``is_leaf_module``, a function by `wrap`.

    Raises:
        TraceError: its truth or its items are asked for.
        RuntimeError: its length is asked for.
    """

    @takes_as_annotated
    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        if not hasattr(node, "graph"):
            raise TypeError(f"Proxy(): argument 'node' must be Node, not {type(node).__name__}")
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Proxy:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        import copy

        new = object.__new__(type(self))
        for name, value in self.__dict__.items():
            if name not in ("node", "tracer"):
                new.__dict__[name] = copy.deepcopy(value, memo)
        new.__dict__.update(node=self.node, tracer=self.tracer)
        return new

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _asserts(sys._getframe(1)):
            self.tracer.create_proxy("call_function", fb._assert, (self, "assertion failed"), {})
            return True
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Proxy:
        """The keys, as the tracer gives them."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: object = None,
    ) -> Any:
        kwargs = kwargs or {}
        tracers: dict[Any, None] = {}

        def note(a: object) -> object:
            if isinstance(a, Proxy):
                tracers.setdefault(a.tracer)
            return a

        map_aggregate(args, note)
        map_aggregate(kwargs, note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace the "
                f"operations {func}"
            )
        (tracer,) = tracers
        name = getattr(func, "__name__", "")
        if isinstance(owner := getattr(func, "owner", None), Module):  # a method of a script
            return tracer.create_proxy("call_method", name, (owner, *args), kwargs)
        if getattr(fb.Tensor, name, None) is func:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", fb.overrides.original(func), args, kwargs)


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, and a node only when it is used."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override] - made when it is asked for
        """The node that gets the attribute."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter whose shape a traced program may ask for."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: fb.Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    def size(self, dim: int | None = None) -> Any:
        """The shape of the parameter, or one size."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """How many dimensions the parameter has."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """How many dimensions the parameter has."""
        return self.param.ndim

    def numel(self) -> int:
        """How many elements the parameter has."""
        return self.param.numel()


_PLAIN = (fb.layout, fb.memory_format, fb.Generator)


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*args: Any) -> Any:
        tracer = args[0].tracer
        return tracer.create_proxy("call_function", function, args, {})

    return apply


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: Proxy, left: object) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (left, self), {})

    return apply


for _name in OPERATORS:
    setattr(Proxy, f"__{_name.rstrip('_')}__", _operation(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign] - `==` makes a node
for _name in (
    "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul getitem"
).split():
    setattr(Proxy, f"__r{_name.rstrip('_')}__", _reflected(getattr(operator, _name)))


def _refuse_writes(target: object, args: object, kwargs: Any) -> None:
    name = getattr(target, "__name__", "")
    if name in INPLACE or (
        name.endswith("_") and not name.startswith("_") and name not in OPERATORS
    ):
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )
    if kwargs.get("out") is not None:
        raise RuntimeError(
            f"Tried to trace mutable operation {name} with an `out` argument. FX only supports "
            "functional code"
        )


def _stack_trace() -> str:
    import traceback

    own = __file__.rpartition("proxy.py")[0]
    frames = traceback.extract_stack()
    return "".join(traceback.format_list([f for f in frames if not f.filename.startswith(own)]))


def _instruction(frame: Any) -> Any:
    import dis

    instructions = dis.get_instructions(frame.f_code)
    return next((i for i in instructions if i.offset == frame.f_lasti), None)


def _unpacked(frame: object) -> int:
    """How many names a statement unpacks a value to; 0 if it does not."""
    found = _instruction(frame)
    return found.argval if found is not None and found.opname == "UNPACK_SEQUENCE" else 0


def _asserts(frame: FrameType) -> bool:
    import dis

    following = [i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti]
    return any(i.opname == "LOAD_ASSERTION_ERROR" for i in following[:2])
