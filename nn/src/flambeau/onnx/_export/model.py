"""The written graph as a model of the package onnx."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flambeau import Tensor
from flambeau.onnx._export.errors import (
    CheckerError,
    OnnxExporterError,
    UnsupportedOperatorError,
)
from flambeau.onnx._export.graph import Graph, Node, Value, number_of

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

IR_VERSIONS = {9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8}
"""The oldest version of the format that has an opset."""


def tensor_proto(tensor: Tensor, name: str = "") -> TensorProto:
    """A tensor as ONNX keeps it."""
    from onnx import TensorProto

    proto = TensorProto(name=name, data_type=number_of(tensor.dtype), dims=list(tensor.shape))
    proto.raw_data = _bytes(tensor)
    return proto


def _view(tensor: Tensor) -> memoryview:
    import flambeau as fb

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return memoryview(flat.view(fb.uint8).numpy() if flat.numel() else b"")


def _bytes(tensor: Tensor) -> bytes:
    return bytes(_view(tensor))


class Beside:
    """Weights that lie in a file beside the model's, since a message holds 2 GB at most.

    Args:
        name: of that file.
    """

    SMALLEST, PAGE = 1024, 4096

    def __init__(self, name: str) -> None:
        self.name = name
        self.end = 0
        self.tensors: list[tuple[int, Tensor]] = []

    def tensor_proto(self, tensor: Tensor, name: str) -> TensorProto:
        """A tensor that says where its elements are; small ones have them."""
        from onnx import TensorProto

        size = tensor.numel() * tensor.element_size()
        if size < self.SMALLEST:
            return tensor_proto(tensor, name)
        start = -(-self.end // self.PAGE) * self.PAGE
        self.tensors.append((start, tensor))
        self.end = start + size
        proto = TensorProto(name=name, data_type=number_of(tensor.dtype), dims=list(tensor.shape))
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self.name), ("offset", start), ("length", size)):
            entry = proto.external_data.add()
            entry.key, entry.value = key, str(value)
        return proto

    def write(self, folder: str) -> None:
        """Write the file; one that is there is replaced, since others may have it mapped."""
        path = os.path.join(folder, self.name)
        if os.path.exists(path):
            os.remove(path)
        with open(path, "wb") as file:
            for start, tensor in self.tensors:
                file.write(b"\0" * (start - file.tell()))
                file.write(_view(tensor))


def bytes_of_weights(graph: Graph) -> int:
    """How many bytes the weights of a graph have."""
    return sum(
        value.tensor.numel() * value.tensor.element_size()
        for value in graph.weights
        if value.tensor is not None
    )


def value_info(value: Value) -> ValueInfoProto:
    """Name, dtype and sizes."""
    from onnx import helper

    if value.dtype is None:
        raise OnnxExporterError(f"the dtype of %{value.name} is not known")
    return helper.make_tensor_value_info(value.name, number_of(value.dtype), value.shape)


def _attribute(name: str, letter: str, value: Any, docs: bool) -> AttributeProto:
    from onnx import AttributeProto, helper

    many = isinstance(value, list | tuple)
    if letter == "t":
        value = [tensor_proto(v) for v in value] if many else tensor_proto(value)
        return helper.make_attribute(name, value)
    if letter == "g":
        value = (
            [graph_proto(v, name, docs) for v in value] if many else graph_proto(value, name, docs)
        )
        return helper.make_attribute(name, value)
    if letter == "i":
        value = [int(v) for v in value] if many else int(value)
        kind = AttributeProto.INTS if many else AttributeProto.INT
    elif letter == "f":
        value = [float(v) for v in value] if many else float(value)
        kind = AttributeProto.FLOATS if many else AttributeProto.FLOAT
    else:
        kind = AttributeProto.STRINGS if many else AttributeProto.STRING
    return helper.make_attribute(name, value, attr_type=kind)


def node_proto(node: Node, docs: bool = False) -> NodeProto:
    """A node with its attributes."""
    from onnx import NodeProto

    proto = NodeProto(op_type=node.name, domain=node.domain)
    proto.input.extend("" if v is None else v.name for v in node.inputs)
    proto.output.extend(v.name for v in node.outputs)
    for name, (letter, value) in node.attributes.items():
        proto.attribute.append(_attribute(name, letter, value, docs))
    if docs and node.source:
        proto.doc_string = node.source
    return proto


def graph_proto(
    graph: Graph,
    name: str,
    docs: bool,
    weights: bool = True,
    also: bool = False,
    beside: Beside | None = None,
) -> GraphProto:
    """A graph; `weights` says whether theirs are in it, `also` whether they are inputs too."""
    from onnx import GraphProto

    proto = GraphProto(name=name)
    proto.node.extend(node_proto(node, docs) for node in graph.nodes)
    proto.input.extend(value_info(v) for v in graph.inputs)
    proto.output.extend(value_info(v) for v in graph.outputs)
    if also or not weights:
        proto.input.extend(value_info(v) for v in graph.weights)
    if weights:
        for value in graph.weights:
            assert value.tensor is not None
            written = tensor_proto if beside is None else beside.tensor_proto
            proto.initializer.append(written(value.tensor, value.name))
    return proto


def model_proto(
    graph: Graph,
    name: str,
    docs: bool,
    weights: bool,
    also: bool,
    opsets: dict[str, int],
    beside: Beside | None = None,
) -> ModelProto:
    """A model.

    Raises:
        CheckerError: the package onnx finds it faulty.
        OnnxExporterError: its blocks are nested more deeply than the package reads.
    """
    from google.protobuf.message import DecodeError

    import flambeau as fb
    from onnx import helper

    try:
        whole = graph_proto(graph, name, docs, weights, also, beside)
    except DecodeError as error:  # protobuf reads a hundred messages within messages
        raise OnnxExporterError(
            "the program's blocks are nested more deeply than the package onnx reads"
        ) from error
    imports = [helper.make_opsetid("", graph.opset)]
    for domain, version in graph.shared.domains.items():
        imports.append(helper.make_opsetid(domain, opsets.get(domain, version)))
    return helper.make_model(
        whole,
        opset_imports=imports,
        ir_version=IR_VERSIONS.get(graph.opset) or helper.find_min_ir_version_for(imports[:1]),
        producer_name="flambeau",
        producer_version=fb.__version__,
    )


LARGEST = 2**31 - 2**24
"""Bytes of weights that fit into one message of the format, beside the nodes."""


def check(model: Any, full: bool, graph: Graph | None = None) -> None:
    """Let the package onnx look at a model, or at a file and what lies beside it.

    Args:
        graph: what it was written from, to say which line is at fault.

    Raises:
        UnsupportedOperatorError: an operator does not take the dtype that it is given.
        CheckerError: it finds it faulty.
    """
    import onnx

    try:
        onnx.checker.check_model(model, full_check=full)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        if graph is not None and (found := _not_taken(graph)):
            raise UnsupportedOperatorError(found) from error
        raise CheckerError(f"the model that was written is faulty: {error}") from error


def _not_taken(graph: Graph) -> str:
    """What is said of the first node with an input of a dtype that its operator does not take."""
    from onnx import TensorProto, defs

    for node in graph.nodes:
        inner = (value for letter, value in node.attributes.values() if letter == "g")
        if found := next(filter(None, map(_not_taken, inner)), ""):
            return found
        if node.domain or not defs.has(node.name, graph.opset):
            continue
        schema = defs.get_schema(node.name, graph.opset)
        kinds = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
        for at, value in enumerate(node.inputs):
            if value is None or value.dtype is None:
                continue
            formal = schema.inputs[min(at, len(schema.inputs) - 1)].type_str
            dtype = TensorProto.DataType.Name(number_of(value.dtype)).lower()
            if f"tensor({dtype})" not in kinds.get(formal, [formal]):
                scope = f", in {node.scope}" if node.scope else ""
                return (
                    f"{node.name} (%{node.outputs[0].name}) cannot be exported to ONNX with opset "
                    f"{graph.opset}: its input {at} (%{value.name}) may not be {value.dtype} "
                    f"there{scope}\n{node.source}"
                ).rstrip()
    return ""
