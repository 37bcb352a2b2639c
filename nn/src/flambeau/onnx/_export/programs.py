"""Ops and functions of autograd that the program itself defines, written by what it says of them.

Neither is looked into: an op that reads elements or sizes would be a constant of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau.jit._graph import Node as Step
from flambeau.jit._graph import Value as Symbol
from flambeau.jit._schemas import Schema, parse
from flambeau.onnx._export.cells import Cell, convert
from flambeau.onnx._export.errors import OnnxExporterError, UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.inference import infer
from flambeau.onnx._export.table import custom
from flambeau.utils._named_ops import CustomOp

if TYPE_CHECKING:
    from flambeau.onnx._export.walk import Walk


def write(walk: Walk, g: Graph, step: Step, env: dict[Symbol, Any]) -> None:
    """Write a function of autograd by its own `symbolic`, an op by what is registered for it."""
    function = step.attributes["_function"]
    given = [env[v] for v in step.inputs_]
    op = function if isinstance(function, CustomOp) else None
    schema = parse(op.schema) if op is not None and "->" in op.schema else None
    run = op.by_place if op is not None else getattr(function, "apply", function)
    examples = [_run(walk, run, schema, given, at) for at in range(walk.count)]
    several = isinstance(examples[0], tuple)
    parts = list(zip(*examples, strict=True)) if several else [tuple(examples)]
    g.shared.results = list(examples[0]) if several else [examples[0]]
    args = convert(given, lambda cell: cell.read(g))
    back = _written(walk, g, function, schema, args, len(parts))
    if not (several and isinstance(back, tuple | list)):
        back = [back]
    if len(back) != len(parts):
        raise OnnxExporterError(
            f"its symbolic function gave {len(back)} values for {len(parts)} results"
        )
    told = None if op is None else _sizes_told(walk, op, given, parts)
    made = []
    for at, (value, found) in enumerate(zip(back, parts, strict=True)):
        loose = _leaves_sizes_open(value, op is not None)
        if told is not None:
            for each, sizes in zip(_flat(value), told[at], strict=True):
                if isinstance(each, Value):
                    each.shape = sizes
            loose = any(None in sizes for sizes in told[at])
        made.append(walk.cells(g, step, value, found, [], loose, env))
    if len(step.outputs_) == 1 and several:
        env[step.output()] = tuple(made)
    else:
        walk.bind(step, made, env)


def _run(
    walk: Walk, run: Callable[..., Any], schema: Schema | None, given: Sequence[Any], at: int
) -> Any:
    """What it gives for an example.

    Raises:
        OnnxExporterError: it writes to what it is given, or fails.
    """
    written = [] if schema is None else [a.name for a in schema.arguments if "!" in a.text]
    copies: list[tuple[Tensor, int]] = []

    def copied(cell: Cell) -> Any:
        example = cell.examples[at]
        if not isinstance(example, Tensor):
            return example
        copy = example.clone()
        copies.append((copy, copy._version))
        return copy

    if not written:
        try:
            result = run(*convert(given, copied))
        except Exception as error:  # an op's own error, told with its node
            raise OnnxExporterError(
                f"it fails for the example: {type(error).__name__}: {error}"
            ) from error
        if all(copy._version == version for copy, version in copies):
            return result
    named = f" {', '.join(map(repr, written))}" if written else ""
    raise OnnxExporterError(
        f"it writes to what it is given{named}, which ONNX cannot; let it give a new tensor"
    )


def _written(
    walk: Walk, g: Graph, function: Any, schema: Schema | None, args: list[Any], count: int
) -> Any:
    """What the symbolic function gives, or the node that stands for it."""
    if not isinstance(function, CustomOp):
        symbolic = getattr(function, "symbolic", None)
        if symbolic is None:
            raise UnsupportedOperatorError(
                f"{function.__name__} is an autograd.Function without a method `symbolic`"
            )
        return symbolic(g, *args)
    name = function._name.partition(".")[0]
    own = custom(name, g.opset)
    if own is not None:
        return own(g, *args)
    if walk.fallback is not None:
        names = (
            [each.name for each in schema.arguments]
            if schema is not None
            else [f"argument{at}" for at in range(len(args))]
        )
        return walk.fallback(g, name, dict(zip(names, args, strict=True)), count)
    raise UnsupportedOperatorError(
        f"{name} is an op of the program, which is not looked into, and nobody has said how it is "
        f"written; flambeau.onnx.register_custom_op_symbolic({name!r}, function, opset) does, "
        "and OperatorExportTypes.ONNX_FALLTHROUGH writes it under its own name"
    )


def _leaves_sizes_open(value: object, of_op: bool) -> bool:
    """Whether the sizes of what was written are those that ONNX can tell.

    Of operators that are not ONNX's it tells none: those of an op are unknown then, which may
    have found them in elements, and those of a function of autograd are the example's.
    """
    if not isinstance(value, Value) or value.maker is None:
        return of_op
    if value.maker.domain:
        return of_op
    infer(value)
    return True


_TOLD = (7, 8)
"""What a fake implementation gets for a size that depends on elements, in two runs."""


def _flat(value: object) -> list[Any]:
    """A result, or those in a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


Sizes = tuple[int | None, ...]


def _sizes_told(
    walk: Walk, op: CustomOp, given: list[Any], parts: list[tuple[Any, ...]]
) -> list[list[Sizes]] | None:
    """The sizes that the fake implementation tells, None for those it leaves open.

    They are those of each result, or of each tensor in the list that it is.

    Raises:
        OnnxExporterError: it fails, or the op gives something else.
    """
    known: list[list[Sizes]] = []
    for at in range(walk.count):
        runs = [_told(op, [_at(each, at) for each in given], n) for n in _TOLD]
        if runs[0] is None or runs[1] is None:
            return None
        told = _common(runs[0], runs[1])
        found = [[_shape(each) for each in _flat(part[at])] for part in parts]
        if not _fits(told, found):
            raise OnnxExporterError(
                f"the fake implementation of {op._name} says that the results have the sizes "
                f"{told}, and they have {found}"
            )
        known = _common(known, told) if known else told
    return known


def _at(value: object, at: int) -> Any:
    return convert(value, lambda cell: cell.examples[at])


def _shape(value: object) -> Sizes:
    return tuple(value.shape) if isinstance(value, Tensor) else ()


def _told(op: CustomOp, args: list[Any], at: int) -> list[list[Sizes]] | None:
    try:
        with fb.no_grad():
            found = op.sizes_told(args, at)
    except Exception as error:  # of the program, told with its node
        raise OnnxExporterError(
            f"the fake implementation of {op._name} fails: {type(error).__name__}: {error}"
        ) from error
    if found is None:
        return None
    results = found if isinstance(found, tuple) else (found,)
    return [[_shape(each) for each in _flat(part)] for part in results]


def _common(one: list[list[Sizes]], other: list[list[Sizes]]) -> list[list[Sizes]]:
    """Sizes, None where two differ.

    Raises:
        OnnxExporterError: one has more tensors or dimensions than the other.
    """
    if _ranks(one) != _ranks(other):
        raise OnnxExporterError(f"for other sizes it gives other results: {one} and {other}")
    return [
        [
            tuple(n if n == m else None for n, m in zip(a, b, strict=True))
            for a, b in zip(*both, strict=True)
        ]
        for both in zip(one, other, strict=True)
    ]


def _ranks(sizes: list[list[Sizes]]) -> list[list[int]]:
    return [list(map(len, part)) for part in sizes]


def _fits(told: list[list[Sizes]], found: list[list[Sizes]]) -> bool:
    """Whether results have as many parts, dimensions and elements as was told."""
    if _ranks(told) != _ranks(found):
        return False
    pairs = zip((s for p in told for s in p), (s for p in found for s in p), strict=True)
    return all(n in (None, m) for one, other in pairs for n, m in zip(one, other, strict=True))
