"""The walk over a graph of TorchScript that writes a graph of ONNX.

Each node is computed for the examples, which tells dtypes, sizes and which tensors share memory,
and written by its symbolic function.  What depends on no input is computed and not written.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.jit._execute import evaluate_with
from flambeau.jit._graph import Block
from flambeau.jit._graph import Node as Step
from flambeau.jit._graph import Value as Symbol
from flambeau.jit._schemas import Schema
from flambeau.onnx._export import control, programs
from flambeau.onnx._export.cells import Cell, Module, annotate, convert, leaves
from flambeau.onnx._export.effects import Contents, Frame, Place, contents, note_write
from flambeau.onnx._export.errors import OnnxExporterError, UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value, dtype_of_example
from flambeau.onnx._export.table import custom, fitting, load
from flambeau.utils._named_ops import CustomOp

LOOSE = frozenset(
    """nonzero masked_select unique unique_consecutive argwhere repeat_interleave where bincount
    nonzero_numpy _pack_padded_sequence _pad_packed_sequence""".split()
)
"""Ops whose results have sizes that depend on what is in the inputs."""


PLACES = frozenset(
    "select select_scatter slice_scatter roll rot90 triu tril triu_ tril_ diagonal_scatter".split()
)
"""Ops whose integers say where, and not how many."""

OF_BOUNDS = frozenset("arange range linspace logspace".split())
"""Ops whose sizes are told by numbers of any kind."""


def _has_sizes_of_values(schema: Schema | None, bare: str, given: list[Any]) -> bool:
    if bare == "where":  # of three it chooses, of one it finds
        return len(given) == 1
    if bare == "index":
        return any(cell.examples[0].dtype in (fb.bool, fb.uint8) for cell in leaves(given[1:]))
    if bare == "repeat_interleave" and len(given) > 1 and isinstance(given[1], int):
        return False
    return bare in LOOSE or _is_told_sizes(schema, bare, given)


def _is_told_sizes(schema: Schema | None, bare: str, given: list[Any]) -> bool:
    """Whether a size among the arguments is what an input holds."""
    if schema is None or bare in PLACES:
        return False
    kinds = ("int", "number", "Scalar", "float") if bare in OF_BOUNDS else ("int",)
    for argument, value in zip(schema.arguments, given, strict=False):
        if bare == "narrow" and argument.name == "start":
            continue
        if not any(kind in argument.type.shown for kind in kinds):
            continue
        if any(not cell.known and not cell.measured for cell in leaves(value)):
            return True
    return False


RANDOM = frozenset(
    """rand randn rand_like randn_like randint randint_like bernoulli bernoulli_ normal normal_
    uniform_ multinomial dropout dropout_ feature_dropout feature_dropout_ alpha_dropout rrelu
    randperm exponential_ random_ poisson""".split()
)

TAKES_APART = frozenset("aten::unbind prim::ListUnpack prim::TupleUnpack".split())
"""What stays in a graph for the errors that it may raise."""

RESHAPES = frozenset(
    """view reshape flatten unflatten squeeze unsqueeze view_as reshape_as contiguous detach
    alias ravel _unsafe_view""".split()
)

ALONG = frozenset(
    """all any amax amin argmax argmin argsort cumprod cumsum gather index_add index_copy
    index_fill log_softmax logsumexp masked_scatter max mean median min norm prod scatter
    scatter_add scatter_reduce softmax sort std std_mean sum take_along_dim topk var
    var_mean""".split()
)
"""Ops along a dimension, which numbers are taken by as well."""

OF_KINDS = frozenset("device dtype layout is_floating_point is_complex is_signed is_cuda".split())
"""What is asked of a tensor and does not depend on its elements or sizes."""

SILENT = frozenset({"prim::Print", "aten::warn", "prim::profile", "prim::AutogradZero"})

STRUCTURAL = frozenset(
    """prim::unchecked_cast prim::unchecked_unwrap_optional prim::ListConstruct
    prim::TupleConstruct prim::DictConstruct prim::ListUnpack prim::TupleUnpack prim::TupleIndex
    prim::TupleSlice prim::Uninitialized prim::CreateObject prim::rangelist
    aten::_unwrap_optional""".split()
)
"""What builds lists, tuples and dictionaries, or takes them apart."""

OF_LISTS = frozenset(
    """append extend insert pop clear reverse list dict keys values items _set_item __getitem__
    copy get len slice add add_ mul select Delete setdefault update __contains__ index sort
    """.split()
)
"""What works on lists and dictionaries, if it is given one."""

OF_PLACES = frozenset("__getitem__ _set_item insert pop Delete".split())
"""What works on lists at a place."""


class Walk:
    """One export: the names of weights, the options, and what is done with an unknown op.

    Args:
        weights: the names of parameters and buffers, by the identity of the tensor.
        copy: weights and inputs are copied, because the program writes to some.
        fallback: writes ops that have no symbolic function; None refuses them.
        raw: all ops are written by `fallback`.
    """

    def __init__(
        self,
        weights: dict[int, str],
        copy: bool,
        fallback: Callable[[Graph, str, dict[str, Any], int], Any] | None,
        raw: bool,
    ) -> None:
        self.weights, self.copy = weights, copy
        self.fallback, self.raw = fallback, raw
        self.known: dict[int, Cell] = {}
        self.kept: list[Any] = []
        self.count = 1
        self.reserved: set[str] = set()
        self.frames: list[Frame] = []
        self.attributes: dict[Place, Any] = {}
        self.owners: dict[Place, Any] = {}
        self.containers: dict[Place, Any] = {}
        self.containers_made: Contents = []

    def reserve(self, names: Sequence[str]) -> None:
        """Keep names for inputs and outputs, which no other value may have."""
        self.reserved = set(names)

    def block(self, g: Graph, block: Block, env: dict[Symbol, Any]) -> list[Any]:
        """Write the nodes of a block; what comes out of it."""
        for step in block.nodes_:
            self.step(g, step, env)
        return [env[v] for v in block.outputs_]

    def step(self, g: Graph, step: Step, env: dict[Symbol, Any]) -> None:
        """Write a node."""
        shared = g.shared
        before = shared.scope, shared.source
        shared.scope = step.scopeName() or shared.scope
        shared.source = step.place.brief() if step.place else shared.source
        try:
            self._step(g, step, env)
        except OnnxExporterError as error:
            if not getattr(error, "placed", False):
                raise self.located(error, g, step) from error
            raise
        finally:
            shared.scope, shared.source = before

    def located(self, error: Exception, g: Graph, step: Step) -> OnnxExporterError:
        """An error that says which op of which line it is about."""
        kind = type(error) if isinstance(error, OnnxExporterError) else OnnxExporterError
        output = next((f" (%{v.debugName()})" for v in step.outputs_), "")
        scope = f", in {g.shared.scope}" if g.shared.scope else ""
        function = step.attributes.get("_function") if step.kind == "prim::PythonOp" else None
        name = function._name if isinstance(function, CustomOp) else step.kind
        text = f"{name}{output} cannot be exported to ONNX with opset {g.opset}: {error}{scope}"
        source = step.sourceRange()
        made = kind(f"{text}\n{source}".rstrip())
        made.placed = True  # type: ignore[attr-defined]
        return made

    def _step(self, g: Graph, step: Step, env: dict[Symbol, Any]) -> None:
        kind = step.kind
        if kind == "prim::Constant":
            env[step.output()] = self.constant(step)
        elif kind == "prim::GetAttr":
            env[step.output()] = self.attribute(g, env[step.input()], step["name"])
        elif kind == "prim::If":
            control.branch(self, g, step, env)
        elif kind == "prim::Loop":
            control.loop(self, g, step, env)
        elif kind == "prim::RaiseException":
            raise OnnxExporterError("the program raises an exception for the example")
        elif kind == "prim::PythonOp":
            programs.write(self, g, step, env)
        elif kind == "prim::SetAttr":
            owner, value = (env[v] for v in step.inputs_)
            self.set(owner, step["name"], value)
        elif kind not in SILENT:
            self.op(g, step, env)

    def constant(self, step: Step) -> Any:
        """What a constant is."""
        attributes = step.attributes
        for key in ("_object", "_function"):
            if key in attributes:
                return attributes[key]
        value = attributes.get("value")
        return self.tensor(None, value) if isinstance(value, Tensor) else value

    def tensor(self, g: Graph | None, tensor: Tensor, name: str = "") -> Cell:
        """A tensor of the program: a weight if the model has it under a name."""
        found = self.known.get(id(tensor))
        if found is not None:
            return found
        name = self.weights.get(id(tensor), name)
        example = tensor.detach()
        example = example.clone() if self.copy else example
        cell = Cell((example,) * self.count, None, None)
        if self.copy:
            cell.examples = tuple(example.clone() for _ in range(self.count))
        if name and g is not None:
            own = g.root.name("" if name in self.reserved else name)
            if own != name:
                warnings.warn(
                    f"the weight {name!r} is called {own!r} in the model, "
                    "where an input or output has its name",
                    stacklevel=2,
                )
            value = Value(own, tensor.dtype, tuple(tensor.shape), tensor.detach())
            g.root.weights.append(value)
            cell.value = value
        self.known[id(tensor)] = cell
        self.kept.append(tensor)
        return cell

    def set(self, owner: object, name: str, value: object) -> None:
        """Let an attribute be something else for the rest of the program."""
        held = owner.object if isinstance(owner, Module) else owner
        self.attributes[id(held), name] = value
        self.owners[id(held), name] = owner

    def attribute(self, g: Graph, owner: object, name: str) -> Any:
        """An attribute of a module or of another object."""
        place = id(owner.object if isinstance(owner, Module) else owner), name
        if place in self.attributes:
            return self.attributes[place]
        if isinstance(owner, Module):
            path = f"{owner.path}.{name}" if owner.path else name
            value = getattr(owner.object, name)
        else:
            path, value = "", getattr(owner, name)
        if not isinstance(value, list | dict):
            return self.held(g, value, path)
        if place not in self.containers:  # the one that the program changes
            self.containers[place] = self.held(g, value, path)
            self.containers_made += contents([self.containers[place]])
        return self.containers[place]

    def held(self, g: Graph, value: object, path: str) -> Any:
        """What a module holds, with cells for tensors."""
        if isinstance(value, Tensor):
            return self.tensor(g, value, path)
        if isinstance(value, fb.nn.Module):
            return Module(path, value)
        if isinstance(value, list | tuple) and not isinstance(value, fb.Size):
            made = [self.held(g, each, f"{path}.{at}") for at, each in enumerate(value)]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, dict):
            return {key: self.held(g, each, f"{path}.{key}") for key, each in value.items()}
        return value

    def schema(self, step: Step) -> Schema | None:
        """The signature of an op."""
        if step.schema is not None:
            return step.schema
        from flambeau.jit._execute import _schema

        return _schema(step)

    def op(self, g: Graph, step: Step, env: dict[Symbol, Any]) -> None:
        """Compute an op for the examples, and write it."""
        given = [env[v] for v in step.inputs_]
        bare = step.kind.rpartition("::")[2]
        if bare in ("__is__", "__isnot__"):
            same = given[0] is given[1]
            self.bind(step, [same if bare == "__is__" else not same], env)
            return
        if bare in OF_PLACES and len(given) > 1 and isinstance(given[1], Cell):
            if isinstance(given[0], list) and not given[1].known:
                env[step.output()] = self.chosen(g, bare, given)
                return
        if step.kind in STRUCTURAL or (
            bare in OF_LISTS and given and isinstance(given[0], list | dict | tuple | str)
        ):
            self.bind(step, self.compute(step, given), env)
            return
        if bare in OF_KINDS:
            self.bind(step, self.compute(step, self.example(given, 0)), env)
            return
        inputs = leaves(given)
        random = bare in RANDOM and _draws(bare, step, given) and _is_seen(step)
        if bare in ("size", "sym_size", "dim", "numel", "len") and isinstance(given[0], Cell):
            if self.sizes(g, step, bare, given, env):
                return
        if all(cell.known for cell in inputs) and not random:
            self.fold(g, step, given, env)
            return
        self.write(g, step, bare, given, env)

    def chosen(self, g: Graph, bare: str, given: list[Any]) -> Cell:
        """The element of a list that an input chooses."""
        parts, index = given[0], given[1]
        if bare != "__getitem__" or not all(isinstance(each, Cell) for each in parts):
            raise OnnxExporterError("where a list is read or written depends on the input")
        g.needs(11, "a choice from a list")
        listed = g.op("SequenceConstruct", *(each.read(g) for each in parts))
        made = g.op("SequenceAt", listed, index.read(g))
        places = [int(at) for at in index.examples]
        cell = Cell(tuple(parts[at].examples[n] for n, at in enumerate(places)), made, g)
        made.shape = None
        cell.loose = True
        annotate(made, cell.examples, loose=True)
        return cell

    def example(self, given: object, at: int) -> Any:
        """Arguments as they were for an example."""
        return convert(given, lambda cell: cell.examples[at])

    def compute(self, step: Step, given: Sequence[Any]) -> list[Any]:
        """What a node makes of arguments."""
        known: dict[Symbol, Any] = {}
        for symbol, value in zip(step.inputs_, given, strict=True):
            if not symbol.is_constant() or isinstance(value, Tensor | Cell):
                known[symbol] = value.object if isinstance(value, Module) else value
        try:
            return evaluate_with(step, known)
        except OnnxExporterError:
            raise
        except Exception as error:  # an op's or a program's own error, told with its node
            raise OnnxExporterError(
                f"it fails for the example: {type(error).__name__}: {error}"
            ) from error

    def bind(self, step: Step, results: Sequence[Any], env: dict[Symbol, Any]) -> None:
        """Note results."""
        env.update(zip(step.outputs_, results, strict=False))

    def fold(self, g: Graph, step: Step, given: list[Any], env: dict[Symbol, Any]) -> None:
        """Note what an op makes of what is known."""
        target = self.target(self.schema(step), step.kind.rpartition("::")[2], given)
        if target is not None:
            note_write(self, g, target)
        for cell in leaves(given):
            cell.need_fresh(g)
        if target is not None:
            target.leave_stale(g)
        back = [self.compute(step, self.example(given, at)) for at in range(self.count)]
        cells = _known_cells(given)

        def known(parts: tuple[Any, ...]) -> object:
            first = parts[0]
            if isinstance(first, Tensor):
                for cell in cells:
                    if cell.examples[0] is first:
                        return cell
                made = Cell(parts, None, g)
                self.relate(g, step, made, given, env)
                return made
            if isinstance(first, list | tuple) and not isinstance(first, fb.Size):
                made = [known(each) for each in zip(*parts, strict=True)]
                return made if isinstance(first, list) else tuple(made)
            return first

        self.bind(step, [known(each) for each in zip(*back, strict=True)], env)

    def sizes(
        self, g: Graph, step: Step, bare: str, given: list[Any], env: dict[Symbol, Any]
    ) -> bool:
        """Note sizes: numbers, but for those that are dynamic."""
        cell = given[0]
        example = cell.examples[0]
        if not isinstance(example, Tensor):
            return False
        if bare == "dim":
            env[step.output()] = example.dim()
            return True
        if not cell.loose and (
            bare != "numel" or all(e.numel() == example.numel() for e in cell.examples)
        ):
            if bare == "numel":
                env[step.output()] = example.numel()
                return True
        value = None if cell.known else cell.read(g)
        if bare == "numel":
            made = g.numel(value) if value is not None else example.numel()
            counts = tuple(e.numel() for e in cell.examples)
            env[step.output()] = self.number(g, made, counts, not cell.loose)
            return True

        def one(dim: int) -> Any:
            sizes = tuple(e.shape[dim] for e in cell.examples)
            if value is None:
                return sizes[0]
            return self.number(g, g.size(value, dim), sizes, not cell.loose)

        if bare == "len":
            env[step.output()] = one(0)
        elif len(given) > 1 and given[1] is not None:
            env[step.output()] = one(given[1])
        else:
            env[step.output()] = [one(dim) for dim in range(example.dim())]
        return True

    def number(
        self, g: Graph, made: Value | int, examples: tuple[Any, ...], measured: bool
    ) -> int | Cell:
        """A number, or the cell of one that depends on the inputs."""
        if not isinstance(made, Value):
            return made
        cell = Cell(examples, made, g)
        cell.measured = measured
        annotate(made, examples)
        return cell

    def write(
        self, g: Graph, step: Step, bare: str, given: list[Any], env: dict[Symbol, Any]
    ) -> None:
        """Write an op by its symbolic function."""
        schema = self.schema(step)
        target = self.target(schema, bare, given)
        if target is not None:
            note_write(self, g, target)
            target.freeze(g)
        if bare == "as_strided":
            _need_order(given[0])
        args = convert(given, lambda cell: cell.read(g))
        results = [self.compute(step, self.example(given, at)) for at in range(self.count)]
        parts = list(zip(*results, strict=True))
        _need_one_rank(given, parts)
        g.shared.results = list(results[0])
        back = self.call(g, step, schema, bare, args, target is not None)
        sized = _has_sizes_of_values(schema, bare, given)
        loose = any(cell.loose for cell in leaves(given)) or sized
        if target is not None:
            new = back[0] if isinstance(back, tuple | list) else back
            if not isinstance(new, Value):
                new = g.constant(new)
            target.loose |= sized
            target.write(g, self.fitted(g, new, target, args[0] if args else None))
            self.bind(step, [target] * len(step.outputs_), env)
            return
        if len(step.outputs_) == 1:
            back = (back,)
        elif not isinstance(back, list | tuple):
            raise OnnxExporterError(f"its symbolic function gave one value of {len(parts)}")
        made = [
            self.cells(g, step, value, examples, given, loose, env)
            for value, examples in zip(back, parts, strict=False)
        ]
        self.bind(step, made, env)

    def target(self, schema: Schema | None, bare: str, given: list[Any]) -> Cell | None:
        """The tensor that an op writes to."""
        if schema is not None and schema.writes:
            for argument, value in zip(schema.arguments, given, strict=False):
                if "!" in argument.text and isinstance(value, Cell):
                    return value
        if bare.endswith("_") and not bare.startswith("_") and isinstance(given[0], Cell):
            return given[0]
        return None

    def fitted(self, g: Graph, new: Value, target: Cell, old: object) -> Value:
        """What is written, with dtype and sizes of what it is written to."""
        dtype = dtype_of_example(target.examples[0])
        new = g.cast(new, dtype)
        shape = old.shape if isinstance(old, Value) else None
        if new.shape is None or new.shape != shape or None in new.shape:
            if isinstance(old, Value) and (new.shape is None or new.shape != shape):
                new = g.expand(new, g.shape_of(old))
        elif new is old or new.maker is None or new.tensor is not None:
            pass
        return target.annotated(new) if new.tensor is None and new is not old else new

    def cells(
        self,
        g: Graph,
        step: Step,
        value: Any,
        examples: tuple[Any, ...],
        given: list[Any],
        loose: bool,
        env: dict[Symbol, Any],
    ) -> Any:
        """Cells for what a symbolic function gave."""
        first = examples[0]
        if isinstance(first, list | tuple) and not isinstance(first, fb.Size):
            made = [
                self.cells(g, step, v, e, given, loose, env)
                for v, e in zip(value, zip(*examples, strict=False), strict=False)
            ]
            return made if isinstance(first, list) else tuple(made)
        if value is None:
            return Cell(examples, None, g)
        if not isinstance(value, Value):
            return value
        for cell in leaves(given):
            if cell.value is value and cell.is_tensor and first is cell.examples[0]:
                return cell
        if (
            value.maker is None
            or value.tensor is not None
            or any(cell.value is value for cell in leaves(given))
        ):
            kept = Cell(examples, value, g)
        else:
            kept = Cell(examples, annotate(value, examples, loose), g)
        kept.loose = loose and isinstance(first, Tensor) and first.dim() > 0
        sources = [cell for cell in leaves(given) if not cell.known]
        kept.measured = bool(sources) and all(cell.measured for cell in sources)
        if isinstance(first, Tensor):
            self.relate(g, step, kept, given, env)
        return kept

    def relate(
        self, g: Graph, step: Step, made: Cell, given: list[Any], env: dict[Symbol, Any]
    ) -> None:
        """Note that a result shares the memory of an argument."""
        if not self.copy:  # nothing is written to
            return
        example = made.examples[0]
        if not example.numel():
            return
        place = example.untyped_storage().data_ptr()
        bare = step.kind.rpartition("::")[2]
        for at, cell in enumerate(given):
            if not isinstance(cell, Cell) or not cell.is_tensor or cell is made:
                continue
            parent = cell.examples[0]
            if not parent.numel() or parent.untyped_storage().data_ptr() != place:
                continue
            replay = functools.partial(self.taken_again, step, given, at, example)
            made.view_of(cell, replay, bare in RESHAPES)
            return

    def taken_again(
        self, step: Step, given: list[Any], at: int, example: Tensor, g: Graph, base: Value
    ) -> Value:
        """A view of another value than the one that the program took it of."""
        args = convert(given, lambda each: each.read(g))
        args[at] = base
        shared = g.shared
        before = shared.results
        again = self.compute(step, self.example(given, 0))
        shared.results = [_as_dtype(each, base.dtype) for each in again]
        try:
            back = self.call(g, step, self.schema(step), step.kind.rpartition("::")[2], args, False)
        finally:
            shared.results = before
        if not isinstance(back, list | tuple):
            return back
        parts = again[0] if len(step.outputs_) == 1 else again
        here = example.storage_offset(), example.shape
        return back[next(n for n, e in enumerate(parts) if (e.storage_offset(), e.shape) == here)]

    def call(
        self,
        g: Graph,
        step: Step,
        schema: Schema | None,
        bare: str,
        args: list[Any],
        writes: bool,
    ) -> Any:
        """What the symbolic function of an op gives."""
        own = custom(step.kind, g.opset)
        if own is not None:
            return own(g, *args)
        table = load()
        entry = None if self.raw else table.get(bare)
        if entry is None and not self.raw and writes and bare.endswith("_"):
            bare = bare[:-1]
            entry = table.get(bare)
            own = custom(f"aten::{bare}", g.opset)
            if own is not None:
                return own(g, *args)
        named = _named(schema, args)
        if step.kind.startswith("prim::"):
            entry = table.get(f"prim_{bare}", entry)
        elif not step.kind.startswith("aten::"):
            entry = None
        if entry is None or entry.since > g.opset:
            if self.fallback is not None:
                return self.fallback(g, step.kind, named, len(step.outputs_))
            if entry is None:
                raise UnsupportedOperatorError(
                    "there is no symbolic function for it; "
                    "flambeau.onnx.register_custom_op_symbolic adds one"
                )
            raise UnsupportedOperatorError(f"it needs opset {entry.since} or newer")
        given = fitting(entry.parameters, named, schema)
        try:
            if bare in ALONG and _without_dimensions(given):
                return _of_one(g, entry.function, given)
            return entry.function(g, **given)
        except UnsupportedOperatorError:
            if self.fallback is None:
                raise
            return self.fallback(g, step.kind, named, len(step.outputs_))


def _without_dimensions(given: dict[str, Any]) -> bool:
    first = next(iter(given.values()), None)
    return isinstance(first, Value) and first.shape == ()


def _of_one(g: Graph, function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """What an op along a dimension makes of a number, which counts as having one of size one."""
    shapes = [getattr(each, "shape", ()) for each in g.shared.results]
    args = {
        name: g.reshape(value, [1]) if isinstance(value, Value) and value.shape == () else value
        for name, value in given.items()
    }
    back = function(g, **args)
    parts = back if isinstance(back, tuple) else (back,)
    if len(shapes) == 1 and isinstance(g.result, list | tuple):
        shapes = [each.shape for each in g.result]
    made = [
        part if len(shape) == 1 else g.reshape(part, g.constant(fb.empty(0, dtype=fb.int64)))
        for part, shape in zip(parts, shapes, strict=True)
    ]
    for part in made:
        part.shape = part.shape if part.shape is not None else ()
    return tuple(made) if isinstance(back, tuple) else made[0]


def _need_one_rank(given: list[Any], parts: list[tuple[Any, ...]]) -> None:
    """Refuse results that have more dimensions for some sizes than for others."""
    for first, *others in parts:
        if not isinstance(first, Tensor) or all(e.dim() == first.dim() for e in others):
            continue
        sizes = zip(*(e.shape for e in given[0].examples), strict=True)
        dim = next(d for d, each in enumerate(sizes) if 1 in each and len(set(each)) > 1)
        raise OnnxExporterError(
            f"whether dimension {dim}, which is dynamic, is squeezed depends on the input"
        )


def _need_order(cell: Cell) -> None:
    """Refuse strides in memory that ONNX's tensors do not have."""
    if any(e.storage_offset() or not e.is_contiguous() for e in cell.examples):
        raise OnnxExporterError(
            "it counts places in the memory of another tensor than the one it is given, which "
            "ONNX has not; call contiguous() and clone() before"
        )


def _as_dtype(value: object, dtype: fb.dtype | None) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and dtype is not None else value


def _known_cells(given: object) -> list[Cell]:
    return [cell for cell in leaves(given) if cell.is_tensor]


def _draws(bare: str, step: Step, given: list[Any]) -> bool:
    """Whether an op draws random numbers: dropout does so in training only."""
    if "dropout" in bare:
        return bool(given[2])
    if bare == "rrelu":
        return bool(given[3]) if len(given) > 3 else False
    return True


def _is_seen(step: Step) -> bool:
    """Whether anything reads what a node makes, or what it writes to, but to take it apart."""
    return step.kind.endswith("_") or any(
        not isinstance(user, Step) or user.kind not in TAKES_APART or _is_seen(user)
        for value in step.outputs_
        for user, _ in value.readers
    )


def _named(schema: Schema | None, args: list[Any]) -> dict[str, Any]:
    if schema is None:
        return {f"argument{at}": value for at, value in enumerate(args)}
    return {a.name: value for a, value in zip(schema.arguments, args, strict=False)}
