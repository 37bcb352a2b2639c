"""Graphs as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau import Tensor
from flambeau.onnx._export.graph import Graph, Node

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, ValueInfoProto


def graph_text(graph: Graph) -> str:
    """A graph with a line for each node, as ``verbose`` prints it."""
    given = "\n      ".join(
        f"%{v.name} : {v.shown_type()}" for v in (*graph.inputs, *graph.weights)
    )
    lines = [f"graph({given}):"]
    _nodes(graph, "  ", lines)
    lines.append(f"  return ({', '.join(f'%{v.name}' for v in graph.outputs)})")
    return "\n".join(lines) + "\n"


def _nodes(graph: Graph, pad: str, lines: list[str]) -> None:
    for node in graph.nodes:
        lines.append(pad + _node(node))
        for _, (letter, value) in node.attributes.items():
            if letter == "g":
                given = ", ".join(f"%{v.name} : {v.shown_type()}" for v in value.inputs)
                lines.append(f"{pad}  block({given}):")
                _nodes(value, pad + "    ", lines)
                lines.append(f"{pad}    -> ({', '.join(f'%{v.name}' for v in value.outputs)})")


def _node(node: Node) -> str:
    made = ", ".join(f"%{v.name} : {v.shown_type()}" for v in node.outputs)
    shown = [f"{k}={_shown(v)}" for k, (letter, v) in node.attributes.items() if letter != "g"]
    attributes = f"[{', '.join(shown)}]" if shown else ""
    given = ", ".join("" if v is None else f"%{v.name}" for v in node.inputs)
    scope = f", scope: {node.scope}" if node.scope else ""
    source = f" # {node.source}" if node.source else ""
    return f"{made} = {node.kind()}{attributes}({given}){scope}{source}"


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return _numbers(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)


def _numbers(tensor: Tensor) -> str:
    if tensor.numel() > 8:
        return "<Tensor>"
    numbers = ", ".join(map(str, tensor.reshape(-1).tolist()))
    return f"{{{numbers}}}"


def model_text(model: ModelProto) -> str:
    """A model with all of its messages, as `export_to_pretty_string` gives it."""
    lines = [
        "ModelProto {",
        f'  producer_name: "{model.producer_name}"',
        f'  domain: "{model.domain}"',
        f'  doc_string: "{model.doc_string}"',
        "  graph:",
    ]
    _graph(model.graph, "    ", lines)
    sets = ", ".join(
        f"OperatorSetIdProto {{ domain: {o.domain}, version: {o.version}}}"
        for o in model.opset_import
    )
    lines += [f"  opset_import: [{sets}],", "}"]
    return "\n".join(lines) + "\n"


def _graph(graph: GraphProto, pad: str, lines: list[str]) -> None:
    lines += [f"{pad}GraphProto {{", f'{pad}  name: "{graph.name}"']
    for what, infos in (("inputs", graph.input), ("outputs", graph.output)):
        lines.append(f"{pad}  {what}: [{', '.join(map(_info, infos))}]")
    held = ", ".join(f"{{name: {i.name}, dims: {list(i.dims)}}}" for i in graph.initializer)
    lines.append(f"{pad}  initializers: [{held}]")
    lines.append(f"{pad}  nodes: [")
    for node in graph.node:
        names = [f'"{n}"' for n in node.input], [f'"{n}"' for n in node.output]
        head = f"type: {f'{node.domain}::' if node.domain else ''}{node.op_type}"
        lines.append(
            f"{pad}    Node {{{head}, inputs: [{','.join(names[0])}], "
            f"outputs: [{','.join(names[1])}], "
            f"attributes: [{','.join(_proto_attribute(a) for a in node.attribute)}]}},"
        )
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _graph(attribute.g, pad + "      ", lines)
    lines += [f"{pad}  ]", f"{pad}}}"]


def _info(info: ValueInfoProto) -> str:
    dims = [d.dim_param or str(d.dim_value) for d in info.type.tensor_type.shape.dim]
    return f'{{name: "{info.name}", type:Tensor dims: {" ".join(dims)}}}'


def _proto_attribute(attribute: AttributeProto) -> str:
    from onnx import AttributeProto, helper

    kind = AttributeProto.AttributeType.Name(attribute.type).lower()
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.TENSOR):
        return f"{{ name: '{attribute.name}', type: {kind}, value:...}}"
    value = helper.get_attribute_value(attribute)
    return f"{{ name: '{attribute.name}', type: {kind}, value: {value}}}"
