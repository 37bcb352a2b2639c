"""Python code for graphs."""

from __future__ import annotations

import enum
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.fx._names import OWN_GLOBALS, Namespace
from flambeau.fx._operators import INPLACE, OPERATORS
from flambeau.fx.node import Node, map_arg, qualified_name, type_name

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.fx.graph import Graph

__all__ = ["CodeGen", "PythonCode"]

TransformCode = Callable[[list[str]], list[str]]


@dataclass
class PythonCode:
    """The text of a function ``forward``, and the values of the names that it uses."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """How a graph becomes a function; a subclass may write another signature or result.

    >>> import flambeau as fb
    >>> print(fb.fx.symbolic_trace(lambda x: 2 * x.relu()).code.strip())
    def forward(self, x):
        relu = x.relu();  x = None
        mul = 2 * relu;  relu = None
        return mul
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCode | None = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function, for its parameters and its result's annotation."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: object) -> str:
        """The line that ends the function."""
        return f"return {output_args}"

    def process_inputs(self, *args: Any) -> tuple[Tensor | str, ...]:
        """The arguments of the function as the values of the graph's inputs."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The value of the graph's output as the result of the function."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further names that the code uses, with their values."""
        return []

    def _gen_python_code(
        self, graph: Graph, root_module: str, namespace: Namespace, verbose: bool = False
    ) -> PythonCode:
        return _Writer(self, root_module, namespace, verbose).write(graph)


class _Writer:
    """One function in the making."""

    def __init__(
        self, codegen: CodeGen, root_module: str, namespace: Namespace, verbose: bool
    ) -> None:
        self.codegen = codegen
        self.verbose = verbose
        self.place: str | None = ""  # what the last comment says
        self.root = root_module
        self.namespace = namespace
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.result_type = ""
        self.wrapped: dict[str, None] = {}

    def write(self, graph: Graph) -> PythonCode:
        for name, value in (*OWN_GLOBALS.items(), *self.codegen.additional_globals()):
            self.use(name, value)
        unused = last_uses(graph)
        lines: list[str] = []
        for node in graph.nodes:
            if self.verbose and node.op not in ("placeholder", "output"):
                lines += self.comment(node)
            line = self.statement(node)
            if node.op == "placeholder":
                lines += [f"{line}\n"] if line else []
            elif node.op == "output":
                lines.append(f"{line}\n")
            else:
                lines.append(f"{line}{self.forgetting(node, unused.get(node, []))}\n")
        if not lines:
            lines.append("pass\n")
        if self.codegen._body_transformer:
            lines = self.codegen._body_transformer(lines)
        head = self.codegen.gen_fn_def(self.parameters, self.result_type)
        wrapped = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        body = "\n".join(f"    {line}" for line in "".join(lines).lstrip("\n").split("\n"))
        return PythonCode(f"\n{wrapped}\n\n{head}\n{body}", self.globals)

    def forgetting(self, node: Node, unused: list[Node]) -> str:
        """The end of a line, which lets go of values that nothing uses any more."""
        if not node.users:
            unused = [*unused, node]
        return f";  {' = '.join(map(self.name, unused))} = None" if unused else ""

    def comment(self, node: Node) -> list[str]:
        """Where the node comes from, unless that is where the one before it came from."""
        if node.stack_trace == self.place:
            return []
        self.place = node.stack_trace
        if not self.place:
            return ["\n# No stacktrace found for following nodes\n"]
        where, code = (line.strip() for line in self.place.strip().split("\n")[-2:])
        return [f"\n# {where}, code: {code}\n"]

    def name(self, node: Node) -> str:
        return self.namespace.create_name(node.name, node)

    def use(self, hint: str, value: Any) -> str:
        """The name of a value that the code does not compute itself."""
        if _is_ours(value) and value is not fb.device and value is not fb:
            return hint
        name = hint.replace(".", "_")
        if name in self.globals and self.globals[name] is value:
            return name
        name = self.namespace.create_name(name, value)
        self.globals[name] = value
        return name

    def type(self, t: Any) -> str:
        """An annotation's text."""
        if isinstance(t, type) and getattr(t, "__origin__", None) is None:
            return self.use(type_name(t), t)
        if isinstance(t, str):
            return t
        origin = getattr(t, "__origin__", None)
        if origin is None:
            return self.use(getattr(t, "__name__", None) or repr(t), t)
        if not (parts := getattr(t, "__args__", ())) and isinstance(origin, type):
            return self.type(origin)  # `List` alone
        of = _ALIASES.get(origin) if type(t).__module__ == "typing" else origin
        if of is None or not parts or not all(map(_is_spelt, parts)):
            return self.use(repr(t).translate(_PUNCTUATION), t)
        name = self.use(type_name(of) if isinstance(of, type) else repr(of), of)
        return f"{name}[{','.join('...' if part is ... else self.type(part) for part in parts)}]"

    def text(self, a: Any) -> str:
        """An argument as code."""
        if isinstance(a, Node):
            return self.name(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            cls = self.use(f"{type(a).__module__}.{type(a).__name__}", type(a))
            return f"{cls}{self.text(tuple(a))}"
        if isinstance(a, fb.Size):
            return f"torch.Size({self.text(list(a))})"
        if isinstance(a, tuple):
            return f"({', '.join(map(self.text, a))}{',' if len(a) == 1 else ''})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.text, a))}]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{k!r}: {self.text(v)}" for k, v in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({self.text(a.start)}, {self.text(a.stop)}, {self.text(a.step)})"
        if isinstance(a, enum.Enum):
            return f"{self.use(type(a).__name__, type(a))}.{a.name}"
        if isinstance(a, type):
            return self.use(type_name(a), a)
        if callable(a) and hasattr(a, "__name__"):
            return self.use(qualified_name(a), a)
        return repr(a)

    def call(self, node: Node, operands: tuple[Any, ...]) -> str:
        given = [self.text(a) for a in operands]
        given += [f"{k} = {self.text(v)}" for k, v in node.kwargs.items()]
        return f"({', '.join(given)})"

    def statement(self, node: Node) -> str:
        """A line for a node; for an input only if its parameter has another name."""
        annotation = f" : {self.type(node.type)}" if node.type is not None else ""
        if node.op == "placeholder":
            raw = str(node.target)
            default = f" = {self.text(node.args[0])}" if node.args else ""
            self.parameters.append(f"{raw}{annotation}{default}")
            raw = raw.lstrip("*")
            return "" if raw == self.name(node) else f"{self.name(node)} = {raw}"
        if node.op == "output":
            if node.type is not None:
                self.result_type = f" -> {self.type(node.type)}"
            return self.codegen.generate_output(self.text(node.args[0]))
        target = node.target
        left = f"{self.name(node)}{annotation} = "
        if node.op == "get_attr":
            return left + _member(self.root, str(target))
        if node.op == "call_module":
            return left + _member(self.root, str(target)) + self.call(node, node.args)
        if node.op == "call_method":
            object_ = self.text(node.args[0])
            return f"{left}{object_}.{target}{self.call(node, node.args[1:])}"
        if node.op != "call_function":
            raise NotImplementedError(f"node: {node.op} {target}")
        name = target.__name__ if getattr(target, "__module__", None) == "_operator" else ""  # type: ignore[union-attr]
        if name in OPERATORS and not node.kwargs:
            given = [self.text(a) for a in node.args]
            if name == "pow" and given[0].startswith("-"):
                given[0] = f"({given[0]})"
            return left + OPERATORS[name].format(*given)
        if name in INPLACE and not node.kwargs:
            line = INPLACE[name].format(*(self.text(a) for a in node.args))
            return f"{line};  {left}{self.text(node.args[0])}"
        called = self.use(qualified_name(target), target)  # type: ignore[arg-type]
        if target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
            return f"{left}{self.text(node.args[0])}.{node.args[1]}"
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(called)
        return left + called + self.call(node, node.args)


_PUNCTUATION = str.maketrans(dict.fromkeys("[], .|~'\"", "_"))


_ALIASES = {
    list: typing.List,  # noqa: UP006 - annotations that are written so are printed so
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
    typing.Union: typing.Union,
}


def _is_spelt(part: object) -> bool:
    """Whether an argument of an annotation is written as itself: a type, or one with arguments."""
    return part is ... or isinstance(part, type) or getattr(part, "__origin__", None) is not None


def last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For each node, those whose last user it is."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}

    for user in graph.nodes.__reversed__():

        def note(node: Node, user: Node = user) -> Node:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
            return node

        map_arg(user.args, note)
        map_arg(user.kwargs, note)
    return found


def _is_ours(value: object) -> bool:
    if hasattr(value, "inlined_graph"):  # a script, of which only the class is
        return False
    place = getattr(value, "__module__", None) or ""
    return place.split(".")[0] == "flambeau"


def _member(root: str, path: str) -> str:
    """``root.a.b``, with getattr for what is no identifier."""
    for name in path.split("."):
        root = f"{root}.{name}" if name.isidentifier() else f'getattr({root}, "{name}")'
    return root
