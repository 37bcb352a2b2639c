"""`export`, its options, and what they change."""

from __future__ import annotations

import contextlib
import enum
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

import flambeau as fb
from flambeau import Tensor, nn
from flambeau.jit import _types as T
from flambeau.jit._graph import Graph as Script
from flambeau.jit._graph import Value as Symbol
from flambeau.jit._tracing.state import for_export
from flambeau.jit.passes import inline
from flambeau.onnx._export.again import as_it_was, made_again
from flambeau.onnx._export.cells import Cell, Module, annotate
from flambeau.onnx._export.errors import OnnxExporterError
from flambeau.onnx._export.examples import resized
from flambeau.onnx._export.graph import Graph, Shared, Value, dtype_of_example
from flambeau.onnx._export.model import LARGEST, Beside, bytes_of_weights, check, model_proto
from flambeau.onnx._export.naming import Names, names_of, weights_of
from flambeau.onnx._export.state import exporting
from flambeau.onnx._export.table import CUSTOM
from flambeau.onnx._export.text import graph_text, model_text
from flambeau.onnx._export.walk import Walk
from flambeau.overrides import takes_as_annotated

OLDEST, NEWEST, DEFAULT = 9, 23, 20


class TrainingMode(enum.Enum):
    """Whether layers are exported as they are in evaluation, in training, or as they are."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """What becomes of ops.

    ``ONNX``: operators of ONNX; what has none is an error.  ``ONNX_ATEN``: all ops become
    ``org.pytorch.aten::ATen``.  ``ONNX_ATEN_FALLBACK``: those that have no operator do.
    ``ONNX_FALLTHROUGH``: those keep their name, in the domain ``aten``.  ``RAW``: all do.
    """

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3
    RAW = 4


@contextlib.contextmanager
def select_model_mode_for_export(model: Any, mode: TrainingMode | bool | None) -> Iterator[None]:
    """Have a model in the mode for export, and give it its modes back.

    >>> import flambeau as fb
    >>> model = fb.nn.Dropout()
    >>> with fb.onnx.select_model_mode_for_export(model, fb.onnx.TrainingMode.EVAL):
    ...     model.training
    False
    >>> model.training
    True
    """
    if isinstance(mode, bool):
        mode = TrainingMode.TRAINING if mode else TrainingMode.EVAL
    if mode is not None and not isinstance(mode, TrainingMode):
        raise TypeError(f"a mode is a TrainingMode, not {type(mode).__name__}")
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    before = [m.training for m in modules]
    try:
        if mode in (TrainingMode.EVAL, TrainingMode.TRAINING, None) and modules:
            model.train(mode is TrainingMode.TRAINING)
        yield
    finally:
        for module, was in zip(modules, before, strict=True):
            module.training = was


def graph_of(model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Script, bool]:
    """The graph of a program without calls, and whether its first input is the module."""
    from flambeau.jit import ScriptFunction, ScriptModule

    if isinstance(model, ScriptModule):
        return model.inlined_graph, True
    if isinstance(model, ScriptFunction):
        graph = model.graph.copy()
        inline(graph)
        return graph, False
    # What depends on the inputs and is no op of the graph would be a constant of it.  That it has
    # a gradient gives it away.
    inputs, named = _with_gradients(args), _with_gradients(kwargs)
    with fb.enable_grad(), _tracing_for_export(model):
        traced = fb.jit.trace(
            model,
            None if named and not inputs else inputs,
            example_kwarg_inputs=named or None,
            check_trace=False,
            strict=False,
        )
    if isinstance(model, nn.Module):
        return traced.inlined_graph, True
    graph = traced.graph.copy()
    inline(graph)
    return graph, False


@contextlib.contextmanager
def _tracing_for_export(model: object) -> Iterator[None]:
    """Let a trace keep what an export needs, and leave the buffers of a module as they were."""
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    bound = [(module, dict(module._buffers)) for module in modules]
    kept = [
        (each, each._version, each.detach().clone())
        for _, buffers in bound
        for each in buffers.values()
        if each is not None
    ]
    before = for_export.set(True)
    try:
        yield
    finally:
        for_export.reset(before)
        for module, buffers in bound:
            module._buffers.clear()
            module._buffers.update(buffers)
        for buffer, version, was in kept:
            if buffer._version != version:
                with fb.no_grad():
                    buffer.copy_(was)


def _with_gradients(value: object) -> Any:
    """Copies of the tensors, those of floating dtypes with gradients."""
    if isinstance(value, Tensor):
        copy = value.detach().clone()
        if copy.dtype.is_floating_point or copy.dtype.is_complex:
            copy = copy.requires_grad_().clone()
        return copy
    if isinstance(value, list | tuple):
        made = [_with_gradients(each) for each in value]
        if isinstance(value, list):
            return made
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, Mapping):
        return {key: _with_gradients(each) for key, each in value.items()}
    return value


def _with_numbers_as_tensors(model: object, value: object) -> Any:
    """Arguments with tensors for the numbers, which are inputs; within lists for traces only."""
    if isinstance(value, bool | int | float):
        return fb.tensor(value, dtype=dtype_of_example(value))
    if isinstance(value, dict):
        return {key: _with_numbers_as_tensors(model, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        made = [
            each
            if _is_script(model) and isinstance(each, list | tuple | dict)
            else _with_numbers_as_tensors(model, each)
            for each in value
        ]
        if isinstance(value, list):
            return made
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return value


_NUMBERS = (T.INT, T.FLOAT, T.BOOL)


def _flat(value: object, path: str, found: list[tuple[str, Tensor]]) -> None:
    if isinstance(value, Tensor):
        found.append((path, value))
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            _flat(each, f"{path}.{at}" if path else str(at), found)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _flat(each, f"{path}.{key}" if path else str(key), found)


class _Export:
    """One export: a program, its inputs, and the options that shape the graph."""

    def __init__(
        self,
        model: object,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        opset: int,
        kind: OperatorExportTypes,
    ) -> None:
        self.model, self.opset, self.kind = model, opset, kind
        self.script, has_self = graph_of(model, args, kwargs)
        symbols = list(self.script.inputs())
        self.owner = symbols[0] if has_self else None
        self.symbols = symbols[has_self:]
        if not _is_script(model):  # where None is no input of the graph
            args = tuple(each for each in args if each is not None)
            kwargs = {name: each for name, each in kwargs.items() if each is not None}
        self.given = _in_order(model, self.symbols, args, kwargs)
        self.found: list[tuple[str, Tensor]] = []
        for symbol, value in zip(self.symbols, self.given, strict=True):
            _flat(value, symbol.debugName(), self.found)
        self.weights = weights_of(model)
        _refuse_shared_constants(self.script, [t for _, t in self.found], self.weights)

    def names(self, wanted: Sequence[str]) -> list[str]:
        """The names of the inputs."""
        count = len(self.found)
        if len(wanted) > count + len(self.weights):
            raise RuntimeError(
                f"number of input names provided ({len(wanted)}) exceeded number of inputs "
                f"({count + len(self.weights)})"
            )
        return [*wanted[:count], *(name for name, _ in self.found[len(wanted) :])]

    def graph(
        self,
        input_names: Sequence[str],
        output_names: Sequence[str],
        dynamic: dict[str, dict[int, str]],
    ) -> Graph:
        """The graph in operators of ONNX.

        Where axes are dynamic the program is walked at two sizes: what differs is dynamic.
        """
        names = self.names(input_names)
        axes = [dynamic.get(name, {}) for name in names]
        tensors = [tensor.detach() for _, tensor in self.found]
        for name, tensor, dims in zip(names, tensors, axes, strict=True):
            for dim in dims:
                if not -tensor.dim() <= dim < tensor.dim():
                    raise ValueError(f"the input {name!r} has no axis {dim} to be dynamic")
        last: OnnxExporterError | None = None
        for second in resized(tensors, axes):
            try:
                return self._graph(names, axes, tensors, second, input_names, output_names, dynamic)
            except OnnxExporterError as error:
                if not any(axes):
                    raise
                last = last or error
        if last is None:
            raise OnnxExporterError(
                "all dynamic axes have the size 0 in the example; other sizes are told from one "
                "that has elements"
            )
        raise last

    def _graph(
        self,
        names: list[str],
        axes: list[dict[int, str]],
        tensors: list[Tensor],
        second: list[Tensor] | None,
        input_names: Sequence[str],
        output_names: Sequence[str],
        dynamic: dict[str, dict[int, str]],
    ) -> Graph:
        known = frozenset([*names, *output_names, *input_names, *self.weights.values()])
        g = Graph(Shared(self.opset, known))
        walk = Walk(self.weights, _writes(self.script), _fallback(self.kind), self.kind in _RAW)
        walk.count = 1 if second is None else 2
        renamed = list(input_names[len(tensors) :])
        walk.reserve([*names, *output_names])
        cells = iter(
            self._input(g, walk, name, every, sizes)
            for name, every, sizes in zip(
                names, zip(tensors, *([second] if second else []), strict=True), axes, strict=True
            )
        )
        env: dict[Symbol, Any] = {}
        if self.owner is not None:
            env[self.owner] = Module("", self.model)
        for symbol, value in zip(self.symbols, self.given, strict=True):
            env[symbol] = _with_cells(value, cells)
            if symbol.type() in _NUMBERS and isinstance(env[symbol], Cell):
                cell = env[symbol]
                cell.examples = tuple(example.item() for example in cell.examples)
        results = walk.block(g, self.script.block, env)
        self._outputs(g, walk, results, output_names, dynamic)
        self._rename_weights(g, renamed)
        _drop_unused(g)
        return g

    def _input(
        self, g: Graph, walk: Walk, name: str, examples: tuple[Tensor, ...], axes: dict[int, str]
    ) -> Cell:
        value = Value(g.name(name))
        if value.name != name:
            raise ValueError(f"there are two inputs of the name {name!r}")
        annotate(value, examples)
        shape = list(value.shape or ())
        for dim, axis in axes.items():
            shape[dim] = axis
        value.shape = tuple(shape)
        g.inputs.append(value)
        copies = tuple(e.clone() for e in examples) if walk.copy else examples
        return Cell(copies, value, g)

    def _outputs(
        self,
        g: Graph,
        walk: Walk,
        results: list[Any],
        names: Sequence[str],
        dynamic: dict[str, dict[int, str]],
    ) -> None:
        flat: list[Any] = []
        for result in results:
            _leaves(result, flat)
        if len(names) > len(flat):
            raise RuntimeError(
                f"number of output names provided ({len(names)}) exceeded number of outputs "
                f"({len(flat)})"
            )
        for at, result in enumerate(flat):
            if isinstance(result, Cell):
                value = result.read(g)
            else:
                value = g.constant(result)
            name = names[at] if at < len(names) else ""
            fixed = value in g.inputs or value in g.weights or value in g.outputs
            if fixed or value.renamed or (value.tensor is not None and value.maker is not None):
                value = _copied(g, value)
            if name:
                g.shared.names.discard(value.name)
                if name in g.shared.names and name not in walk.reserved:
                    name = g.name(name)
                g.shared.names.add(name)
                value.name = name
            value.renamed = True
            shape = list(value.shape or ())
            wanted = dynamic.get(value.name, {})
            for dim, size in enumerate(shape):
                if dim in wanted or dim - len(shape) in wanted:
                    shape[dim] = wanted.get(dim) or wanted[dim - len(shape)]
                elif not isinstance(size, int):
                    shape[dim] = f"{value.name}_dim_{dim}"
            value.shape = tuple(shape)
            g.outputs.append(value)

    def _rename_weights(self, g: Graph, names: list[str]) -> None:
        """Give weights the names that are left over, in the order of the model."""
        order = {name: at for at, name in enumerate(self.weights.values())}
        g.weights.sort(key=lambda v: order.get(v.name, len(order)))
        for value, name in zip(g.weights, names, strict=False):
            value.name = name


_RAW = (OperatorExportTypes.ONNX_ATEN, OperatorExportTypes.RAW)


def _copied(g: Graph, value: Value) -> Value:
    made = g.op("Identity", value)
    made.dtype, made.shape = value.dtype, value.shape
    return made


def _leaves(value: object, found: list[Any]) -> None:
    if isinstance(value, list | tuple):
        for each in value:
            _leaves(each, found)
    elif isinstance(value, Mapping):
        for each in value.values():
            _leaves(each, found)
    elif value is not None:
        found.append(value)


def _with_cells(value: object, cells: Iterator[Cell]) -> Any:
    if isinstance(value, Tensor):
        return next(cells)
    if isinstance(value, list | tuple):
        made = [_with_cells(each, cells) for each in value]
        if isinstance(value, list):
            return made
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, Mapping):
        return {key: _with_cells(each, cells) for key, each in value.items()}
    return value


def _is_script(model: object) -> bool:
    from flambeau.jit import ScriptFunction, ScriptModule

    return isinstance(model, ScriptFunction | ScriptModule)


def _in_order(
    model: object, symbols: list[Symbol], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """The value for each input of the graph."""
    values = list(args[: len(symbols)])
    for symbol in symbols[len(values) :]:
        name = symbol.debugName()
        if name not in kwargs:
            default = _default_of(model, name)
            if default is _MISSING:
                raise TypeError(f"the input {name!r} is missing")
            values.append(default)
        else:
            values.append(kwargs[name])
    if len(args) > len(symbols):
        raise TypeError(f"the model has {len(symbols)} inputs, got {len(args)}")
    return values


_MISSING = object()


def _default_of(model: Any, name: str) -> Any:
    import inspect

    function = model.forward if isinstance(model, nn.Module) else model
    with contextlib.suppress(TypeError, ValueError):
        parameter = inspect.signature(function).parameters.get(name)
        if parameter is not None and parameter.default is not parameter.empty:
            return parameter.default
    return _MISSING


def _writes(script: Script) -> bool:
    """Whether a program writes to tensors."""
    for node in script.block.all_nodes():
        bare = node.kind.rpartition("::")[2]
        if node.kind.startswith("aten::") and (
            (node.schema is not None and node.schema.writes)
            or (bare.endswith("_") and not bare.endswith("__"))
            or bare.startswith("__i")
        ):
            return True
    return False


def _refuse_shared_constants(script: Script, inputs: list[Tensor], weights: dict[int, str]) -> None:
    """Refuse constants that are another view of an input: they would not change with it."""
    places = {t.untyped_storage().data_ptr() for t in inputs if t.numel()}
    for node in script.block.all_nodes():
        value = node.attributes.get("value") if node.kind == "prim::Constant" else None
        if "_captured" in node.attributes:  # the node has a copy
            value = node.attributes["_captured"]()
        if isinstance(value, Tensor) and value.numel() and id(value) not in weights:
            if value.untyped_storage().data_ptr() in places:
                raise OnnxExporterError(
                    "a constant of the program shares the memory of an input, and would stay as "
                    f"it is for the example; make it by ops of tensors\n{node.sourceRange()}"
                )


def _drop_unused(g: Graph) -> None:
    """Leave out nodes that no output needs, and weights that no node reads."""
    used = {id(v) for v in g.outputs}
    kept = []
    for node in reversed(g.nodes):
        if any(id(v) in used for v in node.outputs):
            kept.append(node)
            _mark(node, used)
    g.nodes[:] = reversed(kept)
    g.weights[:] = [v for v in g.weights if id(v) in used]


def _mark(node: Any, used: set[int]) -> None:
    used.update(id(v) for v in node.inputs if v is not None)
    for letter, value in node.attributes.values():
        if letter == "g":
            used.update(id(v) for v in value.outputs)
            for inner in reversed(value.nodes):
                _mark(inner, used)


def _fallback(kind: OperatorExportTypes) -> Callable[..., Any] | None:
    if kind is OperatorExportTypes.ONNX:
        return None
    whole = kind in (OperatorExportTypes.ONNX_ATEN, OperatorExportTypes.ONNX_ATEN_FALLBACK)

    def write(g: Graph, name: str, args: dict[str, Any], outputs: int) -> object:
        space, _, bare = name.rpartition("::")
        tensors = []
        attributes: dict[str, Any] = {}
        for key, value in args.items():
            if isinstance(value, Value):
                tensors.append(value)
            elif isinstance(value, list | tuple) and any(isinstance(v, Value) for v in value):
                tensors += [v for v in value if isinstance(v, Value)]
            elif value is not None:
                _add_attribute(attributes, key, value)
        if whole and space in ("", "aten", "prim"):
            return g.op(
                "org.pytorch.aten::ATen", *tensors, outputs=outputs, operator_s=bare, **attributes
            )
        return g.op(f"{space or 'aten'}::{bare}", *tensors, outputs=outputs, **attributes)

    return write


def _add_attribute(attributes: dict[str, Any], name: str, value: object) -> None:
    first = value[0] if isinstance(value, list | tuple) and value else value
    letters = {bool: "i", int: "i", float: "f", str: "s"}
    letter = letters.get(type(first))
    if letter is not None:
        attributes[f"{name}_{letter}"] = value
    elif isinstance(value, list | tuple) and not value:
        attributes[f"{name}_i"] = []


def _opset(opset_version: int) -> int:
    if isinstance(opset_version, bool) or not isinstance(opset_version, int):
        raise TypeError(f"opset_version is an integer, not {type(opset_version).__name__}")
    if not OLDEST <= opset_version <= NEWEST:
        raise ValueError(f"opset_version is {OLDEST} to {NEWEST}, got {opset_version}")
    return opset_version


def _kind(given: object, aten: bool, raw: bool) -> OperatorExportTypes:
    if aten or raw:
        if given is not None:
            raise ValueError("aten and export_raw_ir are older forms of operator_export_type")
        return OperatorExportTypes.ONNX_ATEN if aten else OperatorExportTypes.RAW
    return OperatorExportTypes.ONNX if given is None else OperatorExportTypes(given)


def _dynamic(given: object, names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Names of dynamic axes by input or output and place."""
    made: dict[str, dict[int, str]] = {}
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"dynamic_axes must be a dictionary, not {type(given).__name__}")
    for name, axes in (given or {}).items():
        if isinstance(axes, Mapping):
            made[name] = {int(dim): str(axis) for dim, axis in axes.items()}
        elif isinstance(axes, list | tuple):
            made[name] = {int(dim): f"{name}_dynamic_axes_{at + 1}" for at, dim in enumerate(axes)}
        else:
            raise TypeError(
                f"dynamic_axes[{name!r}] is a dictionary of axes and names, or a list of axes, "
                f"not {type(axes).__name__}"
            )
        if name not in names:
            warnings.warn(
                f"Provided key {name} for dynamic axes is not a valid input/output name",
                stacklevel=4,
            )
    return made


def made_model(
    model: Any,
    args: Any,
    *,
    kwargs: Mapping[str, Any] | None,
    export_params: bool,
    verbose: bool,
    training: Any,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    kind: OperatorExportTypes,
    opset_version: int | None,
    do_constant_folding: bool,
    dynamic_axes: object,
    keep_initializers_as_inputs: bool | None,
    custom_opsets: Mapping[str, int] | None,
    strip_doc_string: bool,
    place: str | None = None,
    external: bool = False,
) -> tuple[Any, Beside | None]:
    """The model of a program, and what of it lies beside its file.

    Args:
        place: the name of the file beside it; None if there is no such place.
        external: whether weights lie there even if the model has room for them.
    """
    opset = DEFAULT if opset_version is None else _opset(opset_version)
    named = dict(kwargs or {})
    if isinstance(args, Tensor) or not isinstance(args, list | tuple):
        args = (args,)
    given = _with_numbers_as_tensors(model, tuple(args))
    if given and isinstance(given[-1], dict) and not named and not _takes(model, given):
        named, given = given[-1], given[:-1]
    named = _with_numbers_as_tensors(model, named)
    for what, names in (("input_names", input_names), ("output_names", output_names)):
        if isinstance(names, str):
            raise TypeError(f"{what} is a list of names, not one")
    wanted, results = list(input_names or ()), list(output_names or ())
    plain = kind is OperatorExportTypes.ONNX and dynamic_axes is None and not custom_opsets
    if plain and as_it_was(model, opset_version, wanted, results):
        with fb.no_grad():
            proto, beside = made_again(
                model,
                given,
                named,
                export_params,
                keep_initializers_as_inputs,
                place,
                external,
            )
        if verbose:
            print(model_text(proto))
        return proto, beside
    before = names_of(model)
    if before is not None and before.others:
        raise OnnxExporterError(
            f"{before.others[0]!r} of the imported model is no tensor; such a model is "
            "exported with the opset and the names of its file only"
        )
    with select_model_mode_for_export(model, training), exporting(), fb.no_grad():
        export = _Export(model, given, named, opset, kind)
        again = before is not None and before.fit(len(export.found), bool(named))
        if before is not None and again:
            wanted, results = wanted or before.inputs, results or before.outputs
        names = [*export.names(wanted), *results]
        if before is not None and again and dynamic_axes is None and wanted == before.inputs:
            graph = _with_axes_of_before(export, wanted, results, before.axes)
        else:
            graph = export.graph(wanted, results, _dynamic(dynamic_axes, names))
        if do_constant_folding and export_params and not keep_initializers_as_inputs:
            from flambeau.onnx._export.folding import fold

            fold(graph)
    if verbose:
        print(graph_text(graph))
    large = export_params and bytes_of_weights(graph) > LARGEST
    if large and place is None:
        raise ValueError("a model of more than 2 GB is written to a path: its weights go beside it")
    beside = Beside(place) if place is not None and (large or external) else None
    proto = model_proto(
        graph,
        _name(model, before),
        not strip_doc_string,
        export_params,
        bool(keep_initializers_as_inputs),
        dict(custom_opsets or {}),
        beside,
    )
    if beside is None:
        check(proto, full=set(graph.shared.domains) <= {""}, graph=graph)
    return proto, beside


def _with_axes_of_before(
    export: _Export, inputs: list[str], outputs: list[str], axes: dict[str, dict[int, str]]
) -> Graph:
    """The graph of an imported model, whose file says which axes are dynamic."""
    try:
        return export.graph(inputs, outputs, axes)
    except OnnxExporterError as error:
        if not axes:
            raise
        warnings.warn(
            "the model is exported for inputs of these sizes, though its axes were dynamic: "
            f"{str(error).splitlines()[0]}",
            stacklevel=5,
        )
        return export.graph(inputs, outputs, {})


def _name(model: object, before: Names | None) -> str:
    if before is not None and before.graph:
        return before.graph
    return type(model).__name__ if isinstance(model, nn.Module) else "main_graph"


def _takes(model: Any, given: tuple[Any, ...]) -> bool:
    """Whether a dictionary at the end of the arguments is one of them, and none of names."""
    import inspect

    function = model.forward if isinstance(model, nn.Module) else model
    try:
        signature = inspect.signature(function)
        signature.bind(*given)
    except (TypeError, ValueError):
        return False
    parameters, last = signature.parameters, given[-1]
    rest = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if last and not rest and not any(key in parameters for key in last):
        return True
    at = list(parameters.values())[len(given) - 1 :]
    return bool(at) and "dict" in str(at[0].annotation).lower()


def save(proto: Any, f: Any, beside: Beside | None) -> None:
    """Write a model, and what lies beside it.

    Raises:
        CheckerError: the package onnx finds what was written faulty.
    """
    import onnx

    if not isinstance(f, str | os.PathLike):
        f.write(proto.SerializeToString())
        return
    path = os.fspath(f)
    if beside is not None:
        beside.write(os.path.dirname(path))
    onnx.save(proto, path)
    if beside is not None:  # without its weights it would be found faulty
        check(path, full=all(not each.domain for each in proto.opset_import))


@takes_as_annotated
def export(
    model: object,
    args: object = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    export_params: bool = True,
    verbose: bool | None = False,
    training: object = TrainingMode.EVAL,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: OperatorExportTypes | None = None,
    opset_version: int | None = None,
    do_constant_folding: bool = True,
    dynamic_axes: Mapping[str, Any] | None = None,
    keep_initializers_as_inputs: bool | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    aten: bool = False,
    export_raw_ir: bool = False,
    example_outputs: object = None,
    strip_doc_string: bool = True,
    external_data: bool = False,
    use_external_data_format: bool = False,
    enable_onnx_checker: bool = True,
    dynamo: bool = False,
) -> None:
    """Write a program as a model of ONNX.

    A module or function is run once on the arguments, and what it calls is written; a scripted one
    is written with its branches and loops.  Needs the package onnx:
    ``pip install 'onnx>=1.17'``.

    Args:
        model: a module, a scripted one, or a function of tensors.
        args: a tensor or a tuple of arguments; a dictionary at its end has arguments by name.
        f: a path or an open binary file.
        export_params: whether weights are in the file; without, they are inputs.
        verbose: whether the graph is printed.
        training: the mode in which the model is exported; afterwards it is as it was.
        input_names, output_names: names of inputs, then of weights, and of outputs.
        operator_export_type: what becomes of ops without an operator.
        opset_version: of ONNX's operators, 9 to 23; 20 by default, and that of its file for a model
            which was imported: it is written as the file had it, with the weights of the moment.
        do_constant_folding: whether what is computed from constants alone is computed now; what is
            made of weights stays, so that they keep their names.
        dynamic_axes: for names of inputs and outputs, axes whose sizes may differ: a dictionary of
            places and names, or a list of places.
        keep_initializers_as_inputs: whether weights are inputs too, so that others can be given.
        custom_opsets: versions of other domains.
        kwargs: arguments by name.
        aten, export_raw_ir: older forms of `operator_export_type`.
        example_outputs: accepted and not looked at.
        strip_doc_string: whether nodes are written without the lines of the program.
        external_data: whether weights go to a file beside it, as those of more than 2 GB do.
        use_external_data_format: an older name of `external_data`.
        enable_onnx_checker, dynamo: accepted; all models are checked, and there is one exporter.

    Raises:
        UnsupportedOperatorError: an op has no operator in the opset; the error names op and line.
        OnnxExporterError: the program cannot be written, and why.

    >>> import flambeau as fb, io
    >>> file = io.BytesIO()
    >>> net = fb.nn.Linear(2, 1)
    >>> fb.onnx.export(net, fb.ones(1, 2), file, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    >>> loaded = fb.onnx.load(io.BytesIO(file.getvalue()))
    >>> fb.equal(loaded(fb.ones(3, 2)), net(fb.ones(3, 2)))
    True
    """
    if f is None:
        raise TypeError("export writes to a path or an open file, given as f")
    place = os.path.basename(os.fspath(f)) + ".data" if isinstance(f, str | os.PathLike) else None
    proto, beside = made_model(
        model,
        args,
        kwargs=kwargs,
        export_params=export_params,
        verbose=bool(verbose),
        training=training,
        input_names=input_names,
        output_names=output_names,
        kind=_kind(operator_export_type, aten, export_raw_ir),
        opset_version=opset_version,
        do_constant_folding=do_constant_folding,
        dynamic_axes=dynamic_axes,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        custom_opsets=custom_opsets,
        strip_doc_string=strip_doc_string,
        place=place,
        external=external_data or use_external_data_format,
    )
    save(proto, f, beside)


@takes_as_annotated
def export_to_pretty_string(
    model: object,
    args: object,
    f: object = None,
    export_params: bool = True,
    verbose: bool = False,
    training: object = TrainingMode.EVAL,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: OperatorExportTypes | None = None,
    export_type: object = None,
    google_printer: bool = False,
    opset_version: int | None = None,
    keep_initializers_as_inputs: bool | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    do_constant_folding: bool = True,
    dynamic_axes: Mapping[str, Any] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    aten: bool = False,
    export_raw_ir: bool = False,
) -> str:
    """The text of the model that `export` would write.

    Args:
        google_printer: whether to print it as protobuf does, with all numbers.
        f, export_type: accepted and not looked at.

    The other arguments are those of `export`.

    >>> import flambeau as fb
    >>> print(fb.onnx.export_to_pretty_string(fb.nn.ReLU(), fb.ones(2)).splitlines()[0])
    ModelProto {
    """
    proto, _ = made_model(
        model,
        args,
        kwargs=kwargs,
        export_params=export_params,
        verbose=verbose,
        training=training,
        input_names=input_names,
        output_names=output_names,
        kind=_kind(operator_export_type, aten, export_raw_ir),
        opset_version=opset_version,
        do_constant_folding=do_constant_folding,
        dynamic_axes=dynamic_axes,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        custom_opsets=custom_opsets,
        strip_doc_string=True,
    )
    return str(proto) if google_printer else model_text(proto)


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Say how an op is written in ONNX.

    Args:
        symbolic_name: the op with its namespace, such as ``"aten::erfinv"``.
        symbolic_fn: called with the graph and the op's arguments by place: values for tensors, and
            plain numbers, lists and text for others.  It returns a value for each output.
        opset_version: the oldest opset that it is for; those from 1 to 8 mean all.

    Raises:
        ValueError: the name has no namespace, or there is no such opset.

    >>> import flambeau as fb, io
    >>> def erfinv(g, x):
    ...     return g.op("mine::ErfInv", x)
    >>> fb.onnx.register_custom_op_symbolic("aten::erfinv", erfinv, 9)
    >>> text = fb.onnx.export_to_pretty_string(fb.erfinv, fb.zeros(2))
    >>> "mine::ErfInv" in text
    True
    >>> fb.onnx.unregister_custom_op_symbolic("aten::erfinv", 9)
    """
    domain, mark, name = symbolic_name.partition("::")
    if not mark or not name or "::" in name:
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the "
            "format domain::name"
        )
    opset = opset_version if opset_version in range(1, OLDEST) else _opset(opset_version)
    CUSTOM.setdefault(f"{domain or 'aten'}::{name}", {})[opset] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget what `register_custom_op_symbolic` said of an op and opset."""
    name = f"aten{symbolic_name}" if symbolic_name.startswith("::") else symbolic_name
    CUSTOM.get(name, {}).pop(opset_version, None)
