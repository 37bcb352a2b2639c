"""The names that a model which was imported had in its file, for when it is exported again."""

from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.onnx._model import ONNXModule


class Names:
    """Names of inputs, outputs, the graph and the axes whose sizes differ between runs.

    Attributes:
        others: inputs and outputs that are sequences, or may be absent.
    """

    def __init__(self, model: ONNXModule) -> None:
        graph = model._graph
        self.graph: str = graph.name
        self.inputs, self.outputs = list(model.input_names), list(model.output_names)
        named = {value.name: value for value in (*graph.input, *graph.output)}
        kinds = {name: value.type.WhichOneof("value") for name, value in named.items()}
        self.others = [name for name, kind in kinds.items() if kind not in (None, "tensor_type")]
        self.axes: dict[str, dict[int, str]] = {}
        for name in (*self.inputs, *self.outputs):
            axes = _axes(name, named[name])
            if axes:
                self.axes[name] = axes

    def fit(self, inputs: int, named: bool) -> bool:
        """Whether they are those of a call with so many tensors, by place."""
        return inputs == len(self.inputs) and not named


def _axes(name: str, value: Any) -> dict[int, str]:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return {}
    return {
        at: dim.dim_param or f"{name}_dim_{at}"
        for at, dim in enumerate(kind.shape.dim)
        if not dim.HasField("dim_value")
    }


def names_of(model: object) -> Names | None:
    """What an imported model was called; None of others."""
    return Names(model) if isinstance(model, ONNXModule) else None


def weights_of(model: object) -> dict[int, str]:
    """The names of parameters and buffers, by the identity of the tensor."""
    names: dict[int, str] = {}
    if isinstance(model, ONNXModule):
        for name, tensor in model._constants().items():
            names.setdefault(id(tensor), name)
    elif isinstance(model, nn.Module):
        for each in (model.named_parameters(remove_duplicate=False), model.named_buffers()):
            for name, tensor in each:
                names.setdefault(id(tensor), name)
    return names
