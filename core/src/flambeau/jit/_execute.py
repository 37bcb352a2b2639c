"""Graphs as functions of Python, generated and compiled once.

Each node is a line; branches and loops are Python's.  Calls of other scripted functions call what
was generated for them.
"""

from __future__ import annotations

import enum
import inspect
import keyword
import math
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._tensor.methods import TensorMethods
from flambeau._tensor.overrides import wanted
from flambeau.jit import _types as T
from flambeau.jit._frontend import builtins as _builtins
from flambeau.jit._frontend import numbers as _numbers
from flambeau.jit._frontend.expressions import LAST
from flambeau.jit._graph import Block, Graph, Node, Value
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import NO_DEFAULT, Argument, Schema, schemas
from flambeau.jit._types import ClassType, EnumType, NamedTupleType, Type
from flambeau.jit.passes._inline import called
from flambeau.utils._named_ops import CustomOp

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._frontend.function import ScriptFunction


def python_function(function: ScriptFunction) -> Callable[..., Any]:
    """The Python function of a scripted one."""
    return generate(function.graph, function.name)


def generate(
    graph: Graph, name: str = "f", decided: Callable[[Tensor], bool] | None = None
) -> Callable[..., Any]:
    """A Python function that does what a graph does; `decided` is asked for truths of tensors."""
    return _Writer(graph, name, decided).function()


def evaluate(node: Node) -> Any:
    """What a node makes of its inputs, which are constants."""
    return evaluate_with(node, {})[0]


def evaluate_with(node: Node, known: dict[Value, Any]) -> list[Any]:
    """What a node makes of inputs of these values."""
    graph = Graph()
    wanted = dict.fromkeys(v for v in node.inputs_ if v in known)
    given = {v: graph.addInput("", v.type()) for v in wanted}
    copy_node = compiler.graph.copy_node

    places: dict[Value, Value] = dict(given)
    for value in node.inputs_:
        if value not in given and value.node is not None:
            graph.block.append(copy_node(value.node, places))
    made = copy_node(node, places)
    graph.block.append(made)
    for output in made.outputs_:
        graph.registerOutput(output)
    back = generate(graph, "one")(*(known[v] for v in given))
    return list(back) if len(made.outputs_) > 1 else [back]


class _Writer:
    """Writes the source of a function."""

    def __init__(
        self, graph: Graph, name: str, decided: Callable[[Tensor], bool] | None = None
    ) -> None:
        self.graph, self.decided = graph, decided
        self.name = name if name.isidentifier() and not keyword.iskeyword(name) else "f"
        self.lines: list[str] = []
        self.pad = "    "
        self.names: dict[Value, str] = {}
        self.globals = _builtins.environment()
        self.count = 0
        self.known: dict[int, str] = {}
        self.sure: set[Value] = set()

    def function(self) -> Callable[..., Any]:
        """The compiled function."""
        given = [self.fresh(v) for v in self.graph.inputs()]
        for value in self.graph.inputs():
            if _is_foreign(value.type()):
                self.line(self.owner(value))
                self.sure.add(value)
        self.block(self.graph.block)
        back = [self.read(v) for v in self.graph.outputs()]
        shown = back[0] if len(back) == 1 else f"({', '.join(back)})" if back else "None"
        self.line(f"return {shown}")
        text = f"def {self.name}({', '.join(given)}):\n" + "\n".join(self.lines)
        exec(compile(text, f"<scripted {self.name}>", "exec"), self.globals)
        made = self.globals[self.name]
        made.__source__ = text
        return made

    def line(self, text: str) -> None:
        self.lines.append(self.pad + text)

    def fresh(self, value: Value) -> str:
        self.count += 1
        name = f"v{self.count}"
        self.names[value] = name
        return name

    def read(self, value: Value) -> str:
        """The expression for a value."""
        if value.is_constant() and value not in self.names:
            return self.constant(value)
        return self.names[value]

    def owner(self, value: Value) -> str:
        """The expression for a value whose attributes or methods are asked for."""
        text, kind = self.read(value), value.type()
        if not _is_foreign(kind) or self.is_sure(value):
            return text
        self.globals["_object_of"] = compiler.classes.object_of
        return f"_object_of({text}, {self.object(kind)})"

    def is_sure(self, value: Value) -> bool:
        """Whether a value is of its class for certain: made here, looked at, or held by one.

        What an archive has in an attribute of a class was looked at, and so is what is put there.
        """
        while value not in self.sure:
            node = value.node
            if node is None or node.kind not in ("prim::CreateObject", "prim::GetAttr"):
                return False
            if node.kind == "prim::CreateObject":
                return True
            value = node.inputs_[0]
        return True

    def constant(self, value: Value) -> str:
        """A constant as an expression."""
        assert value.node is not None
        attributes = value.node.attributes
        if "_function" in attributes:
            return self.object(attributes["_function"].raw)
        if "_object" in attributes:
            return self.object(attributes["_object"])
        what = attributes.get("value")
        if isinstance(what, enum.Enum):
            return self.object(what)
        if isinstance(what, float) and not math.isfinite(what):
            return "_nan" if math.isnan(what) else "_inf" if what > 0 else "(-_inf)"
        if what is None or isinstance(what, (bool, str)):
            return repr(what)
        if isinstance(what, (int, float)):
            return repr(what) if what >= 0 and not math.copysign(1, what) < 0 else f"({what!r})"
        return self.object(what)

    def object(self, what: object) -> str:
        """The name of a global that is an object."""
        name = self.known.get(id(what))
        if name is None:
            name = self.known[id(what)] = f"k{len(self.known)}"
            self.globals[name] = what
        return name

    def block(self, block: Block) -> None:
        """The lines of a block."""
        for node in block.nodes_:
            self.node(node)

    def nested(self, block: Block) -> None:
        """The lines of a block, indented."""
        before, self.pad = self.pad, self.pad + "    "
        self.block(block)
        self.pad = before

    def node(self, node: Node) -> None:
        """The lines of a node."""
        form = _FORMS.get(node.kind)
        if form is not None:
            form(self, node)
            return
        self.assign(node, self.expression(node))

    def assign(self, node: Node, text: str) -> None:
        """Bind what a node makes."""
        outputs = node.outputs_
        if len(outputs) == 1 and outputs[0].readers:
            self.line(f"{self.fresh(outputs[0])} = {text}")
        elif outputs and any(v.readers for v in outputs):
            self.line(f"{', '.join(self.fresh(v) for v in outputs)} = {text}")
        else:
            self.line(text)

    def expression(self, node: Node) -> str:
        """The expression of an op."""
        if node.kind == "aten::Bool" and self.decided and node.inputs_[0].type() is T.TENSOR:
            return f"{self.object(self.decided)}({self.read(node.inputs_[0])})"
        schema = node.schema or _schema(node)
        if schema is None:
            schema = Schema(node.kind, "", (), ())
        full = f"{schema.name}.{schema.overload}" if schema.overload else schema.name
        template = _builtins.TEMPLATES.get(full)
        if schema.name == "aten::append" and any(each.readers for each in node.outputs_):
            template = "_appended({0}, {1})"
        if template is None:
            other = _builtins.TEMPLATES.get(schema.name)
            if other is not None and not self._is_function(schema):
                template = other
        if template is not None:
            return self.filled(template, node)
        return self.call(node, schema)

    def _is_function(self, schema: Schema) -> bool:
        """Whether the expression of a name is not that of this overload."""
        kinds = [a.type for a in schema.arguments]
        if any(a.name == "out" for a in schema.arguments):
            return True
        bare = schema.name.removeprefix("aten::")
        if bare in ("remainder", "pow", "index", "__getitem__"):
            return T.TENSOR in (kinds if bare in ("remainder", "pow") else kinds[:1])
        if bare in ("div", "truediv"):
            return bool(schema.overload) and "mode" in schema.overload
        return bare in ("round", "any", "all", "sum")

    def filled(self, template: str, node: Node) -> str:
        """A template with its inputs."""
        inputs = node.inputs_
        if template in ("_add({0}, {1}, {2})", "_sub({0}, {1}, {2})") and (
            len(inputs) < 3 or inputs[2].toIValue() == 1
        ):
            sign = "+" if template[1] == "a" else "-"
            return f"({self.read(inputs[0])} {sign} {self.read(inputs[1])})"
        if template in _OF_NUMBERS and len(inputs) == 2:
            by = inputs[1].toIValue() if inputs[1].is_constant() else None
            if isinstance(by, int | float) and by and math.isfinite(by):
                template = _OF_NUMBERS[template]
        if "{args}" in template:
            return template.replace("{args}", ", ".join(map(self.read, inputs)))

        def put(found: re.Match[str]) -> str:
            if found[1]:
                return self.meant("ScalarType", inputs[int(found[2])])
            at = int(found[2])
            return self.read(inputs[at]) if at < len(inputs) else "None"

        return re.sub(r"\{(dtype:)?(\d)\}", put, template)

    def sizes(self, argument: Argument, value: Value) -> str:
        """Constant sizes and dimensions as Python writes them; "" for what is none."""
        node = value.node
        if node is None or node.kind != "prim::ListConstruct" or value.type() is not _INTS:
            return ""
        if argument.name in ("self", "l", "list"):  # of a function of lists, which may change it
            return ""
        members = _read_once(node)
        if not members:
            return ""
        parts = [self.constant(each) for each in members]
        if len(parts) == 1:
            return parts[0] if argument.name == "dim" else f"({parts[0]},)"
        return f"({', '.join(parts)})"

    def meant(self, means: str, value: Value) -> str:
        """The dtype, layout or memory format for an integer."""
        if value.is_constant():
            number = value.toIValue()
            return "None" if number is None else self.object(_numbers.object_of(means, number))
        return f"_object({means!r}, {self.read(value)})"

    def call(self, node: Node, schema: Schema) -> str:
        """The call of the public function of an op."""
        function = _builtins.function_of(schema)
        if function is None:
            return f"_not_known({schema.name!r})"
        given = list(zip(schema.arguments, node.inputs_, strict=False))
        while given and _is_default(*given[-1]):
            given.pop()
        takes = _builtins.parameters_of(function)
        parts = []
        positional = True
        for at, (argument, value) in enumerate(given):
            if argument.means:
                text = self.meant(argument.means, value)
            else:
                text = self.sizes(argument, value) or self.read(value)
            if argument.keyword_only:
                positional = False
                if _is_default(argument, value):
                    continue
            elif takes is not None and at >= takes[0] and not takes[2]:
                if _is_default(argument, value) or argument.name not in takes[1]:
                    continue
                positional = False
            parts.append(text if positional else f"{argument.name}={text}")
        if _is_method(function, schema):
            text = f"{parts[0]}.{function.__name__}({', '.join(parts[1:])})"
        else:
            text = f"{self.object(function)}({', '.join(parts)})"
        returns = [each.type for each in schema.returns]
        if len(returns) == 1 and returns[0].kind == "List" and not schema.writes:
            return f"list({text})"
        if schema.name in ("aten::result_type", "aten::promote_types"):
            return f"_number({text})"
        return text


_OF_NUMBERS = {"_divided({0}, {1})": "({0} / {1})"}
"""What needs no care where the divisor is known."""
_METHODS = frozenset(
    name for name, method in vars(TensorMethods).items() if inspect.isfunction(method)
)
"""Functions that are faster as methods of tensors."""


def _is_method(function: Callable[..., Any], schema: Schema) -> bool:
    """Whether an op is the method of its name of the first argument."""
    base = schema.name.removeprefix("aten::")
    return (
        base in _METHODS
        and bool(schema.arguments)
        and schema.arguments[0].name == "self"
        and schema.arguments[0].type is T.TENSOR
        and getattr(function, "__name__", "") == base
        and not any(argument.name == "out" for argument in schema.arguments)
    )


def _is_default(argument: Argument, value: Value) -> bool:
    if argument.default is NO_DEFAULT:
        return False
    if value.is_constant():
        found = value.toIValue()
        return type(found) is type(argument.default) and found == argument.default
    node = value.node
    if node is not None and node.kind == "prim::ListConstruct":
        members = [v.toIValue() for v in node.inputs_]
        if not all(v.is_constant() for v in node.inputs_):
            return False
        default = argument.default
        if not isinstance(default, list):
            default = [default] * (argument.size or 1)
        return members == default
    return False


def _schema(node: Node) -> Schema | None:
    """The signature of a node that was made without one."""
    types = [v.type() for v in node.inputs_]
    fits = compiler.match.fits

    for schema in schemas(node.kind):
        variables: dict[Type, Type] = {}
        wanted = [a.type for a in schema.arguments]
        if len(wanted) >= len(types) and all(
            fits(w, h, variables) for w, h in zip(wanted, types, strict=False)
        ):
            return schema
    found = schemas(node.kind)
    return found[0] if found else None


def _nothing(w: _Writer, node: Node) -> None:
    return None


def _if(w: _Writer, node: Node) -> None:
    outs = [w.fresh(v) for v in node.outputs_]
    w.line(f"if {w.read(node.inputs_[0])}:")
    for at, block in enumerate(node.blocks_):
        if at:
            if not block.nodes_ and not outs:
                break
            w.line("else:")
        before = len(w.lines)
        w.nested(block)
        if outs:
            w.line(f"    {', '.join(outs)} = {', '.join(map(w.read, block.outputs_))}")
        if len(w.lines) == before:
            w.line("    pass")


def _loop(w: _Writer, node: Node) -> None:
    trips, start = node.inputs_[:2]
    body = node.blocks_[0]
    outs = [w.fresh(v) for v in node.outputs_]
    if outs:
        w.line(f"{', '.join(outs)} = {', '.join(map(w.read, node.inputs_[2:]))}")
    for name, value in zip(outs, body.inputs_[1:], strict=True):
        w.names[value] = name
    index = w.fresh(body.inputs_[0])
    goes_on = body.outputs_[0]
    always = goes_on.is_constant() and goes_on.toIValue() is True
    endless = trips.is_constant() and trips.toIValue() == LAST
    first = "" if start.is_constant() and start.toIValue() is True else w.read(start)
    flag = ""
    if endless and not body.inputs_[0].readers:
        if always:
            w.line(f"while {first or 'True'}:")
        else:
            w.count += 1
            flag = f"c{w.count}"
            w.line(f"{flag} = {first or 'True'}")
            w.line(f"while {flag}:")
    else:
        head = f"for {index} in range({w.read(trips)}):"
        if first:
            w.line(f"if {first}:")
            w.pad += "    "
        w.line(head)
    before = len(w.lines)
    w.nested(body)
    if outs:
        last = [w.read(v) for v in body.outputs_[1:]]
        pairs = [(n, v) for n, v in zip(outs, last, strict=True) if n != v]
        if pairs:
            w.line(f"    {', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}")
    if flag:
        w.line(f"    {flag} = {w.read(goes_on)}")
    elif not always:
        w.line(f"    if not {w.read(goes_on)}: break")
    if len(w.lines) == before:
        w.line("    pass")
    if not (endless and not body.inputs_[0].readers) and first:
        w.pad = w.pad[:-4]


def _tuple(w: _Writer, node: Node) -> None:
    parts = [w.read(v) for v in node.inputs_]
    kind = node.output().type()
    if isinstance(kind, NamedTupleType):
        w.assign(node, f"{w.object(_maker(kind))}({', '.join(parts)})")
    else:
        w.assign(node, f"({', '.join(parts)}{',' if len(parts) == 1 else ''})")


def _maker(kind: NamedTupleType) -> Any:
    if kind.maker is None:
        import collections

        kind.maker = collections.namedtuple(
            kind.name.rpartition(".")[2].replace("::", "_"), kind.fields
        )
    return kind.maker


def _list(w: _Writer, node: Node) -> None:
    if (once := _read_once(node)) is not None:
        w.names[node.output()] = f"[{', '.join(map(w.constant, once))}]"
        return
    w.assign(node, f"[{', '.join(map(w.read, node.inputs_))}]")


def _read_once(node: Node) -> list[Value] | None:
    """The members of a list of constants that one node beside it reads; None for others."""
    readers = list(node.output().readers)
    if len(readers) != 1 or not all(each.is_constant() for each in node.inputs_):
        return None
    reader = readers[0][0]
    if not isinstance(reader, Node) or reader.owner is not node.owner or reader.blocks_:
        return None
    compared = reader.kind in ("aten::__is__", "aten::__isnot__")  # Python warns of literals there
    return node.inputs_ if reader.kind.startswith("aten::") and not compared else None


def _dict(w: _Writer, node: Node) -> None:
    read = [w.read(v) for v in node.inputs_]
    pairs = [f"{k}: {v}" for k, v in zip(read[::2], read[1::2], strict=True)]
    w.assign(node, f"{{{', '.join(pairs)}}}")


def _same(w: _Writer, node: Node) -> None:
    w.names[node.output()] = w.read(node.inputs_[0])


def _unpack(w: _Writer, node: Node) -> None:
    outs = [w.fresh(v) for v in node.outputs_]
    given = w.read(node.inputs_[0])
    if not outs:
        return
    if node.kind == "prim::ListUnpack":
        w.globals["_exactly"] = _exactly
        given = f"_exactly({given}, {len(outs)})"
    w.line(f"{', '.join(outs)}{',' if len(outs) == 1 else ''} = {given}")


def _exactly(values: list[Any], count: int) -> list[Any]:
    if len(values) != count:
        raise RuntimeError(f"Expected {count} elements in a list but found {len(values)}")
    return values


def _index(w: _Writer, node: Node) -> None:
    w.assign(node, f"{w.read(node.inputs_[0])}[{w.read(node.inputs_[1])}]")


def _uninitialized(w: _Writer, node: Node) -> None:
    w.names[node.output()] = "None"


def _raise(w: _Writer, node: Node) -> None:
    text = w.read(node.inputs_[0])
    cls = w.read(node.inputs_[1]) if len(node.inputs_) > 1 else "None"
    w.line(f"raise _raised({text}, {cls})")


def _print(w: _Writer, node: Node) -> None:
    w.line(f"print({', '.join(map(w.read, node.inputs_))})")


def _call_function(w: _Writer, node: Node) -> None:
    given = [w.read(v) for v in node.inputs_]
    w.assign(node, f"{given[0]}({', '.join(given[1:])})")


def _call_method(w: _Writer, node: Node) -> None:
    of, *rest = node.inputs_
    given = [w.owner(of), *map(w.read, rest)]
    function = called(node)
    if function is None:  # an interface: the method is that of the object
        w.globals["_method"] = _method
        name = node.attributes["name"]
        looked_at, given[0] = given[0], w.read(of)
        w.assign(node, f"_method({looked_at}, {name!r})({', '.join(given)})")
        return
    w.assign(node, f"{w.object(function.raw)}({', '.join(given)})")


def _is_foreign(kind: Type) -> bool:
    return isinstance(kind, ClassType) and kind.is_foreign


def _method(of: object, name: str) -> Any:
    type_of_object = compiler.classes.type_of_object

    method = type_of_object(of).method(name)
    assert method is not None
    return method.raw


def _get(w: _Writer, node: Node) -> None:
    of = node.inputs_[0]
    w.assign(node, attribute_of(w.owner(of), of.type(), node.attributes["name"]))


def attribute_of(of: str, kind: Type, name: str) -> str:
    """The expression for an attribute of an object."""
    assert isinstance(kind, ClassType)
    if kind.is_module:
        if name in kind.parameters:
            return f"{of}._parameters[{name!r}]"
        if name in kind.buffers:
            return f"{of}._buffers[{name!r}]"
        inner = kind.attributes.get(name)
        if isinstance(inner, ClassType) and (
            inner.is_module or name in kind.values.get("!modules", ())
        ):
            return f"{of}._modules[{name!r}]"
    return f"{of}.{name}" if name.isidentifier() else f"getattr({of}, {name!r})"


def _set(w: _Writer, node: Node) -> None:
    of, value = node.inputs_
    name = node.attributes["name"]
    kind = of.type()
    if isinstance(kind, ClassType) and kind.is_module and value.type() is T.TENSOR:
        w.globals["_put"] = _put
        w.line(f"_put({w.owner(of)}, {name!r}, {w.read(value)})")
        return
    w.line(f"{w.owner(of)}.{name} = {w.owner(value)}")


def _put(module: Any, name: str, value: Tensor) -> None:
    """Let a tensor be an attribute of a module; a parameter stays one, and may be any tensor."""
    for held in (module._parameters, module._buffers):
        if name in held:
            held[name] = value
            return
    setattr(module, name, value)


def _create(w: _Writer, node: Node) -> None:
    kind = node.output().type()
    assert isinstance(kind, ClassType)
    python_class = compiler.classes.python_class

    made = w.object(python_class(kind))
    w.assign(node, f"{made}.__new__({made})")


def _enter(w: _Writer, node: Node) -> None:
    kind = node.inputs_[0].type()
    assert isinstance(kind, ClassType)
    method = kind.method("__enter__")
    assert method is not None
    of = w.owner(node.inputs_[0])
    w.assign(node, f"{w.object(method.raw)}({of})")
    w.line("try:")
    w.pad += "    "
    w.line("pass")


def _exit(w: _Writer, node: Node) -> None:
    kind = node.inputs_[0].type()
    assert isinstance(kind, ClassType)
    method = kind.method("__exit__")
    assert method is not None
    w.pad = w.pad[:-4]
    w.line("finally:")
    w.line(f"    {w.object(method.raw)}({w.owner(node.inputs_[0])}, None, None, None)")


def _isinstance(w: _Writer, node: Node) -> None:
    w.globals["_is_a"] = is_value_of
    kinds = w.object(tuple(node.attributes["_types"]))
    w.assign(node, f"any(_is_a({w.read(node.inputs_[0])}, each) for each in {kinds})")


def _to_list(w: _Writer, node: Node) -> None:
    kind = node.output().type()
    while kind.kind == "List":
        kind = kind.args[0]
    w.assign(node, f"_to_list({w.read(node.inputs_[0])}, {node.attributes['depth']}, {kind.kind})")


def _fork(w: _Writer, node: Node) -> None:
    w.count += 1
    name = f"f{w.count}"
    w.line(f"def {name}():")
    block = node.blocks_[0]
    w.nested(block)
    w.line(f"    return {w.read(block.outputs_[0])}")
    w.assign(node, f"_Future({name})")


def _python(w: _Writer, node: Node) -> None:
    run = node.attributes["_function"]
    function = w.object(run.by_place if isinstance(run, CustomOp) else run)
    w.globals["_given_back"] = _given_back
    kind = w.object(node.output().type())
    given = ", ".join(map(w.read, node.inputs_))
    name, told = node.attributes["name"], node.attributes.get("_told", True)
    w.assign(node, f"_given_back({function}({given}), {kind}, {name!r}, {told})")


def _given_back(value: object, kind: Type, name: str, told: bool) -> Tensor | None:
    """What a function of Python returned, if it is of the type that it is annotated with.

    One without an annotation may return nothing where nobody reads it.
    """
    if value is None and not told:
        return None
    try:
        return cast(value, kind)
    except TypeError:
        raise RuntimeError(
            f"the Python function {name!r} is annotated to return {kind.annotation} and returned "
            f"a {type(value).__name__}"
        ) from None


_INTS = T.list_of(T.INT)

_FORMS: dict[str, Callable[[_Writer, Node], None]] = {
    "prim::Constant": _nothing,
    "prim::If": _if,
    "prim::Loop": _loop,
    "prim::TupleConstruct": _tuple,
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::unchecked_cast": _same,
    "prim::TupleUnpack": _unpack,
    "prim::ListUnpack": _unpack,
    "prim::TupleIndex": _index,
    "prim::Uninitialized": _uninitialized,
    "prim::RaiseException": _raise,
    "prim::Print": _print,
    "prim::CallFunction": _call_function,
    "prim::CallMethod": _call_method,
    "prim::GetAttr": _get,
    "prim::SetAttr": _set,
    "prim::CreateObject": _create,
    "prim::Enter": _enter,
    "prim::Exit": _exit,
    "prim::isinstance": _isinstance,
    "prim::tolist": _to_list,
    "prim::fork": _fork,
    "prim::PythonOp": _python,
}


def is_value_of(value: object, kind: Type) -> bool:
    """Whether a value of Python is one of a type."""
    try:
        cast(value, kind, exact=True)
    except TypeError:
        return False
    return True


_INTEGERS = range(-(1 << 63), 1 << 63)
_PLAIN: dict[Type, Any] = {T.INT: int, T.FLOAT: float, T.STR: str, T.BOOL: bool}


def cast(value: object, kind: Type, exact: bool = False) -> Any:
    """A value as one of a type; containers are copied.

    Raises:
        TypeError: it is none.
    """
    if kind is T.TENSOR:
        if isinstance(value, fb.Tensor):
            return value
    elif kind in _PLAIN:
        if type(value) is not _PLAIN[kind]:
            if exact:
                raise TypeError
            value = _near(value, kind)
        if kind is T.INT and value not in _INTEGERS:
            raise TypeError
        return value
    elif kind is T.ANY:
        return value
    elif kind is T.NONE:
        if value is None:
            return None
    elif kind.kind == "Optional":
        return None if value is None else cast(value, kind.args[0], exact)
    elif kind.kind == "Union":
        for each in kind.args:
            if is_value_of(value, each):
                return cast(value, each, exact)
    elif kind.kind == "List" or kind is T.ANY_LIST:
        if isinstance(value, list) or (isinstance(value, tuple) and not exact):
            if kind is T.ANY_LIST:
                return value
            if exact:
                for each in value:
                    cast(each, kind.args[0], exact)
                return value
            return [cast(each, kind.args[0], exact) for each in value]
    elif kind.kind == "Tuple":
        # What is held, whatever the class of a tuple makes of lengths and loops.
        held = tuple(tuple.__iter__(value)) if isinstance(value, tuple) else ()
        if isinstance(value, tuple) and len(held) == len(kind.args):
            parts = [cast(v, k, exact) for v, k in zip(held, kind.args, strict=True)]
            if isinstance(kind, NamedTupleType):
                return _maker(kind)(*parts)
            return tuple(parts)
    elif kind is T.ANY_TUPLE:
        if isinstance(value, tuple):
            return value
    elif kind.kind == "Dict":
        if isinstance(value, dict):
            key, item = kind.args
            if exact:
                return value
            return {cast(k, key): cast(v, item) for k, v in value.items()}
    else:
        return _object(value, kind, exact)
    raise TypeError


def _near(value: Any, kind: Type) -> int | float | bool | str:
    """What Python takes for a number: a tensor of one element is one, a float is no integer."""
    if kind is T.INT:
        if isinstance(value, (fb.dtype, fb.layout, fb.memory_format)):
            return _numbers.number_of(value)
        if hasattr(value, "__int__") and not isinstance(value, float):
            return int(value)
    elif kind is T.FLOAT:
        if hasattr(value, "__float__") or hasattr(value, "__index__"):
            return float(value)
    elif kind is T.BOOL:
        if value is None or hasattr(value, "__bool__"):
            return bool(value)
    elif kind is T.STR and isinstance(value, str):
        return value
    raise TypeError


def _object(value: object, kind: Type, exact: bool) -> Any:
    if kind is T.COMPLEX and not exact:
        if hasattr(value, "__complex__") or hasattr(value, "__float__"):
            return complex(value)  # type: ignore[arg-type] - it says that it can
    elif kind is T.NUMBER or kind is T.COMPLEX:
        if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
            return value
    elif kind is T.DEVICE:
        if isinstance(value, fb.device):
            return value
        if isinstance(value, (str, int)) and not exact:
            return fb.device(value)
    elif isinstance(kind, EnumType):
        if isinstance(value, kind.maker):
            return value
    elif kind.kind in ("Future", "Await"):
        if hasattr(value, "wait"):
            return value
    elif kind is T.GENERATOR:
        if isinstance(value, fb.Generator):
            return value
    elif isinstance(kind, ClassType):
        type_of_object = compiler.classes.type_of_object

        have = type_of_object(value)
        if have is kind or T.is_subtype(have, kind):
            return value
    elif (kind is T.ANY_ENUM and isinstance(value, enum.Enum)) or (
        kind is T.FUNCTION and callable(value)
    ):
        return value
    raise TypeError


def checked(function: ScriptFunction, skip: int = 0) -> Callable[..., Any]:
    """A function that is called as Python's are, with arguments that are looked at."""
    arguments = function.schema.arguments[skip:]
    space: dict[str, Any] = {"cast": _cast_argument(function), "Tensor": fb.Tensor}
    space |= {_EXACT[kind]: each for kind, each in _PLAIN.items()}
    space["run"] = compiler.planned.Planned(function, space)
    given, lines, passed = [], [], []
    if skip:
        given.append("self")
        passed.append("self")
    keyword_only = False
    for at, argument in enumerate(arguments):
        name = f"a{at}" if keyword.iskeyword(argument.name) else argument.name
        if not name.isidentifier() or name in _RESERVED:
            name = f"a{at}"
        if argument.keyword_only and not keyword_only:
            keyword_only = True
            given.append("*")
        if argument.default is NO_DEFAULT:
            given.append(f"{name}=missing")
        else:
            space[f"d{at}"] = argument.default
            given.append(f"{name}=d{at}")
        space[f"t{at}"] = argument
        exact = _EXACT.get(argument.type)
        test = f"type({name}) is not {exact}" if exact else "True"
        if argument.type is T.INT:
            test += f" or not {_INTEGERS.start} <= {name} < {_INTEGERS.stop}"
        lines.append(f"    if {test}: {name} = cast({name}, {at})")
        passed.append(name)
    space["missing"] = _MISSING
    text = f"def {_identifier(function.name)}({', '.join(given)}):\n"
    space["failed"] = _failed
    text += "\n".join(lines) + "\n    try:\n"
    text += f"        return run({', '.join(passed)})\n"
    text += "    except (RuntimeError, Warning):\n        raise\n"
    text += "    except Exception as error:\n        raise failed(error) from error"
    exec(compile(text, f"<arguments of {function.name}>", "exec"), space)
    return space[_identifier(function.name)]


def _identifier(name: str) -> str:
    return f"call_{name}" if name.isidentifier() else "call"


def _failed(error: Exception) -> RuntimeError:
    """What PyTorch's interpreter makes of every error within a program."""
    return RuntimeError(
        "The following operation failed in the TorchScript interpreter.\n"
        f"RuntimeError: {''.join(traceback.format_exception_only(error)).strip()}"
    )


_RESERVED = frozenset(
    {"run", "cast", "Tensor", "missing", "failed", "error", "_int", "_float", "_bool", "_str"}
)
_EXACT = {T.TENSOR: "Tensor", T.INT: "_int", T.FLOAT: "_float", T.BOOL: "_bool", T.STR: "_str"}
"""Types whose values need no look when Python says that they are of it."""
_MISSING: Any = type("Missing", (), {})()


class OverriddenError(Exception):
    """An argument is not what is taken, and its ``__torch_function__`` may know better."""

    def call(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """What it makes of the call of a function."""
        kind = type(self.args[0])
        return kind.__torch_function__(function, (kind,), args, kwargs)


def _cast_argument(function: ScriptFunction) -> Callable[[Any, int], Any]:
    skip = 1 if function.owner is not None else 0

    def cast_argument(value: object | None, at: int) -> object:
        argument = function.schema.arguments[at + skip]
        if value is _MISSING:
            raise RuntimeError(
                f"{function.name}() is missing value for argument '{argument.name}'. "
                f"Declaration: {declared(function, skip)}"
            )
        try:
            if argument.size is not None and not isinstance(value, (list, tuple)):
                value = [value] * argument.size
            return cast(value, argument.type)
        except (OverflowError, TypeError, ValueError):
            if wanted((value,)):
                raise OverriddenError(value) from None
            hint = (
                "\nInferred the value for argument to be of type 'Tensor' because it was not "
                "annotated with an explicit type."
                if argument.inferred
                else ""
            )
            raise RuntimeError(
                f"{function.name}() Expected a value of type '{argument.type.annotation}' for "
                f"argument '{argument.name}' but instead found type '{type(value).__name__}'."
                f"{hint}\nPosition: {at}\nValue: {value!r}\n"
                f"Declaration: {declared(function, skip)}"
            ) from None

    return cast_argument


def declared(function: ScriptFunction, skip: int = 0) -> str:
    """The signature in errors."""
    schema = function.schema
    shown = ", ".join(str(a) for a in schema.arguments[skip:])
    return f"{function.name}({shown}) -> {function.returned.annotation}"


def refuse(function: ScriptFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise if a call has too many arguments, or unknown names.

    Raises:
        RuntimeError: it has.
    """
    skip = 1 if function.owner is not None else 0
    names = {a.name for a in function.schema.arguments}
    most = len(function.schema.arguments) - skip
    unknown = next((name for name in kwargs if name not in names), None)
    if unknown is not None:
        raise RuntimeError(
            f"Unknown keyword argument '{unknown}' for operator '{function.name}'. "
            f"Schema: {declared(function, skip)}"
        )
    if len(args) > most:
        raise RuntimeError(
            f"{function.name}() expected at most {most} argument(s) but received "
            f"{len(args)} argument(s). Declaration: {declared(function, skip)}"
        )
