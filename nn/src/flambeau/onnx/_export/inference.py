"""What is known of a value from the operator that makes it, where nobody has said it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.onnx._operators.table import DTYPES

if TYPE_CHECKING:
    from flambeau.onnx._export.graph import Value


def infer(value: Value) -> None:
    """Note dtype and sizes of a value, as far as the package onnx can tell them.

    Sizes that are not known stay None; of an operator that is not ONNX's own nothing is known.
    """
    node = value.maker
    if node is None or node.domain or (value.dtype is not None and value.shape is not None):
        return
    for given in node.inputs:
        if given is not None:
            infer(given)
    import onnx
    from flambeau.onnx._export.model import node_proto, tensor_proto
    from onnx import defs, shape_inference

    known = {v.name: _type(v) for v in node.inputs if v is not None}
    data = {
        v.name: tensor_proto(v.tensor, v.name)
        for v in node.inputs
        if v is not None and v.tensor is not None and v.tensor.numel() <= 64
    }
    try:
        schema = defs.get_schema(node.name, node.opset, "")
        opsets = [onnx.helper.make_opsetid("", node.opset)]
        found = shape_inference.infer_node_outputs(
            schema, node_proto(node), known, data, opset_imports=opsets
        )
    except (defs.SchemaError, shape_inference.InferenceError):
        return  # the op, or what is known of its inputs, says too little
    for made in node.outputs:
        told = found.get(made.name)
        if told is None or not told.HasField("tensor_type"):
            continue
        if made.dtype is None:
            made.dtype = DTYPES.get(told.tensor_type.elem_type)
        if made.shape is None and told.tensor_type.HasField("shape"):
            sizes = told.tensor_type.shape.dim
            made.shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in sizes)


def _type(value: Value) -> Any:
    from flambeau.onnx._export.graph import number_of
    from onnx import helper

    number = 0 if value.dtype is None else number_of(value.dtype)
    return helper.make_tensor_type_proto(number, value.shape)
