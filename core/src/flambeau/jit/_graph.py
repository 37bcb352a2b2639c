"""The graph: values that are written once, nodes that compute them, blocks of nodes.

A node of kind ``prim::If`` or ``prim::Loop`` has blocks of its own, whose outputs become its
outputs.  `str` of a graph is the text that PyTorch prints for it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._types import Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flambeau.jit._frontend.source import Place
    from flambeau.jit._schemas import Schema


def type_of(value: object) -> str:
    """The name of a value's class, where `type` is something else."""
    return type(value).__name__


class Use:
    """One place where a value is read: a node, and which of its inputs it is."""

    __slots__ = ("offset", "user")

    def __init__(self, user: Any, offset: int) -> None:
        self.user, self.offset = user, offset


class Value:
    """What one node makes, or a block is given."""

    __slots__ = ("_type", "block", "inferred", "name", "node", "readers")

    def __init__(self, node: Node | None, type: Type, name: str = "") -> None:
        if node is not None and not isinstance(node, Node):
            raise TypeError(f"Value(): argument 'node' must be a node, got {type_of(node)}")
        if not hasattr(type, "shown"):
            raise TypeError(f"Value(): argument 'type' must be a type, got {type_of(type)}")
        self.node, self._type, self.name = node, type, name
        self.readers: dict[tuple[Node | Block, int], None] = {}
        self.block: Block | None = None
        self.inferred = False

    def type(self) -> Type:
        """Its type."""
        return self._type

    def setType(self, type: Type) -> Value:
        """Give it another type."""
        self._type = type
        return self

    def uses(self) -> list[Use]:
        """Where it is read by nodes."""
        return [Use(user, at) for user, at in self.readers if isinstance(user, Node)]

    def debugName(self) -> str:
        """Its name in printed graphs, without the sign before it."""
        graph = self._graph()
        return graph.name_of(self) if graph else self.name

    def setDebugName(self, name: str) -> Value:
        """Give it another name."""
        self.name = name
        return self

    def isCompleteTensor(self) -> bool:
        """Whether its type has the shape of a tensor that was seen, as in `_get_trace_graph`."""
        return hasattr(self._type, "sizes")

    def toIValue(self) -> Any:
        """The value of a constant; None for any other."""
        return self.node.attributes.get("value") if self.is_constant() and self.node else None

    def is_constant(self) -> bool:
        """Whether a ``prim::Constant`` makes it."""
        return self.node is not None and self.node.kind == "prim::Constant"

    def replaceAllUsesWith(self, other: Value) -> None:
        """Let all that read this value read another."""
        for user, at in list(self.readers):
            user.set_input(at, other)

    def _graph(self) -> Graph | None:
        block = self.node.owner if self.node else self.block
        while block is not None and block.node is not None:
            block = block.node.owner
        return block.graph if block else None

    def __repr__(self) -> str:
        return f"{self.debugName()} defined in ({self.node or 'block'})"


class Kind(str):
    """What a node does, such as ``aten::add``; called, it is itself, as programs for PyTorch do."""

    __slots__ = ()

    def __call__(self) -> str:
        return self


_DRAWS = frozenset(
    """rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal
    poisson dropout feature_dropout alpha_dropout feature_alpha_dropout rrelu rrelu_with_noise
    lstm gru rnn_tanh rnn_relu scaled_dot_product_attention fractional_max_pool2d
    fractional_max_pool3d binomial cauchy exponential geometric log_normal uniform random
    _standard_gamma _sample_dirichlet""".split()
)
"""Ops that draw random numbers, without the mark of those that write."""


class Node:
    """One step: its kind (``aten::add``), inputs, outputs, attributes and blocks.

    Attributes:
        schema: the signature that was chosen, for an op.
        place: where in the source it comes from.
        scope: the names that were pushed when it was traced, outermost first, with ``/`` between.
    """

    __slots__ = (
        "attributes",
        "blocks_",
        "inputs_",
        "kind",
        "outputs_",
        "owner",
        "place",
        "schema",
        "scope",
    )

    def __init__(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Sequence[Type] = (),
        attributes: dict[str, Any] | None = None,
        place: Place | None = None,
        schema: Schema | None = None,
    ) -> None:
        if attributes is not None and not isinstance(attributes, dict):
            raise TypeError(
                f"Node(): argument 'attributes' must be dict, not {type_of(attributes)}"
            )
        if place is not None and not hasattr(place, "brief"):
            raise TypeError(f"Node(): argument 'place' must be Place, not {type_of(place)}")
        self.kind = Kind(kind)
        self.inputs_: list[Value] = []
        self.outputs_ = [Value(self, each) for each in types]
        self.attributes = attributes or {}
        self.blocks_: list[Block] = []
        self.owner: Block | None = None
        self.place, self.schema, self.scope = place, schema, ""
        try:
            for value in inputs:
                self.add_input(value)
        except AttributeError as error:
            raise TypeError(
                "Node(): argument 'inputs' must be values of a graph, got "
                f"{type(error.obj).__name__}"
            ) from error

    def add_input(self, value: Value) -> None:
        """Read one more value."""
        value.readers[self, len(self.inputs_)] = None
        self.inputs_.append(value)

    def set_input(self, at: int, value: Value) -> None:
        """Read another value at a position."""
        self.inputs_[at].readers.pop((self, at), None)
        self.inputs_[at] = value
        value.readers[self, at] = None

    def remove_input(self, at: int) -> None:
        """Read one value less."""
        rest = self.inputs_[:at] + self.inputs_[at + 1 :]
        self.drop_inputs()
        for value in rest:
            self.add_input(value)

    def drop_inputs(self) -> None:
        """Read nothing any more."""
        for at, value in enumerate(self.inputs_):
            value.readers.pop((self, at), None)
        self.inputs_ = []

    def add_output(self, type: Type) -> Value:
        """Make one more value."""
        self.outputs_.append(Value(self, type))
        return self.outputs_[-1]

    def addBlock(self) -> Block:
        """Add a block."""
        self.blocks_.append(Block(self))
        return self.blocks_[-1]

    def destroy(self) -> None:
        """Take the node, whose outputs nobody reads, out of its block."""
        for block in self.blocks_:
            block.clear()
        self.drop_inputs()
        if self.owner is not None:
            self.owner.nodes_.remove(self)
            self.owner = None

    def inputs(self) -> Iterator[Value]:
        """The values that it reads."""
        return iter(self.inputs_)

    def outputs(self) -> Iterator[Value]:
        """The values that it makes."""
        return iter(self.outputs_)

    def blocks(self) -> Iterator[Block]:
        """Its blocks."""
        return iter(self.blocks_)

    def input(self, at: int = 0) -> Value:
        """The only value that it reads."""
        return self.inputs_[at]

    def output(self) -> Value:
        """The only value that it makes."""
        return self.outputs_[0]

    def inputsSize(self) -> int:
        """How many values it reads."""
        return len(self.inputs_)

    def outputsSize(self) -> int:
        """How many values it makes."""
        return len(self.outputs_)

    def inputsAt(self, at: int) -> Value:
        """One of the values that it reads."""
        return self.inputs_[at]

    def outputsAt(self, at: int) -> Value:
        """One of the values that it makes."""
        return self.outputs_[at]

    def attributeNames(self) -> list[str]:
        """The names of its attributes."""
        return list(self.attributes)

    def hasAttribute(self, name: str) -> bool:
        """Whether it has an attribute."""
        return name in self.attributes

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def kindOf(self, name: str) -> str:
        """Which kind of attribute one is: ``"i"``, ``"f"``, ``"s"``, ``"t"``, ``"ival"``."""
        value = self.attributes[name]
        for kind, letter in ((bool, "i"), (int, "i"), (float, "f"), (str, "s")):
            if isinstance(value, kind):
                return letter
        return "t" if type(value).__name__ == "Tensor" else "ival"

    def i(self, name: str) -> Any:
        """An attribute; so are `f`, `s`, `t`, `ival` and `g`."""
        return self.attributes[name]

    f = s = t = ival = g = i

    def isNondeterministic(self) -> bool:
        """Whether it draws random numbers, perhaps."""
        return self.kind.removeprefix("aten::").rstrip("_") in _DRAWS

    def sourceRange(self) -> str:
        """The lines that it comes from, marked."""
        return self.place.highlighted() if self.place else ""

    def scopeName(self) -> str:
        """The names that were pushed when it was traced (`scope`); empty if none were."""
        return self.scope

    def insert_before(self, other: Node) -> Node:
        """Put the node before another."""
        block = other.owner
        assert block is not None
        block.nodes_.insert(block.nodes_.index(other), self)
        self.owner = block
        return self

    def graph(self) -> Graph | None:
        """The graph it is in."""
        block = self.owner
        while block is not None and block.node is not None:
            block = block.node.owner
        return block.graph if block else None

    def __str__(self) -> str:
        graph = self.graph() or Graph()
        lines: list[str] = []
        graph.print_node(self, "", lines)
        return "\n".join(lines) + "\n"

    __repr__ = __str__


class Block:
    """Nodes in order, with what they are given and what comes out."""

    __slots__ = ("graph", "inputs_", "node", "nodes_", "outputs_")

    def __init__(self, node: Node | None = None, graph: Graph | None = None) -> None:
        self.node, self.graph = node, graph
        self.inputs_: list[Value] = []
        self.nodes_: list[Node] = []
        self.outputs_: list[Value] = []

    def add_input(self, type: Type, name: str = "") -> Value:
        """Be given one more value."""
        value = Value(None, type, name)
        value.block = self
        self.inputs_.append(value)
        return value

    def add_output(self, value: Value) -> None:
        """Give out one more value."""
        value.readers[self, len(self.outputs_)] = None
        self.outputs_.append(value)

    def set_input(self, at: int, value: Value) -> None:
        """Give out another value at a position."""
        self.outputs_[at].readers.pop((self, at), None)
        self.outputs_[at] = value
        value.readers[self, at] = None

    def remove_output(self, at: int) -> None:
        """Give out one value less."""
        rest = self.outputs_[:at] + self.outputs_[at + 1 :]
        self.drop_outputs()
        for value in rest:
            self.add_output(value)

    def drop_outputs(self) -> None:
        """Give out nothing any more."""
        for at, value in enumerate(self.outputs_):
            value.readers.pop((self, at), None)
        self.outputs_ = []

    def append(self, node: Node) -> Node:
        """Add a node at the end."""
        self.nodes_.append(node)
        node.owner = self
        return node

    def prepend(self, node: Node) -> Node:
        """Add a node at the beginning."""
        self.nodes_.insert(0, node)
        node.owner = self
        return node

    def clear(self) -> None:
        """Take out all nodes and outputs."""
        self.drop_outputs()
        for node in reversed(list(self.nodes_)):
            node.destroy()

    def inputs(self) -> Iterator[Value]:
        """What it is given."""
        return iter(self.inputs_)

    def nodes(self) -> Iterator[Node]:
        """Its nodes, in order."""
        return iter(self.nodes_)

    def outputs(self) -> Iterator[Value]:
        """What comes out."""
        return iter(self.outputs_)

    def all_nodes(self) -> Iterator[Node]:
        """The nodes of it and of the blocks in them."""
        for node in list(self.nodes_):
            yield node
            for block in node.blocks_:
                yield from block.all_nodes()


class Graph:
    """A block that is no node's, which prints itself.

    >>> import flambeau as fb
    >>> graph = fb.jit.Graph()
    >>> x = graph.addInput("x")
    >>> total = graph.insert("aten::sum", x)
    >>> _ = graph.registerOutput(total)
    >>> print(graph)
    graph(%x : Tensor):
      %1 : Tensor = aten::sum(%x)
      return (%1)
    <BLANKLINE>
    """

    __slots__ = ("__weakref__", "block", "into", "names", "parts")

    def __init__(self) -> None:
        self.block = Block(graph=self)
        self.into = self.block
        self.names: dict[Value, str] = {}
        self.parts: list[Any] = []

    def addInput(self, name: str = "", type: Type = T.TENSOR) -> Value:
        """Be given one more value."""
        return self.block.add_input(type, name)

    def create(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Sequence[Type] = (T.TENSOR,),
        attributes: dict[str, Any] | None = None,
        place: Place | None = None,
        schema: Schema | None = None,
    ) -> Node:
        """A node that is in no block yet."""
        return Node(kind, inputs, types, attributes, place, schema)

    def insertNode(self, node: Node) -> Node:
        """Put a node at the end of the block that is written."""
        return self.into.append(node)

    def insert(
        self, kind: str, *inputs: Value, type: Type = T.TENSOR, **attributes: object
    ) -> Value:
        """Create a node with one output, put it at the end, and return the output."""
        return self.insertNode(self.create(kind, inputs, (type,), attributes)).output()

    def insertConstant(self, value: object, type: Type, place: Place | None = None) -> Value:
        """A constant."""
        attributes = {} if value is None else {"value": value}
        return self.insertNode(
            self.create("prim::Constant", (), (type,), attributes, place)
        ).output()

    def registerOutput(self, value: Value) -> Graph:
        """Return one more value."""
        self.block.add_output(value)
        return self

    def inputs(self) -> Iterator[Value]:
        """What it is given."""
        return self.block.inputs()

    def nodes(self) -> Iterator[Node]:
        """Its nodes, in order, without those in blocks."""
        return self.block.nodes()

    def outputs(self) -> Iterator[Value]:
        """What it returns."""
        return self.block.outputs()

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind, those in blocks included."""
        nodes = self.block.all_nodes() if recurse else self.block.nodes()
        return [node for node in nodes if node.kind == kind]

    def copy(self) -> Graph:
        """A graph of its own with the same nodes."""
        other = Graph()
        copy_block(self.block, other.block, {})
        return other

    def name_of(self, value: Value) -> str:
        """The name of a value in print."""
        names = self._names()
        return names.get(value, value.name or "?")

    def _names(self) -> dict[Value, str]:
        taken: dict[str, list[Value]] = {}
        order: list[Value] = []

        def visit(block: Block) -> None:
            order.extend(block.inputs_)
            for node in block.nodes_:
                order.extend(node.outputs_)
                for inner in node.blocks_:
                    visit(inner)

        visit(self.block)
        for value in order:
            if value.name:
                taken.setdefault(_stem(value.name), []).append(value)
        found: dict[Value, str] = {}
        for stem, values in taken.items():
            if len(values) == 1:
                found[values[0]] = values[0].name
                continue
            for at, value in enumerate(values[:-1]):
                found[value] = f"{stem}.{2 * at + 1}"
            found[values[-1]] = stem
        for at, value in enumerate(order):
            found.setdefault(value, str(at))
        return found

    def __str__(self) -> str:
        parts: list[Any] = []
        text = self._text("graph", parts)
        for kind, inner in parts:  # grows while it is read: groups hold groups
            text += inner._text(f"with {kind} = graph", parts)
        return text

    def _text(self, head: str, parts: list[Any]) -> str:
        self.names, self.parts = self._names(), parts
        given = ",\n      ".join(f"%{self.names[v]} : {v.type().shown}" for v in self.block.inputs_)
        lines = [f"{head}({given}):"]
        for node in self.block.nodes_:
            self.print_node(node, "  ", lines)
        lines.append(f"  return ({', '.join(self._read(v) for v in self.block.outputs_)})")
        return "\n".join(lines) + "\n"

    __repr__ = __str__

    def str(self, print_source_ranges: bool = True) -> str:
        """The text of it, with or without the places in the source."""
        text = self.__str__()
        if print_source_ranges:
            return text
        return re.sub(r" # [^\n\"]*:\d+:\d+$", "", text, flags=re.MULTILINE)

    def _read(self, value: Value) -> str:
        return "%" + (self.names.get(value) or value.name or "?")

    def print_node(self, node: Node, pad: str, lines: list[Any]) -> None:
        """Add the lines of a node."""
        if not self.names:
            self.names = self._names()
        made = ", ".join(f"{self._read(v)} : {v.type().shown}" for v in node.outputs_)
        attributes_of = node.attributes
        kind = str(node.kind)
        if (inner := attributes_of.get("Subgraph")) is not None:
            attributes_of = {k: v for k, v in attributes_of.items() if k != "Subgraph"}
            kind = f"{kind}_{len(self.parts)}"
            self.parts.append((kind, inner))
        shown = [f"{k}={shown_attribute(v)}" for k, v in attributes_of.items() if k[0] != "_"]
        attributes = f"[{', '.join(shown)}]" if shown else ""
        reads = ", ".join(self._read(v) for v in node.inputs_)
        scope = f", scope: {node.scope}" if node.scope else ""
        place = f"{scope} # {node.place.brief()}" if node.place else scope
        lines.append(f"{pad}{made} = {kind}{attributes}({reads}){place}")
        if not made:
            equals = "" if not node.blocks_ and node.kind not in _WITH_EQUALS else " = "
            lines[-1] = f"{pad}{equals}{kind}{attributes}({reads}){place}"
        for at, block in enumerate(node.blocks_):
            given = ", ".join(f"{self._read(v)} : {v.type().shown}" for v in block.inputs_)
            lines.append(f"{pad}  block{at}({given}):")
            for inner in block.nodes_:
                self.print_node(inner, pad + "    ", lines)
            back = ", ".join(self._read(v) for v in block.outputs_)
            lines.append(f"{pad}    -> ({back})")


_WITH_EQUALS = ("prim::RaiseException", "prim::Print", "prim::SetAttr", "prim::If", "prim::Loop")


def _stem(name: str) -> str:
    head, dot, tail = name.rpartition(".")
    return head if dot and tail.isdigit() else name


def shown_attribute(value: object) -> str:
    """An attribute as graphs show it."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return shown_float(value)
    if isinstance(value, str):
        return '"' + escaped(value) + '"'
    if isinstance(value, list | tuple):
        inner = ", ".join(map(shown_attribute, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if type(value).__name__ in ("Tensor", "Parameter"):
        return "<Tensor>"
    return str(value)


def shown_float(value: float) -> str:
    """A number with the seventeen digits that tell it from all others, and a point."""
    if math.isinf(value) or math.isnan(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value)}." if value or math.copysign(1, value) > 0 else "-0."
    return f"{value:.17g}"


def escaped(text: str) -> str:
    """A text as it stands between quotation marks."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return text.replace('"', '\\"')


def copy_block(block: Block, into: Block, known: dict[Value, Value]) -> dict[Value, Value]:
    """Copy nodes and outputs of a block; `known` says which new value stands for an old one."""
    for value in block.inputs_:
        known[value] = into.add_input(value.type(), value.name)
    for node in block.nodes_:
        into.append(copy_node(node, known))
    for value in block.outputs_:
        into.add_output(known[value])
    return known


def copy_node(node: Node, known: dict[Value, Value]) -> Node:
    """A copy of a node and of its blocks."""
    made = Node(
        node.kind,
        [known.get(v, v) for v in node.inputs_],
        [v.type() for v in node.outputs_],
        dict(node.attributes),
        node.place,
        node.schema,
    )
    made.scope = node.scope
    for old, new in zip(node.outputs_, made.outputs_, strict=True):
        known[old] = new
        new.name, new.inferred = old.name, old.inferred
    for block in node.blocks_:
        copy_block(block, made.addBlock(), known)
    return made
