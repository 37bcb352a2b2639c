"""A model that was imported, written as it was: its own graph with the weights of the moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flambeau.onnx._export.model import LARGEST, Beside, check, tensor_proto
from flambeau.onnx._model import ONNXModule
from flambeau.onnx._operators.table import DTYPES

if TYPE_CHECKING:
    from onnx import ModelProto


def as_it_was(
    model: object, opset: int | None, inputs: Sequence[str], outputs: Sequence[str]
) -> bool:
    """Whether a model is written as its file had it.

    So is an imported module that computes what its graph says: nothing is hooked in, its weights
    have the dtypes and sizes of the file, and neither other names nor another opset are wanted.
    """
    if not isinstance(model, ONNXModule) or type(model) is not ONNXModule:
        return False
    if model._forward_hooks or model._forward_pre_hooks:
        return False
    if opset not in (None, model.opsets[""]):
        return False
    for wanted, names in ((inputs, model.input_names), (outputs, model.output_names)):
        if list(wanted) != names[: len(wanted)]:
            return False
    held = model._constants()
    return all(
        DTYPES[kept.data_type] is held[kept.name].dtype
        and tuple(kept.dims) == tuple(held[kept.name].shape)
        for kept in model._graph.initializer
    )


def written_again(
    model: ONNXModule, export_params: bool, also_inputs: bool | None, beside: Beside | None
) -> ModelProto:
    """The model of an imported module, with the weights that it has now.

    Args:
        export_params: whether weights are in it; without, they are inputs.
        also_inputs: whether weights are inputs too; None for those that the file had so.
        beside: where they go if they do not go into the message.
    """
    from onnx import ModelProto, helper

    proto = ModelProto()
    proto.CopyFrom(model._head)
    graph = proto.graph
    graph.CopyFrom(model._graph)
    del graph.initializer[:]
    held = model._constants()
    weights = [(kept, held[kept.name]) for kept in model._graph.initializer]
    known = {value.name for value in graph.input}
    if also_inputs or not export_params:
        for kept, _ in weights:
            if kept.name not in known:
                info = helper.make_tensor_value_info(kept.name, kept.data_type, list(kept.dims))
                graph.input.append(info)
    elif also_inputs is False and proto.ir_version >= 4:
        names = {kept.name for kept, _ in weights}
        left = [value for value in graph.input if value.name not in names]
        del graph.input[:]
        graph.input.extend(left)
    if export_params:
        for kept, tensor in weights:
            made = (beside.tensor_proto if beside else tensor_proto)(tensor, kept.name)
            if kept.doc_string:
                made.doc_string = kept.doc_string
            graph.initializer.append(made)
    if beside is None:
        check(proto, full=False)
    return proto


def made_again(
    model: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    export_params: bool,
    also_inputs: bool | None,
    place: str | None,
    external: bool,
) -> tuple[ModelProto, Beside | None]:
    """The model, and what lies beside its file.

    Raises:
        ValueError: it is larger than a message of the format and has no place beside it.
    """
    model(*args, **kwargs)  # what it is not made for is told here
    count = sum(t.numel() * t.element_size() for t in model._constants().values())
    large = export_params and count > LARGEST
    if large and place is None:
        raise ValueError("a model of more than 2 GB is written to a path: its weights go beside it")
    beside = Beside(place) if place is not None and (large or external) else None
    return written_again(model, export_params, also_inputs, beside), beside
