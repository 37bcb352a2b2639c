"""`Interpreter` runs a graph node by node; `Transformer` writes another one as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flambeau.fx._codegen import last_uses
from flambeau.fx._symbolic_trace import Tracer
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Argument, Node, Target, map_arg
from flambeau.fx.proxy import Proxy
from flambeau.nn import Module
from flambeau.overrides import all_take_as_annotated

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; subclasses change what a kind of node does.

    Args:
        module: a `GraphModule`, or a module for `graph`.
        garbage_collect_values: let go of a value once its last user has run.
        graph: runs instead of the module's own.

    >>> import flambeau as fb
    >>> class Loud(fb.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         print(target.__name__)
    ...         return super().call_function(target, args, kwargs)
    >>> Loud(fb.fx.symbolic_trace(lambda x: fb.relu(x) + 1)).run(fb.ones(1))
    relu
    add
    tensor([2.])
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module: Any = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = self.module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(self.graph)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """The result of the graph for these inputs.

        Args:
            initial_env: values of nodes, which are not run then.
            enable_io_processing: inputs and result pass through the graph's code generator.

        Raises:
            RuntimeError: there are fewer inputs than placeholders without a default.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(
                        f"While executing {node.format_node()}\nOriginal traceback:\n"
                        f"{node.stack_trace}"
                    )
                raise
            if self.garbage_collect_values:
                for unused in self.user_to_last_uses.get(node, ()):
                    self.env.pop(unused, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As `run`, with the inputs in a list that is emptied, so that they can be freed."""
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        env = dict(zip(placeholders, args_list, strict=False))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """The value of a node; the values of its arguments are in ``env``."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The next input, or its default; of ``*args`` all that are left."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the function gives."""
        if isinstance(target, str):
            raise AssertionError(f"a function is expected, got {target!r}")
        return target(*args, **kwargs)

    def call_method(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the method of the first argument gives."""
        first, *rest = args
        return getattr(first, str(target))(*rest, **kwargs)

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the submodule gives."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What the module has at a path.

        Raises:
            RuntimeError: nothing.
        """
        value = self.module
        names = target.split(".")
        for i, name in enumerate(names):
            if not hasattr(value, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(names[: i + 1])}")
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The arguments of a node, with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """An argument with values in place of nodes.

        Raises:
            RuntimeError: a node has no value yet.
        """

        def value(arg: Node) -> Any:
            if arg not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {arg}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[arg]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Runs a graph with proxies: what the methods do becomes a new graph.

    >>> import flambeau as fb
    >>> class Swap(fb.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(fb.cos if target == fb.sin else target, args, kwargs)
    >>> new = Swap(fb.fx.symbolic_trace(lambda x: fb.sin(x))).transform()
    >>> print(new.code.strip())
    def forward(self, x):
        cos = torch.cos(x);  x = None
        return cos
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Proxy:
        """A new input."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """A new node for the attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Proxy:
        """What calling the submodule with proxies gives, which is one node."""
        submodule = self.fetch_attr(str(target))
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Proxy:
        """A new node for the call."""
        if not callable(target):
            raise AssertionError(f"a function is expected, got {target!r}")
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new graph with the old module's attributes."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            made = map_proxies(result)
            new = self.new_graph.output(made, old.type)
            new.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)


def map_proxies(a: object) -> Any:
    """A value with nodes in place of proxies."""
    from flambeau.fx.node import map_aggregate

    return map_aggregate(a, lambda x: x.node if isinstance(x, Proxy) else x)


all_take_as_annotated(globals())
