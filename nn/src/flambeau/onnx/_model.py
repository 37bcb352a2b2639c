"""A model of ONNX as a module."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import Module, Parameter
from flambeau.onnx._linear import Layer, layers
from flambeau.onnx._operators import OPERATORS, Context
from flambeau.onnx._operators.table import UnsupportedError, dtype_of, shortest
from flambeau.onnx._order import check_order, check_texts, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto

__all__ = ["ONNXModule"]

_DEEPEST = 32  # modules within modules: the rest of a name is one part
_ROOM, _PER_BYTE = 1 << 28, 1000  # bytes that sparse constants may take when they are dense


class ONNXModule(Module):
    """A graph of ONNX that runs on flambeau: called with the graph's inputs, by place or by name.

    Weights of floating dtypes are parameters, under the names that they have in the file; other
    constants are buffers.  The graph computes what it says in either mode: ``train()`` does not
    bring dropout back that an exporter has left out.

    Args:
        model: a ``ModelProto`` of the package onnx.

    Attributes:
        input_names, output_names: of the graph, without its weights.

    Raises:
        UnsupportedError: the model has an operator, a dtype or a form that flambeau lacks.
        ValueError: it is no model that could run, such as one with a text that is none of UTF-8.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        check_texts(model)
        self.opsets = {entry.domain or "": entry.version for entry in model.opset_import} or {"": 1}
        self.opsets.setdefault("", self.opsets.get("ai.onnx", 1))
        # The module has the weights: without them the messages are small, and are pickled so.
        self._head = _without(model, "graph")
        self._graph = _without(model.graph, "initializer", "sparse_initializer")
        self._functions = {(f.domain, f.name): f for f in self._head.functions}
        self._layers = layers(model.graph, model.functions)
        self._paths: dict[str, str] = {}
        for tensor in model.graph.initializer:
            self._keep(tensor.name, tensor_of(tensor))
            kept = self._graph.initializer.add()
            kept.name, kept.data_type = tensor.name, tensor.data_type
            if tensor.doc_string:
                kept.doc_string = tensor.doc_string
            kept.dims.extend(tensor.dims)
        # A few bytes can ask for any memory.
        room = _ROOM + _PER_BYTE * sum(t.ByteSize() for t in model.graph.sparse_initializer)
        for tensor in model.graph.sparse_initializer:
            dense = dense_of(tensor, room)
            room -= dense.nbytes
            self._keep(tensor.values.name, dense)
            kept = self._graph.initializer.add()
            kept.name, kept.data_type = tensor.values.name, tensor.values.data_type
            kept.dims.extend(tensor.dims)
        self.input_names = [i.name for i in model.graph.input if i.name not in self._paths]
        self.output_names = [o.name for o in model.graph.output]
        self._check(model.graph)
        check_order(model.graph, model.functions, set(self._paths))

    def _check(self, graph: GraphProto) -> None:
        for node in graph.node:
            domain = "" if node.domain == "ai.onnx" else node.domain
            if (domain, node.op_type) not in OPERATORS and (
                (node.domain, node.op_type) not in self._functions
            ):
                raise UnsupportedError(f"{place_of(node)}: there is no such operator in flambeau")
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self._check(attribute.g)
                for inner in attribute.graphs:
                    self._check(inner)

    def _keep(self, name: str, value: Tensor) -> None:
        """Register a constant under a path that says its name."""
        if name in self._paths:
            raise ValueError(f"the model has two constants of the name {name!r:.80}")
        *above, last = [part or "_" for part in name.split(".", _DEEPEST)]
        last, path = last.replace(".", "_"), []
        owner: Module = self
        for part in above:
            while part not in owner._modules and hasattr(owner, part):
                part = f"{part}_"
            inner = owner._modules.get(part)
            if inner is None:
                inner = Module()
                owner.add_module(part, inner)
            owner = inner
            path.append(part)
        while hasattr(owner, last):
            last = f"{last}_"
        if value.dtype.is_floating_point or value.dtype.is_complex:
            owner.register_parameter(last, Parameter(value))
        else:
            owner.register_buffer(last, value)
        self._paths[name] = ".".join([*path, last])

    def _constants(self) -> dict[str, Any]:
        known: dict[str, Tensor] = dict(self.named_parameters(remove_duplicate=False))
        known.update(self.named_buffers(remove_duplicate=False))
        return {name: known[path] for name, path in self._paths.items()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of the graph: one, or a tuple.

        Raises:
            TypeError: an input is missing, or there is none of that name.
        """
        values = self._constants()
        if len(args) > len(self.input_names):
            raise TypeError(
                f"the model has {len(self.input_names)} inputs ({', '.join(self.input_names)}), "
                f"got {len(args)}"
            )
        given = dict(zip(self.input_names, args, strict=False))
        for name, value in kwargs.items():
            if name in given or name not in (*self.input_names, *self._paths):
                raise TypeError(f"the model has no further input {name!r}")
            given[name] = value
        missing = [name for name in self.input_names if name not in given]
        if missing:
            raise TypeError(f"the model's inputs {', '.join(missing)} are missing")
        values.update(given)
        tensors = (v for v in (*given.values(), *values.values()) if isinstance(v, Tensor))
        first = next(tensors, None)
        # What operators make by themselves, indices and zeros, lies beside what they are given.
        with fb.device("cpu") if first is None else first.device:
            results = self._run(self._graph, values, self.opsets)
        return results[0] if len(results) == 1 else results

    def _run(
        self, graph: GraphProto, values: dict[str, Any], opsets: dict[str, int]
    ) -> tuple[Any, ...]:
        """The outputs of a graph whose inputs are among the values."""
        for tensor in graph.initializer if graph is not self._graph else ():
            values[tensor.name] = tensor_of(tensor).to(fb.empty(0).device)
        self._run_nodes(graph.node, values, opsets, {}, self._layers)
        try:
            return tuple(values[o.name] for o in graph.output)
        except KeyError as error:  # an operator with fewer results than its node has names for
            raise ValueError(f"no operator gave the result {error!s:.80}") from None

    def _run_nodes(
        self,
        nodes: Iterable[NodeProto],
        values: dict[str, Any],
        opsets: dict[str, int],
        attributes: dict[str, Any],
        layers: dict[str, Layer | None],
    ) -> None:
        for node in nodes:
            name = node.output[0] if node.output else ""
            layer = layers.get(name)
            if layer is None and name in layers:
                continue
            options = {a.name: _attribute(a, attributes) for a in node.attribute}
            options = {k: v for k, v in options.items() if v is not _ABSENT}
            try:
                if layer is None:
                    inputs = [values[name] if name else None for name in node.input]
                    results = self._call(node, inputs, options, values, opsets)
                else:
                    results = layer(values)
            except UnsupportedError as error:
                raise UnsupportedError(f"{place_of(node)}: {error}") from error
            except (IndexError, RuntimeError, TypeError, ValueError) as error:
                error.add_note(f"in {place_of(node)}")
                raise
            except (ArithmeticError, AssertionError, AttributeError, KeyError) as error:
                # A node without an input or attribute that it needs, or with another's.
                said = f"{type(error).__name__}: {error}"
                raise ValueError(f"{place_of(node)} cannot be run: {said:.200}") from error
            if not isinstance(results, tuple):
                results = (results,)
            for name, value in zip(node.output, results, strict=False):
                if name:
                    values[name] = value

    def _call(
        self,
        node: NodeProto,
        inputs: list[Any],
        options: dict[str, Any],
        values: dict[str, Any],
        opsets: dict[str, int],
    ) -> Any:
        domain = "" if node.domain == "ai.onnx" else node.domain
        function = self._functions.get((node.domain, node.op_type))
        if function is not None:
            return self._call_function(function, inputs, options)

        def run(graph: Any, args: Sequence[Any]) -> tuple[Any, ...]:
            inner = dict(values)
            inner.update(zip([i.name for i in graph.input], args, strict=False))
            return self._run(graph, inner, opsets)

        context = Context(opsets.get(domain, 1), len(node.output), run)
        return OPERATORS[domain, node.op_type](context, *inputs, **options)

    def _call_function(
        self, function: FunctionProto, inputs: list[Any], options: dict[str, Any]
    ) -> tuple[Any, ...]:
        opsets = {entry.domain or "": entry.version for entry in function.opset_import}
        values: dict[str, Any] = dict.fromkeys(function.input)
        values.update(zip(function.input, inputs, strict=False))
        given = {a.name: _attribute(a, {}) for a in function.attribute_proto}
        given.update(options)
        self._run_nodes(function.node, values, opsets, given, {})
        return tuple(values[name] for name in function.output)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_graph"] = self._graph.SerializeToString()
        state["_head"] = self._head.SerializeToString()
        del state["_functions"], state["_layers"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        from onnx import GraphProto, ModelProto

        state = dict(state)
        state["_graph"] = GraphProto.FromString(state["_graph"])
        state["_head"] = ModelProto.FromString(state["_head"])
        state["_functions"] = {(f.domain, f.name): f for f in state["_head"].functions}
        state["_layers"] = layers(state["_graph"], state["_head"].functions)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        """The graph's inputs, outputs and number of nodes."""
        return (
            f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}, "
            f"nodes={len(self._graph.node)}"
        )


_ABSENT = object()


def _without(message: Any, *fields: str) -> Any:
    """A copy of a message that lacks some of its fields."""
    made = type(message)()
    for field, value in message.ListFields():
        if field.name in fields:
            continue
        if isinstance(value, int | float | str | bytes):
            setattr(made, field.name, value)
        else:
            getattr(made, field.name).MergeFrom(value)
    return made


def _attribute(attribute: AttributeProto, of_function: dict[str, Any]) -> Any:
    """The value of a node's attribute, which within a function may be the function's own."""
    from onnx import AttributeProto, helper

    if attribute.ref_attr_name:
        return of_function.get(attribute.ref_attr_name, _ABSENT)
    value = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.FLOAT:
        return shortest(value)
    if attribute.type == AttributeProto.FLOATS:
        return [shortest(each) for each in value]
    if attribute.type == AttributeProto.TENSOR:
        return tensor_of(value).to(fb.empty(0).device)
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        return dense_of(value).to(fb.empty(0).device)
    if attribute.type in (AttributeProto.INTS, AttributeProto.STRINGS):
        return [v.decode() if isinstance(v, bytes) else v for v in value]
    return value.decode() if isinstance(value, bytes) else value


def tensor_of(proto: TensorProto) -> Tensor:
    """A ``TensorProto`` as a tensor of its own memory.

    Raises:
        UnsupportedError: strings, and numbers of four bits and fewer.
        ValueError: its values are not as many as its shape says, or lie elsewhere.
    """
    from onnx import TensorProto, numpy_helper

    dtype = dtype_of(proto.data_type)
    if proto.data_location == TensorProto.EXTERNAL:  # the package would look in the working folder
        raise ValueError(
            f"the tensor {proto.name!r:.80} lies beside the model's file, whose path is not given"
        )
    try:
        values = numpy_helper.to_array(proto)
    except (ArithmeticError, TypeError, ValueError) as error:
        said = f"the tensor {proto.name!r:.80} of shape {list(proto.dims)[:64]} has no such values"
        raise ValueError(said) from error
    if not values.size:
        return fb.empty(tuple(values.shape), dtype=dtype)
    return fb.frombuffer(bytearray(values.tobytes()), dtype=dtype).reshape(tuple(values.shape))


def dense_of(proto: Any, room: int = _ROOM) -> Tensor:
    """A ``SparseTensorProto`` as a dense tensor.

    Raises:
        ValueError: it would take more than `room` bytes.
    """
    values, places, sizes = tensor_of(proto.values), tensor_of(proto.indices), list(proto.dims)
    if len(sizes) > 64 or min(sizes, default=0) < 0 or prod(sizes) * values.element_size() > room:
        name = proto.values.name
        raise ValueError(f"the sparse constant {name!r:.80} of shape {sizes[:64]} is too large")
    if places.dim() == 1:
        count = 1
        for size in sizes:
            count *= size
        return fb.zeros(count, dtype=values.dtype).index_put((places,), values).reshape(sizes)
    made = fb.zeros(sizes, dtype=values.dtype)
    return made.index_put(tuple(places.unbind(1)), values)
