"""`Node`: one operation of a graph."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.fx._operators import INPLACE
from flambeau.fx.immutable_collections import immutable_dict, immutable_list
from flambeau.overrides import all_take_as_annotated

if TYPE_CHECKING:
    from flambeau.fx.graph import Graph

__all__ = [
    "Argument",
    "BaseArgumentTypes",
    "Node",
    "Target",
    "has_side_effect",
    "map_aggregate",
    "map_arg",
]

Target = Callable[..., Any] | str
Argument = Any
BaseArgumentTypes = (str, int, float, bool, complex, fb.dtype, fb.Tensor, fb.device)

OPS = (
    "placeholder",
    "call_method",
    "call_module",
    "call_function",
    "get_attr",
    "output",
    "root",
)
_side_effects: set[Any] = set()


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Note that calls of a function are to stay in a graph even if nothing uses their result.

    >>> import flambeau as fb
    >>> @fb.fx.has_side_effect
    ... def note(x): ...
    """
    _side_effects.add(fn)
    return fn


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """An argument with each node in it replaced by what `fn` makes of it.

    >>> import flambeau as fb
    >>> graph = fb.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> fb.fx.map_arg([x, 1], lambda n: n.name)
    ['x', 1]
    """
    if not callable(fn):
        raise AssertionError(f"torch.fx.map_arg(a, fn): fn must be a callable, got {type(fn)}")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Argument:
    """An argument with `fn` applied to what its tuples, lists, dictionaries and slices hold."""
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(
            map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn)
        )
    return fn(a)


class Node:
    """One operation: what is called with what, who uses the result, and what is known of it.

    ``op`` is one of:

    * ``placeholder``: an input, whose name is ``target``; ``args`` holds its default, if any
    * ``get_attr``: the attribute ``target`` of the module
    * ``call_function``: the function ``target``
    * ``call_module``: the submodule ``target``
    * ``call_method``: the method ``target`` of the first argument
    * ``output``: the result, ``args[0]``

    ``args`` and ``kwargs`` hold nodes where the call takes their results; assigning to them keeps
    ``users`` of all nodes true.  ``meta`` is for passes.

    >>> import flambeau as fb
    >>> traced = fb.fx.symbolic_trace(lambda x: x + 1)
    >>> x, add, out = traced.graph.nodes
    >>> add.op, add.args, list(add.users)
    ('call_function', (x, 1), [output])
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self
        self._next = self
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = immutable_dict()
        self._assign(args, kwargs)

    @property
    def next(self) -> Node:
        """The node behind this one; behind the last one, the root of the list."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first one, the root of the list."""
        return self._prev

    @property
    def args(self) -> tuple[Argument, ...]:
        """The arguments by place."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._assign(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._assign(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        return list(self._input_nodes)

    @property
    def stack_trace(self) -> str | None:
        """Where in the program the node comes from, if the tracer kept it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _assign(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            fb.overrides.warn("Trying to prepend a node to itself. This behavior has no effect.")
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move a node of the same graph behind this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace the argument at a place."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put an argument before the one at a place."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace the argument of a name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node wherever the arguments have `old_input`."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._assign(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node use another one; all, or those that `delete_user_cb` accepts.

        Returns:
            the users as they were.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                    "replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        users = list(self.users)
        replaced = []
        for user in users:
            if delete_user_cb is None or delete_user_cb(user):
                replaced.append(user)
                user.replace_input_with(self, replace_with)
        return replaced

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node is to stay though nothing uses it: inputs, outputs, writes, prints."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effects:
                return True
            name = getattr(self.target, "__name__", "")
            if impure_random and name in _DRAWING:
                return str(getattr(self.target, "__module__", "")).startswith("flambeau")
            return _writes(name) or "out" in self.kwargs
        if self.op == "call_method":
            return _writes(str(self.target))
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = owner.get_submodule(str(self.target))
            return bool(getattr(module, "_is_impure", False))
        return False

    def normalized_arguments(
        self,
        root: fb.nn.Module,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments by name where the called function's signature gives them one, or None."""
        from flambeau.fx.operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target,  # type: ignore[arg-type] - checked when the node was made
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, str(self.target), self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of a printed graph.

        Args:
            placeholder_names: a list that takes an input's name, instead of a line for it.
            maybe_return_typename: a list whose first item is set to the text of the result's type.
            include_tensor_metadata: no effect; shapes are in ``meta``.

        >>> import flambeau as fb
        >>> traced = fb.fx.symbolic_trace(lambda x: x.sum(0))
        >>> list(traced.graph.nodes)[1].format_node()
        '%sum_1 : [num_users=1] = call_method[target=sum](args = (%x, 0), kwargs = {})'
        """
        of_type = f"{type_name(self.type)} " if self.type else ""
        begin = f"%{self.name} : {of_type}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                kind = f": {type_name(self.type)}" if self.type else ""
                placeholder_names.append(f"%{self.target}{kind}")
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{begin}[target={self.target}]{default}"
        target = self._pretty_print_target(self.target)
        if self.op == "get_attr":
            return f"{begin}[target={target}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        args, kwargs = _shown(self.args), _shown(self.kwargs)
        return f"{begin}[target={target}](args = {args}, kwargs = {kwargs})"

    @staticmethod
    def _pretty_print_target(target: Target) -> str:
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) == "builtins":
            return f"builtins.{target.__name__}"
        if getattr(target, "__module__", None) == "_operator":
            return f"operator.{target.__name__}"
        return qualified_name(target)

    def __lt__(self, other: Node) -> bool:
        """Whether the node stands before another one of its graph."""
        return self is not other and any(n is other for n in _behind(self))

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    def __repr__(self) -> str:
        return self.name


_DRAWING = frozenset("bernoulli multinomial normal poisson rand randint randn randperm".split())


def _writes(name: str) -> bool:
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        return name in ("setitem", "delitem") or (name[:1] == "i" and name in INPLACE)
    return (name.endswith("_") and not name.endswith("__")) or name in ("setitem", "_assert")


def _behind(node: Node) -> Iterator[Node]:
    node = node._next
    while node.op != "root":
        yield node
        node = node._next


def _shown(a: Argument) -> str:
    """An argument as printed graphs have it: nodes with a percent sign, strings bare."""
    if isinstance(a, list):
        return f"[{', '.join(map(_shown, a))}]"
    if isinstance(a, tuple):
        return f"({', '.join(map(_shown, a))}{',' if len(a) == 1 else ''})"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in a.items()) + "}"
    return f"%{a}" if isinstance(a, Node) else str(a)


def type_name(t: Any) -> str:
    """A type as generated code and printed graphs write it."""
    if isinstance(t, str):
        return t
    if isinstance(t, type) and not isinstance(t, types.GenericAlias):
        if t.__module__ == "builtins":
            return t.__name__
        if t is fb.Tensor:
            return "torch.Tensor"
        return f"{t.__module__}.{t.__qualname__}".replace("flambeau.", "torch.", 1)
    return repr(t).replace("flambeau._tensor.tensor.Tensor", "torch.Tensor")


_PLACES = (
    ("torch", lambda: fb),
    ("torch.nn.functional", lambda: fb.nn.functional),
    ("torch.linalg", lambda: fb.linalg),
    ("torch.fft", lambda: fb.fft),
    ("torch.special", lambda: fb.special),
)
"""Where public functions are found, by the names that graphs print for them."""


def qualified_name(function: Callable[..., Any]) -> str:
    """The path under which generated code calls a function.

    Raises:
        RuntimeError: the function has no name at the top of a module.
    """
    name = getattr(function, "__name__", None) or type(function).__name__
    if getattr(builtins, name, None) is function:
        return name
    for place, namespace in _PLACES:
        if getattr(namespace(), name, None) == function:
            return f"{place}.{name}"
    module = inspect.getmodule(function)
    place = getattr(function, "__module__", None) or (module.__name__ if module else None)
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"{function.__objclass__.__module__}.{function.__objclass__.__name__}.{name}"
    if place is None:
        raise RuntimeError(f"Could not find the module of {function!r}")
    place = place.replace("flambeau.", "torch.", 1) if place.startswith("flambeau.") else place
    return f"{place}.{name}"


all_take_as_annotated(globals())
