"""The graph of one run of a program."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._tensor.overrides import offered
from flambeau.jit import _settings, passes
from flambeau.jit import _types as T
from flambeau.jit._frontend.match import call_op
from flambeau.jit._graph import Graph, Kind, Node, Value
from flambeau.jit._schemas import schemas
from flambeau.jit._tracing.patches import tracing
from flambeau.jit._tracing.recorder import Recorder
from flambeau.jit._tracing.state import for_export
from flambeau.jit._types import ClassType, Type

if TYPE_CHECKING:
    from flambeau.nn.module import Module


_ALLOWED = "Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"


def trace_graph(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    module: Module | None = None,
    kind: ClassType | None = None,
    strict: bool = True,
    name: str = "forward",
    seen: bool = False,
) -> tuple[Graph, Any]:
    """The graph of a call, and what it returned.

    Args:
        function: what is called with the inputs.
        inputs: tensors, or tuples, lists and dicts of them.
        module: whose parameters, buffers and parts are attributes of the first input of the graph.
        kind: the type of that.
        strict: whether a list or dict as result is refused, as its length might be another later.
        seen: whether the types of tensors say what they were: for a graph that is read, not run.

    Raises:
        RuntimeError: a value that no graph can have; a function that is no op.
    """
    recorder = Recorder(name)
    if module is not None:
        assert kind is not None
        recorder.own(module, kind)
    given: list[Any] = []
    named: dict[str, Any] = {}
    names = argument_names(function, len(inputs))
    for each, input_name in zip(inputs, names, strict=True):
        if each is None and for_export.get():
            given.append(None)
            continue
        value = recorder.graph.addInput(input_name, _type_of(each))
        given.append(_enter(recorder, each, value))
    for key, each in (kwargs or {}).items():
        if each is None and for_export.get():
            named[key] = None
            continue
        value = recorder.graph.addInput(key, _type_of(each))
        named[key] = _enter(recorder, each, value)
    with tracing(recorder, function):
        result = offered(function)(*given, **named)
    recorder.here = None
    recorder.graph.registerOutput(_leave(recorder, result, strict))
    recorder.finish()
    if _settings.INLINES:
        passes.inline(recorder.graph)
    if seen:
        for value, real in recorder.reals.items():
            if isinstance(real, fb.Tensor):
                value.setType(T.SeenTensorType.of(real))
        _join_convolutions(recorder.graph)
    passes.eliminate_dead_code(recorder.graph)
    passes.pool_constants(recorder.graph)
    return recorder.graph, result


_CONVOLUTION = re.compile(r"aten::conv(_transpose)?([123])d")


def _join_convolutions(graph: Graph) -> None:
    """Let convolutions be the one op of all ranks that readers of PyTorch's traces expect."""
    for node in list(graph.block.all_nodes()):
        called = _CONVOLUTION.fullmatch(node.kind)
        if called is None:
            continue
        *first, padding = node.inputs_[:5]
        rest = node.inputs_[5:]
        if padding.type() is T.STR:
            _become(node, "aten::_convolution_mode")
            continue
        transposed, off, on = (
            _before(node, value, T.BOOL) for value in (bool(called[1]), False, True)
        )
        if called[1]:
            output_padding, groups, dilation = rest
        else:
            dilation, groups = rest
            nothing = _before(node, 0, T.INT)
            zeros = Node("prim::ListConstruct", [nothing] * int(called[2]), (T.list_of(T.INT),))
            output_padding = zeros.insert_before(node).output()
        given = [*first, padding, dilation, transposed, output_padding, groups, off, off, on, on]
        _become(node, "aten::_convolution")
        node.drop_inputs()
        for value in given:
            node.add_input(value)


def _become(node: Node, op: str) -> None:
    """Let a node be another op, whose last signature is the one of today."""
    node.kind, node.schema = Kind(op), schemas(op)[-1]


def _before(node: Node, value: object, type: Type) -> Value:
    """A constant, put before a node."""
    made = Node("prim::Constant", (), (type,), {"value": value}, node.place)
    return made.insert_before(node).output()


def argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first arguments of a function."""
    found: list[str] = []
    target = getattr(function, "forward", function) if _is_module(function) else function
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            found += [f"{each.name}_{at}" for at in range(count - len(found))]
        elif each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            found.append(each.name)
    found += [f"argument_{at}" for at in range(len(found), count)]
    return found[:count]


def _is_module(what: object) -> bool:
    return isinstance(what, fb.nn.Module)


def _type_of(given: object) -> Type:
    """The type of an input.

    Raises:
        RuntimeError: it is no tensor, and no container of tensors.
    """
    if isinstance(given, fb.Tensor):
        return T.TENSOR
    if given is None and for_export.get():
        return T.NONE
    if isinstance(given, tuple):
        return T.tuple_of(*map(_type_of, given))
    if isinstance(given, list) and given:
        return T.list_of(_type_of(given[0]))
    if isinstance(given, dict) and given:
        key, item = next(iter(given.items()))
        return T.dict_of(T.INT if isinstance(key, int) else T.STR, _type_of(item))
    raise RuntimeError(f"Type '{type(given).__name__}' cannot be traced. {_ALLOWED}")


def _enter(c: Recorder, given: Any, value: Value) -> Any:
    """An input as the program is given it: tensors that no other input is."""
    if isinstance(given, fb.Tensor):
        if id(given) in c.known or id(given) in c.owned:
            given = given.view_as(given)
        c.bind(given, value)
        return given
    if given is None:
        return None
    if isinstance(given, dict):
        return {
            key: _enter(c, each, call_op(c, "aten::__getitem__", [value, c.value(key)]))
            for key, each in given.items()
        }
    kind = "prim::TupleUnpack" if isinstance(given, tuple) else "prim::ListUnpack"
    parts = c.node(kind, [value], [_type_of(each) for each in given]).outputs_
    made = [_enter(c, each, part) for each, part in zip(given, parts, strict=True)]
    if isinstance(given, tuple):
        return type(given)(*made) if hasattr(given, "_fields") else tuple(made)
    return made


def _leave(c: Recorder, result: object, strict: bool) -> Value:
    """The value that a program returned."""
    if isinstance(result, (list, dict)) and strict:
        kind = "list" if isinstance(result, list) else "dict"
        raise RuntimeError(
            f"Encountering a {kind} at the output of the tracer might cause the trace to be "
            "incorrect, this is only valid if the container structure does not change based on the "
            "module's inputs. Consider using a constant container instead (e.g. for `list`, use a "
            "`tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this "
            "and know the side effects, pass strict=False to trace() to allow this behavior."
        )
    if isinstance(result, (list, tuple)):
        parts = [_leave(c, each, strict) for each in result]
        if isinstance(result, list):
            kinds = T.list_of(parts[0].type() if parts else T.TENSOR)
            return c.emit("prim::ListConstruct", parts, kinds)
        return c.emit("prim::TupleConstruct", parts, T.tuple_of(*(p.type() for p in parts)))
    if isinstance(result, dict):
        pairs = [_leave(c, each, strict) for pair in result.items() for each in pair]
        kind_of = pairs[0].type() if pairs else T.STR, pairs[1].type() if pairs else T.TENSOR
        return c.emit("prim::DictConstruct", pairs, T.dict_of(*kind_of))
    if isinstance(result, fb.Tensor):
        return c.tensor(result)
    if result is None or isinstance(result, (bool, int, float, str)):
        return c.value(result)
    raise RuntimeError(
        "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from "
        f"traced functions: found a {type(result).__name__}"
    )
