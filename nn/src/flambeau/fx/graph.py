"""`Graph`: the operations of a program in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.fx._codegen import CodeGen, PythonCode, TransformCode
from flambeau.fx._names import Namespace, snake_case
from flambeau.fx.node import Argument, Node, Target, map_arg
from flambeau.overrides import all_take_as_annotated

if TYPE_CHECKING:
    from flambeau.fx.graph_module import GraphModule
    from flambeau.fx.proxy import TracerBase
    from flambeau.nn import Module

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _Nodes:
    """The nodes of a graph in their order; the list may change while it is gone through."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self._graph = graph
        self._backwards = backwards

    def __len__(self) -> int:
        return self._graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        at = root
        while True:
            at = at._prev if self._backwards else at._next
            if at is root:
                return
            if not at._erased:
                yield at

    def __reversed__(self) -> Iterator[Node]:
        return iter(_Nodes(self._graph, not self._backwards))

    def __repr__(self) -> str:
        return repr(list(self))


class Graph:
    """The operations of a program, each after those whose results it uses.

    >>> import flambeau as fb
    >>> graph = fb.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(fb.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    >>> fb.fx.GraphModule(fb.nn.Module(), graph)(fb.tensor([-1.0, 1.0]))
    tensor([0., 1.])

    Args:
        owning_module: the module whose attributes and submodules the nodes name.
        tracer_cls: the class of the tracer that made the graph, which traces it again when a
            pickled `GraphModule` is loaded.
        tracer_extras: no effect; for the caller.
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type[TracerBase] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> GraphModule | None:
        """The module that the graph belongs to, if any."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: GraphModule | None) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _Nodes:
        """The nodes in their order; ``reversed`` goes from the last to the first."""
        return _Nodes(self)

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Add a node where nodes are inserted now, which is the end unless a block says otherwise.

        Raises:
            AssertionError: `op` is none that nodes have; an argument is a node of another graph.
        """
        if args is not None and not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")

        def check(node: Node) -> Node:
            if node.graph is not self:
                raise AssertionError(f"Node {node} is of another graph: copy it with node_copy")
            return node

        map_arg((args or (), kwargs or {}), check)
        unique = self._namespace.create_name(name or self._target_to_str(target), None)
        node = Node(self, unique, op, target, args or (), kwargs or {}, type_expr)
        self._namespace.rename(node, unique)
        for hook in getattr(self._owning_module, "_create_node_hooks", ()):
            hook(node)
        self._insert(node)
        self._len += 1
        return node

    @staticmethod
    def _target_to_str(target: Target | None) -> str:
        name = target.__name__ if callable(target) and hasattr(target, "__name__") else target
        name = name if isinstance(name, str) else type(target).__name__
        if len(name) > 4 and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def placeholder(self, name: str, type_expr: object = None, default_value: object = ...) -> Node:
        """Add an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """Add a node for an attribute of the module; UserWarning if it has none of that path."""
        if self._owning_module is not None and not _has_path(self._owning_module, qualified_name):
            fb.overrides.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer"
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
    ) -> Node:
        """Add a call of a submodule, given by its path; UserWarning if there is none."""
        if self._owning_module is not None and not _has_path(self._owning_module, module_name):
            fb.overrides.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule"
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: object = None) -> Node:
        """Add the output."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """Add a copy of another graph's node.

        Args:
            arg_transform: maps the nodes among its arguments to nodes of this graph.
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Add copies of all nodes of another graph but its output.

        Args:
            val_map: nodes of `g` that stand for nodes of this one already; the others are added.
            return_output_node: also give the output's node.

        Returns:
            what the output of `g` holds, in nodes of this graph; None if it has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        g = Graph(tracer_cls=self._tracer_cls)
        copied: dict[Node, Node] = {}
        output = g.graph_copy(self, copied, return_output_node=True)
        g._codegen = self._codegen
        if output is not None:
            result, old = output
            new = g.output(result, type_expr=old.type)
            new.meta = dict(old.meta)
            copied[old] = new
        memo[id(self)] = g
        return g

    def output_node(self) -> Node:
        """The output.

        Raises:
            AssertionError: there is none.
        """
        last = next(iter(self.nodes.__reversed__()), None)
        if last is None or last.op != "output":
            raise AssertionError("the graph has no output")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and with a target if it is given, in their order."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out.

        Raises:
            RuntimeError: another node uses its result.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            fb.overrides.warn(f"erase_node({to_erase}) on an already erased node")
            return
        if self._owning_module is not None:
            for hook in self._owning_module._erase_node_hooks:
                hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._assign((), {})

    def inserting_before(self, n: Node | None = None) -> AbstractContextManager[None]:
        """A block in which new nodes stand before a node; before all without one."""
        return self.inserting_after() if n is None else self._inserting(n, "before")

    def inserting_after(self, n: Node | None = None) -> AbstractContextManager[None]:
        """A block in which each new node stands right behind a node, before those made earlier."""
        return self._inserting(self._root if n is None else n, "after")

    def _inserting(self, n: Node, side: str) -> AbstractContextManager[None]:
        if n.graph is not self:
            raise AssertionError(f"Node to insert {side} is not in graph.")

        @contextmanager
        def block() -> Iterator[None]:
            outside = self._insert
            self._insert = n.prepend if side == "before" else n.append
            try:
                yield
            finally:
                self._insert = outside

        return block()

    def python_code(
        self, root_module: str, *, verbose: bool = False, **options: object
    ) -> PythonCode:
        """The graph as a function ``forward``.

        Args:
            root_module: the name that the code has for the module, ``"self"``.
            verbose: with comments that say where in the program the lines come from.
            options: no effect: strides, devices and colours are not shown.
        """
        return self._codegen._gen_python_code(self, root_module, Namespace(), verbose)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the code."""
        if not isinstance(codegen, CodeGen):
            raise TypeError(f"a codegen must be a CodeGen, not {type(codegen).__name__}")
        self._codegen = codegen

    @contextmanager
    def on_generate_code(
        self, make_transformer: Callable[[TransformCode | None], TransformCode]
    ) -> Iterator[None]:
        """A block in which the lines of the code pass through a function.

        Args:
            make_transformer: makes it from the one before, or None.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        try:
            yield
        finally:
            self._codegen._body_transformer = before

    def process_inputs(self, *args: object) -> Any:
        """The arguments of a call as the values of the inputs."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: object) -> Any:
        """The value of the output as the result of a call."""
        return self._codegen.process_outputs(out)

    def lint(self) -> None:
        """Check that the graph holds together.

        Raises:
            RuntimeError: a node is used before it is defined, or belongs to another graph; two
                have one name; a path leads nowhere.
        """
        seen_names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")

            def check(arg: Node, node: Node = node) -> Node:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was "
                        "used as an argument! If you are copying nodes from another graph, make "
                        "sure to use ``arg_transform`` on node_copy() to remap values"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
                return arg

            map_arg(node.args, check)
            map_arg(node.kwargs, check)
            seen.add(node)
            if node.name in seen_names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen_names.add(node.name)
            module = self._owning_module
            if module is not None and node.op in ("get_attr", "call_module"):
                self._lint_path(module, node)

    @staticmethod
    def _lint_path(module: Module, node: Node) -> None:
        path = str(node.target)
        if not _has_path(module, path):
            raise RuntimeError(f"Node {node} target {path} references nonexistent attribute")
        if node.op == "call_module":
            called = module
            for name in path.split("."):
                called = getattr(called, name)
            if not isinstance(called, fb.nn.Module):
                raise RuntimeError(
                    f"Node {node} target {path} does not reference an nn.Module, but "
                    f"{type(called).__qualname__}"
                )

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out the nodes that nothing uses, but for those that do more than compute a result.

        Args:
            is_impure_node: says which nodes do; by default `Node.is_impure`.

        Returns:
            whether there were any.

        >>> import flambeau as fb
        >>> def f(x):
        ...     y = x + 1
        ...     return x * 2
        >>> graph = fb.fx.symbolic_trace(f).graph
        >>> graph.eliminate_dead_code(), [n.name for n in graph.nodes]
        (True, ['x', 'mul', 'output'])
        """
        self.lint()
        is_impure = is_impure_node or Node.is_impure
        before = self._len
        for node in self.nodes.__reversed__():
            if not node.users and not is_impure(node):
                self.erase_node(node)
        return self._len < before

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[n.op, n.name, str(n.target), str(n.args), str(n.kwargs)] for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, ["-" * width for width in widths])
        for row in rows:
            print(
                "  ".join(
                    text.ljust(width) for text, width in zip(row, widths, strict=True)
                ).rstrip()
            )

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(str(node.format_node()) for node in self.nodes)])

    def __getstate__(self) -> tuple[Any, ...]:
        # A node holds its neighbours: pickle would descend once for every one of them.
        nodes = list(self.nodes)
        facts = [(n.name, n.op, n.target, n.args, n.kwargs, n.type, n.meta) for n in nodes]
        numbers = {n: i for i, n in enumerate(nodes)}
        facts = [
            (name, op, target, *map_arg((args, kwargs), lambda n: _Place(numbers[n])), kind, meta)
            for name, op, target, args, kwargs, kind, meta in facts
        ]
        return facts, self._tracer_cls, self._codegen

    def __setstate__(self, state: Any) -> None:
        from flambeau.fx.node import map_aggregate

        facts, tracer_cls, codegen = state
        self.__init__(tracer_cls=tracer_cls)
        self._codegen = codegen
        made: list[Node] = []
        for name, op, target, args, kwargs, kind, meta in facts:
            args, kwargs = map_aggregate(
                (args, kwargs), lambda a: made[a.number] if isinstance(a, _Place) else a
            )
            node = self.create_node(op, target, args, dict(kwargs), name, kind)
            node.meta = meta
            made.append(node)


class _Place:
    """Where a node stands, in the arguments of a pickled one."""

    def __init__(self, number: int) -> None:
        self.number = number


def _has_path(module: object, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(module, name):
            return False
        module = getattr(module, name)
    return True


all_take_as_annotated(globals())
