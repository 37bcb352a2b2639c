"""Graphs as source, in the language that archives are written in."""

from __future__ import annotations

import enum
import keyword
import re
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._frontend.expressions import LAST
from flambeau.jit._graph import Block, Graph, Node, Value, escaped, shown_float
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import NO_DEFAULT, Schema, parse
from flambeau.jit._types import ClassType, EnumType, NamedTupleType, Type
from flambeau.utils._named_ops import CustomOp

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._frontend.function import ScriptFunction

_RESERVED = frozenset(
    """torch self Tensor int float bool str print range len uninitialized unchecked_cast annotate
    isinstance CONSTANTS ops getattr fork wait inf nan list dict tuple Any List Dict Tuple
    Optional""".split()
) | frozenset(keyword.kwlist)


class Constants:
    """Tensors and objects that a source names, and the functions and types that it needs.

    Attributes:
        values: the constants, in the order of their numbers.
        functions: the functions that are called.
        types: the classes, enums and named tuples that are named.
        ops: the ops that are called.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.functions: dict[str, ScriptFunction] = {}
        self.types: dict[str, Type] = {}
        self.ops: set[str] = set()
        self._known: dict[int, int] = {}

    def name(self, value: Tensor) -> str:
        """``CONSTANTS.c0``."""
        if id(value) not in self._known:
            self._known[id(value)] = len(self.values)
            self.values.append(value)
        return f"CONSTANTS.c{self._known[id(value)]}"

    def function(self, function: ScriptFunction) -> str:
        """The name of a function, which no other function has."""
        name, count = function.qualified_name, 0
        while self.functions.setdefault(name, function) is not function:
            head, _, tail = function.qualified_name.rpartition(".")
            name = f"{head}.___torch_mangle_{count}.{tail}"
            count += 1
        return name

    def needs(self, kind: Type) -> None:
        """Note the classes that a type names."""
        if isinstance(kind, (ClassType, EnumType, NamedTupleType)):
            if kind.name.startswith("__torch__"):
                self.types.setdefault(kind.name, kind)
        for each in kind.args:
            self.needs(each)

    @property
    def mapping(self) -> dict[str, Any]:
        """The constants by name."""
        return {f"c{at}": value for at, value in enumerate(self.values)}


def function_code(
    function: ScriptFunction, constants: Constants, name: str | None = None, pad: str = ""
) -> str:
    """The source of a function."""
    return _Printer(function.graph, constants).function(function, name or function.name, pad)


class _Printer:
    """Writes the source of one graph."""

    def __init__(self, graph: Graph, constants: Constants) -> None:
        self.graph, self.constants = graph, constants
        self.lines: list[str] = []
        self.texts: dict[Value, str] = {}
        self.taken: set[str] = set(_RESERVED)
        self.next_numbers: dict[str, int] = {}
        self.shown: dict[Value, str] = {}

    def function(self, function: ScriptFunction, name: str, pad: str) -> str:
        """The definition."""
        given = []
        arguments = function.schema.arguments
        for value, argument in zip(self.graph.inputs(), arguments, strict=True):
            own = self.unique(argument.name) if argument.name != "self" else "self"
            self.texts[value] = own
            self.constants.needs(value.type())
            shown = f"{own}: {value.type().annotation}"
            if argument.default is not NO_DEFAULT:
                default = argument.default
                if argument.size is not None and isinstance(default, (int, float)):
                    default = [default] * argument.size
                shown += f"={self.literal(default)}"
            given.append(shown)
        back = function.returned
        self.constants.needs(back)
        self.plan(self.graph.block)
        self.block(self.graph.block, pad + "  ")
        results = [self.read(v) for v in self.graph.outputs()]
        self.lines.append(f"{pad}  return {results[0] if results else 'None'}")
        head = f",\n{pad}    ".join(given)
        return f"{pad}def {name}({head}) -> {back.annotation}:\n" + "\n".join(self.lines) + "\n"

    def literal(self, value: object) -> str:
        """A default as source."""
        if isinstance(value, float):
            return shown_float(value)
        if isinstance(value, str):
            return f'"{escaped(value)}"'
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.literal, value))
            return (
                f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
            )
        if type(value).__name__ in ("dtype", "layout", "memory_format"):
            number_of = compiler.numbers.number_of

            return str(number_of(value))
        return str(value)

    def unique(self, name: str) -> str:
        """A name that is not taken, made from another."""
        name = re.sub(r"\W", "_", name.partition(".")[0]) or "_"
        stem = name.rstrip("0123456789") or "_"
        if name not in self.taken and not (stem == "_" and name == "_"):
            self.taken.add(name)
            return name
        number = self.next_numbers.get(stem, 0)  # none is given back
        while f"{stem}{number}" in self.taken:
            number += 1
        self.next_numbers[stem] = number + 1
        self.taken.add(f"{stem}{number}")
        return f"{stem}{number}"

    def plan(self, block: Block) -> None:
        """Choose the values that have no name: read once, by what comes next in the block."""
        self.inlined: set[Value] = set()
        self._plan(block)

    def _plan(self, block: Block) -> None:
        place = {node: at for at, node in enumerate(block.nodes_)}
        del place
        pending: list[Node] = []
        for node in block.nodes_:
            for inner in node.blocks_:
                self._plan(inner)
            if node.kind == "prim::Constant":
                continue
            # The last inputs are computed last: those that follow in order can be written inside.
            wanted = [v for v in node.inputs_ if v.node in pending]
            at = len(pending)
            chosen: list[Value] = []
            for value in reversed(wanted):
                if at and value.node is pending[at - 1]:
                    at -= 1
                    chosen.append(value)
                else:
                    break
            self.inlined.update(chosen)
            if at < len(pending) or chosen:
                del pending[at:]
            if self._can_inline(node, block):
                pending.append(node)
            else:
                pending = []
        returned = [v for v in block.outputs_ if v.node in pending]
        if len(block.outputs_) == 1 and returned and returned[0].node is pending[-1]:
            if block.node is None or block.node.kind == "prim::If":
                self.inlined.add(returned[0])

    def _can_inline(self, node: Node, block: Block) -> bool:
        if len(node.outputs_) != 1 or node.blocks_ or node.kind in _STATEMENTS:
            return False
        output = node.output()
        if len(output.readers) != 1 or (output.name and not output.name.isdigit()):
            return False
        reader, _ = next(iter(output.readers))
        if isinstance(reader, Node):
            return reader.owner is block and reader.kind not in (
                "prim::Loop",
                "prim::Enter",
                "prim::Exit",
            )
        return reader is block and block.node is None

    def read(self, value: Value) -> str:
        """The expression for a value."""
        if value.is_constant() and value not in self.texts:
            return self.constant(value)
        return self.texts[value]

    def constant(self, value: Value) -> str:
        """A constant as source."""
        assert value.node is not None
        attributes = value.node.attributes
        if "_function" in attributes:
            return self.constants.function(attributes["_function"])
        what = attributes.get("value")
        if isinstance(what, enum.Enum):
            kind = value.type()
            self.constants.needs(kind)
            return f"{kind.annotation}.{what.name}"
        if isinstance(what, float):
            shown = shown_float(what)
            return f"torch.neg({shown[1:]})" if shown == "-inf" else shown
        if isinstance(what, str):
            return f'"{escaped(what)}"'
        if what is None or isinstance(what, (bool, int)):
            if what is None and value.type() is not T.NONE and value.type().kind == "Optional":
                return f"annotate({value.type().annotation}, None)"
            return str(what)
        if isinstance(what, complex):
            return f"torch.complex({what.real!r}, {what.imag!r})"
        if type(what).__name__ == "device":
            return f'torch.device("{what}")'
        return self.constants.name(what)

    def bind(self, node: Node, text: str, pad: str) -> None:
        """Give what a node makes a name, or keep the expression for where it is read."""
        outputs = node.outputs_
        for each in outputs:
            self.constants.needs(each.type())
        if len(outputs) == 1 and outputs[0] in self.inlined:
            self.texts[outputs[0]] = text
            return
        names = [self.name(v) for v in outputs]
        if not names:
            self.lines.append(f"{pad}{text}")
        elif len(names) == 1:
            self.lines.append(f"{pad}{names[0]} = {text}")
        else:
            self.lines.append(f"{pad}{', '.join(names)}, = {text}")

    def name(self, value: Value) -> str:
        """A name for a value."""
        stem = value.name.partition(".")[0] if value.name else "_0"
        if not re.match(r"[A-Za-z_]", stem):
            stem = "_0"
        made = self.unique(stem)
        self.texts[value] = made
        return made

    def block(self, block: Block, pad: str) -> None:
        """The statements of a block."""
        for node in block.nodes_:
            if node.kind == "prim::Constant":
                what = node.output().toIValue()
                if (
                    isinstance(what, str) and len(node.output().readers) > 1 and len(what) > 16
                ) or ("_function" in node.attributes and node.output().readers):
                    self.bind(node, self.constant(node.output()), pad)
                continue
            form = getattr(self, "_" + node.kind.replace("::", "_"), None)
            if form is not None:
                form(node, pad)
            else:
                self.bind(node, self.expression(node), pad)

    def _prim_If(self, node: Node, pad: str) -> None:
        outs = [self.name(v) for v in node.outputs_]
        for at, block in enumerate(node.blocks_):
            self.lines.append(f"{pad}else:" if at else f"{pad}if {self.read(node.inputs_[0])}:")
            before = len(self.lines)
            self.block(block, pad + "  ")
            plain: list[tuple[str, str]] = []
            for name, made, value in zip(outs, node.outputs_, block.outputs_, strict=True):
                if made.type().kind == "Union" and not at:  # branches may have different members
                    self.constants.needs(made.type())
                    kind = made.type().annotation
                    self.lines.append(f"{pad}  {name} : {kind} = {self.read(value)}")
                else:
                    plain.append((name, self.read(value)))
            if plain:
                names, values = (", ".join(each) for each in zip(*plain, strict=True))
                self.lines.append(f"{pad}  {names} = {values}")
            if len(self.lines) == before:
                self.lines.append(f"{pad}  pass")

    def _prim_Loop(self, node: Node, pad: str) -> None:
        trips, start = node.inputs_[:2]
        body = node.blocks_[0]
        outs = [self.name(v) for v in node.outputs_]
        goes_on = body.outputs_[0]
        always = goes_on.is_constant() and goes_on.toIValue() is True
        counted = always and start.is_constant() and start.toIValue() is True
        endless = trips.is_constant() and trips.toIValue() == LAST
        names = list(outs)
        values = [self.read(v) for v in node.inputs_[2:]]
        flag = index = ""
        if not counted:
            flag = self.unique("_0")
            names.insert(0, flag)
            values.insert(0, self.read(start))
        if not counted and not endless:
            index = self.unique("_0")
            names.insert(0, index)
            values.insert(0, "0")
        for name, value in zip(names, values, strict=True):
            self.lines.append(f"{pad}{name} = {value}")
        for name, value in zip(outs, body.inputs_[1:], strict=True):
            self.texts[value] = name
        if counted:
            step = self.name(body.inputs_[0])
            self.lines.append(f"{pad}for {step} in range({self.read(trips)}):")
        elif endless:
            self.texts[body.inputs_[0]] = "0"
            if body.inputs_[0].readers:
                index = self.unique("_0")
                self.lines.append(f"{pad}{index} = 0")
                self.texts[body.inputs_[0]] = index
            self.lines.append(f"{pad}while {flag}:")
        else:
            self.texts[body.inputs_[0]] = index
            trip_text = self.read(trips)
            test = f"torch.__and__(torch.lt({index}, {trip_text}), {flag})"
            self.lines.append(f"{pad}_go{index} = {test}")
            self.lines.append(f"{pad}while _go{index}:")
        before = len(self.lines)
        self.block(body, pad + "  ")
        after = [self.read(v) for v in body.outputs_[1:]]
        left = list(outs)
        if not counted:
            left.insert(0, flag)
            after.insert(0, self.read(goes_on))
        pairs = [(n, v) for n, v in zip(left, after, strict=True) if n != v]
        if pairs:
            targets, results = ", ".join(n for n, _ in pairs), ", ".join(v for _, v in pairs)
            self.lines.append(f"{pad}  {targets} = {results}")
        if index:
            self.lines.append(f"{pad}  {index} = torch.add({index}, 1)")
            if not endless:
                test = f"torch.__and__(torch.lt({index}, {self.read(trips)}), {flag})"
                self.lines.append(f"{pad}  _go{index} = {test}")
        if len(self.lines) == before:
            self.lines.append(f"{pad}  pass")

    def _prim_Enter(self, node: Node, pad: str) -> None:
        of = self.read(node.inputs_[0])
        self.bind(node, f"({of}).__enter__()", pad)

    def _prim_Exit(self, node: Node, pad: str) -> None:
        of = self.read(node.inputs_[0])
        self.lines.append(f"{pad}{self.unique('_0')} = ({of}).__exit__(None, None, None, )")

    def _prim_fork(self, node: Node, pad: str) -> None:
        inner = node.blocks_[0].nodes_[-1]
        self.block_before_last(node.blocks_[0], pad)
        given = [self.read(v) for v in inner.inputs_]
        if inner.kind == "prim::CallMethod":
            given[0] = f"({given[0]}).{inner.attributes['name']}"
        elif inner.kind != "prim::CallFunction":
            raise RuntimeError("only forked calls of functions and methods can be saved")
        self.bind(node, f"fork({', '.join(given)})", pad)

    def block_before_last(self, block: Block, pad: str) -> None:
        """All statements of a block but the last."""
        for node in block.nodes_[:-1]:
            form = getattr(self, "_" + node.kind.replace("::", "_"), None)
            if node.kind == "prim::Constant":
                continue
            if form is not None:
                form(node, pad)
            else:
                self.bind(node, self.expression(node), pad)

    def _prim_SetAttr(self, node: Node, pad: str) -> None:
        of, value = map(self.read, node.inputs_)
        name = node.attributes["name"]
        self.lines.append(f"{pad}{_bracketed(of)}.{name} = {value}")

    def _prim_RaiseException(self, node: Node, pad: str) -> None:
        given = [self.read(v) for v in node.inputs_ if v.type() is not T.NONE]
        self.lines.append(f"{pad}ops.prim.RaiseException({', '.join(given)})")

    def _prim_Print(self, node: Node, pad: str) -> None:
        self.lines.append(f"{pad}print({', '.join(map(self.read, node.inputs_))})")

    def _prim_TupleUnpack(self, node: Node, pad: str) -> None:
        if node.outputs_:
            names = [self.name(v) for v in node.outputs_]
            self.lines.append(f"{pad}{', '.join(names)}, = {self.read(node.inputs_[0])}")

    _prim_ListUnpack = _prim_TupleUnpack  # noqa: N815 - the kind of the nodes

    def _prim_PythonOp(self, node: Node, pad: str) -> None:
        op = node.attributes["_function"]
        if isinstance(op, CustomOp) and "->" in op.schema and not op.overload:
            shown = self.arguments(node, parse(op.schema), list(map(self.read, node.inputs_)))
            self.bind(node, f"ops.{op._name.replace('::', '.')}({shown})", pad)
            return
        raise RuntimeError(
            f"Could not export Python function call '{node.attributes['name']}'. Remove calls to "
            "Python functions before export, or mark them as unused."
        )

    def expression(self, node: Node) -> str:
        """The expression of a node."""
        given = [self.read(v) for v in node.inputs_]
        form = _EXPRESSIONS.get(node.kind)
        if form is not None:
            return form(self, node, given)
        schema = node.schema
        space, _, name = node.kind.partition("::")
        shown = self.arguments(node, schema, given)
        self.constants.ops.add(node.kind)
        if space == "aten" and name.isidentifier():
            return f"torch.{name}({shown})"
        return f"ops.{space}.{name}({shown})"

    def arguments(self, node: Node, schema: Schema | None, given: list[str]) -> str:
        """The arguments of an op, without defaults at the end."""
        if schema is None:
            return ", ".join(given)
        _is_default = compiler.execute._is_default

        pairs = list(zip(schema.arguments, node.inputs_, given, strict=False))
        extra = given[len(schema.arguments) :]
        while pairs and not extra and _is_default(pairs[-1][0], pairs[-1][1]):
            pairs.pop()
        parts = []
        for argument, value, text in pairs:
            if argument.keyword_only and _is_default(argument, value):
                continue
            parts.append(f"{argument.name}={text}" if argument.keyword_only else text)
        return ", ".join([*parts, *extra])


def _bracketed(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _tuple(p: _Printer, node: Node, given: list[str]) -> str:
    kind = node.output().type()
    inside = f"({', '.join(given)}{',' if len(given) == 1 else ''})"
    if isinstance(kind, NamedTupleType) and kind.name.startswith("__torch__"):
        p.constants.needs(kind)
        return f"{kind.name}({', '.join(given)})"
    return inside


def _list(p: _Printer, node: Node, given: list[str]) -> str:
    kind = node.output().type()
    inside = f"[{', '.join(given)}]"
    if not given or any(v.type() is not kind.args[0] for v in node.inputs_):
        return f"annotate({kind.annotation}, {inside})"
    return inside


def _dict(p: _Printer, node: Node, given: list[str]) -> str:
    pairs = [f"{k}: {v}" for k, v in zip(given[::2], given[1::2], strict=True)]
    inside = f"{{{', '.join(pairs)}}}"
    return f"annotate({node.output().type().annotation}, {inside})" if not pairs else inside


def _get(p: _Printer, node: Node, given: list[str]) -> str:
    name = node.attributes["name"]
    if name.isidentifier() and not keyword.iskeyword(name):
        return f"{_bracketed(given[0])}.{name}"
    return f'getattr({given[0]}, "{name}")'


def _call_method(p: _Printer, node: Node, given: list[str]) -> str:
    inside = "".join(f"{each}, " for each in given[1:])
    return f"({given[0]}).{node.attributes['name']}({inside})"


def _call_function(p: _Printer, node: Node, given: list[str]) -> str:
    return f"{given[0]}({''.join(f'{each}, ' for each in given[1:])})"


def _isinstance(p: _Printer, node: Node, given: list[str]) -> str:
    for kind in node.attributes["_types"]:
        p.constants.needs(kind)
    kinds = [kind.annotation for kind in node.attributes["_types"]]
    shown = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
    return f"isinstance({given[0]}, {shown})"


def _typed(word: str) -> Callable[..., Any]:
    def form(p: _Printer, node: Node, given: list[str]) -> str:
        kind = node.output().type().annotation
        return f"{word}({', '.join([kind, *given])})"

    return form


def _create(p: _Printer, node: Node, given: list[str]) -> str:
    kind = node.output().type()
    p.constants.needs(kind)
    return f"{kind.annotation}.__new__({kind.annotation})"


def _cast(word: str) -> Callable[..., Any]:
    return lambda p, node, given: f"{word}({', '.join(given)})"


def _to_list(p: _Printer, node: Node, given: list[str]) -> str:
    return f"annotate({node.output().type().annotation}, ({given[0]}).tolist())"


def _item(p: _Printer, node: Node, given: list[str]) -> str:
    return f"{_bracketed(given[0])}[{given[1]}]"


def _format(p: _Printer, node: Node, given: list[str]) -> str:
    return f"torch.format({', '.join(given)})"


def _attribute(name: str) -> Callable[..., Any]:
    return lambda p, node, given: f"{_bracketed(given[0])}.{name}"


_EXPRESSIONS: dict[str, Any] = {
    "prim::TupleConstruct": _tuple,
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::GetAttr": _get,
    "prim::CallMethod": _call_method,
    "prim::CallFunction": _call_function,
    "prim::isinstance": _isinstance,
    "prim::unchecked_cast": _typed("unchecked_cast"),
    "prim::Uninitialized": _typed("uninitialized"),
    "prim::CreateObject": _create,
    "prim::TupleIndex": _item,
    "prim::tolist": _to_list,
    "prim::EnumName": _attribute("name"),
    "prim::EnumValue": _attribute("value"),
    "aten::__getitem__": _item,
    "aten::Int": _cast("int"),
    "aten::Float": _cast("float"),
    "aten::Bool": _cast("bool"),
    "aten::str": _cast("str"),
    "aten::IntImplicit": _typed("annotate"),
    "aten::FloatImplicit": _typed("annotate"),
    "aten::format": _format,
}
_STATEMENTS = frozenset(
    """prim::Print prim::SetAttr prim::RaiseException prim::TupleUnpack prim::ListUnpack prim::Enter
    prim::Exit prim::fork prim::CreateObject prim::Uninitialized""".split()
)
