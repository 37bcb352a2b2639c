"""What is known while a function is compiled: the graph so far and the variables."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from flambeau.jit import _types as T
from flambeau.jit._frontend.source import CompilationError, NotSupportedError, Place, Source
from flambeau.jit._graph import Block, Graph, Node, Value
from flambeau.jit._parts import compiler

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator, Sequence

    from flambeau.jit._frontend.resolve import Resolver
    from flambeau.jit._schemas import Schema
    from flambeau.jit._types import Type

RETURNED, DID_RETURN, DID_BREAK = "$returned", "$did return", "$did break"
"""Names of variables for what leaves a loop or the function, which no source can have."""


class Frame:
    """The variables of a block.

    Attributes:
        variables: what was assigned in the block.
        refined: variables that are known here to be of a narrower type.
        declared: the types that variables were annotated with.
        complaints: why a name cannot be used, for those that one branch only has bound.
    """

    def __init__(self, parent: Frame | None) -> None:
        self.parent = parent
        self.variables: dict[str, Any] = {}
        self.refined: dict[str, Any] = {}
        self.declared: dict[str, Type] = {}
        self.complaints: dict[str, str] = {}

    def find(self, name: str) -> Any:
        """The value of a variable, or None."""
        frame: Frame | None = self
        while frame is not None:
            for scope in (frame.refined, frame.variables):
                if name in scope:
                    return scope[name]
            frame = frame.parent
        return None

    def assigned(self, name: str) -> bool:
        """Whether a variable is there, in this block or around it."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.variables:
                return True
            frame = frame.parent
        return False

    def declaration(self, name: str) -> Type | None:
        """The type that a variable was annotated with."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.declared:
                return frame.declared[name]
            frame = frame.parent
        return None

    def complaint(self, name: str) -> str | None:
        """Why a name is not bound, if there is more to say than that."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.complaints:
                return frame.complaints[name]
            frame = frame.parent
        return None


class Compilation:
    """One function on its way from the syntax tree to a graph."""

    def __init__(self, name: str, source: Source, resolver: Resolver) -> None:
        self.name, self.source, self.resolver = name, source, resolver
        self.graph = Graph()
        self.block: Block = self.graph.block
        self.frame = Frame(None)
        self.declared_return: Type | None = None
        self.returned: Type = T.UNKNOWN
        self.open_types: list[Value] = []
        self.loops = 0
        self.turns = 0  # of loops that were unrolled
        self.functions: dict[str, Any] = {}
        self.at: Any = None
        self.self_type: Any = None

    def place(self, node: ast.AST | None = None) -> Place | None:
        """Where a part of the syntax tree is."""
        node = node if hasattr(node, "lineno") else self.at
        return Place.of(self.source, node) if hasattr(node, "lineno") else None

    def fail(self, node: ast.AST | None, message: str) -> NoReturn:
        """Refuse the source."""
        raise CompilationError(message, self.place(node))

    def unsupported(self, node: ast.AST, message: str) -> NoReturn:
        """Refuse a part of Python."""
        raise NotSupportedError(message, self.place(node))

    def node(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Sequence[Type] = (),
        *,
        at: ast.AST | None = None,
        schema: Schema | None = None,
        **attributes: object,
    ) -> Node:
        """Add a node."""
        made = Node(kind, inputs, types, attributes, self.place(at), schema)
        return self.block.append(made)

    def emit(
        self,
        kind: str,
        inputs: Iterable[Value],
        type: Type,
        *,
        at: ast.AST | None = None,
        **attributes: Any,
    ) -> Value:
        """Add a node with one output."""
        return self.node(kind, inputs, (type,), at=at, **attributes).output()

    def constant(self, value: Any, type: Type | None = None, at: ast.AST | None = None) -> Value:
        """Add a constant."""
        kind: Type = compiler.annotations.of_value(value) if type is None else type
        attributes = {} if value is None else {"value": value}
        return self.node("prim::Constant", (), (kind,), at=at, **attributes).output()

    def uninitialized(self, type: Type) -> Value:
        """A value that nobody reads."""
        value = self.emit("prim::Uninitialized", (), type)
        if type is T.UNKNOWN:
            self.open_types.append(value)
        return value

    @contextmanager
    def inside(self, block: Block, frame: Frame) -> Iterator[None]:
        """Add to another block for a while."""
        before = self.block, self.frame
        self.block, self.frame = block, frame
        try:
            yield
        finally:
            self.block, self.frame = before

    def lookup(self, node: ast.expr, name: str) -> Any:
        """The value of a name: a variable, a function, an object of Python."""
        found = self.frame.find(name)
        if found is not None:
            return found
        if (complaint := self.frame.complaint(name)) is not None:
            self.fail(node, complaint)
        if name in self.functions:
            return self.functions[name]
        of_python = compiler.values.of_python

        try:
            value = self.resolver.lookup(name)
        except KeyError:
            if (word := compiler.values.language().get(name)) is not None:
                return word
            self.fail(node, f"undefined value {name}")
        return of_python(self, node, value, name)

    def assign(self, node: ast.AST, name: str, value: Any) -> None:
        """Bind a variable."""
        frame = self.frame
        declared = frame.declaration(name)
        if isinstance(value, Value):
            if declared is not None:
                convert = compiler.match.convert

                converted = convert(self, value, declared, allow=False, at=node)
                if converted is None:
                    self.fail(
                        node,
                        f"Variable '{name}' is annotated with type {declared.annotation} but is "
                        f"being assigned to a value of type {described(value)}",
                    )
                if value.type() is not declared and name not in frame.variables:
                    frame.refined.pop(name, None)
                value = converted
            elif frame.parent is not None and not name.startswith("$"):
                outer = frame.parent.find(name)
                if isinstance(outer, Value) and name not in frame.variables:
                    kind = outer.type()
                    whole = self._unrefined(name)
                    if not T.is_subtype(value.type(), kind) and not (
                        whole is not None and T.is_subtype(value.type(), whole)
                    ):
                        self.fail(
                            node,
                            f"Variable '{name}' previously had type {described(outer)} but is now "
                            f"being assigned to a value of type {described(value)}\n",
                        )
            if value.name == "" and not name.startswith("$") and not value.is_constant():
                value.name = name
        elif frame.parent is not None and isinstance(frame.parent.find(name), Value):
            self.fail(node, f"Cannot re-assign '{name}' to a value that is no value of a type")
        elif frame.parent is not None and frame.assigned(name) and name not in frame.variables:
            self.fail(
                node,
                f"Cannot re-assign '{name}' because it was not defined with a value of a type "
                "(only values with a type can be re-assigned in a branch or a loop)",
            )
        frame.refined.pop(name, None)
        frame.variables[name] = value

    def _unrefined(self, name: str) -> Type | None:
        frame: Frame | None = self.frame
        while frame is not None:
            value = frame.variables.get(name)
            if isinstance(value, Value):
                return value.type()
            frame = frame.parent
        return None


_TYPE = 200
"""Characters of a type in an error."""


def described(value: Value) -> str:
    """The type of a value as errors have it, whose middle is left out when it is long."""
    shown = value.type().annotation
    if len(shown) > _TYPE:
        shown = f"{shown[: _TYPE // 2]}...{shown[-_TYPE // 2 :]}"
    return f"{shown} (inferred)" if value.inferred else shown
