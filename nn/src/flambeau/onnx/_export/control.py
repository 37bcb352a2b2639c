"""Branches and loops: taken at export if their conditions are known, else ``If`` and ``Loop``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau import Tensor
from flambeau.jit._graph import Block
from flambeau.jit._graph import Node as Step
from flambeau.jit._graph import Value as Symbol
from flambeau.onnx._export.cells import Cell, annotate, leaves
from flambeau.onnx._export.errors import OnnxExporterError
from flambeau.onnx._export.graph import NUMBERS, Graph, Value, dtype_of_example

if TYPE_CHECKING:
    from flambeau import dtype as DType
    from flambeau.onnx._export.walk import Walk

import flambeau as fb

UNROLLED = 64
"""Loops of more known steps are written as ``Loop`` if they can be."""


def branch(walk: Walk, g: Graph, step: Step, env: dict[Symbol, Any]) -> None:
    """A branch."""
    condition = env[step.input()]
    then, otherwise = step.blocks_
    if isinstance(condition, Cell) and condition.known:
        condition = bool(condition.examples[0])
    if not isinstance(condition, Cell):
        taken = then if condition else otherwise
        walk.bind(step, walk.block(g, taken, env), env)
        return
    for one, other in ((then, otherwise), (otherwise, then)):
        if any(node.kind == "prim::RaiseException" for node in one.nodes_):
            # A check of the input, which ONNX cannot make.
            walk.bind(step, walk.block(g, other, env), env)
            return
    if not step.outputs_:
        taken = then if condition.examples[0] else otherwise
        if not taken.nodes_ and not (otherwise if taken is then else then).nodes_:
            return
    sides = []
    for block in (then, otherwise):
        inner = g.inner()
        sides.append((inner, walk.block(inner, block, dict(env))))
    value = g.cast(condition.read(g), fb.bool)
    one, other = sides[0][1], sides[1][1]
    dtypes = [_dtype(a, b) for a, b in zip(one, other, strict=True)]
    for inner, results in sides:
        inner.outputs = [
            _output(inner, result, dtype) for result, dtype in zip(results, dtypes, strict=True)
        ]
    if not step.outputs_:
        return
    back = g.op(
        "If",
        _scalar(g, value),
        outputs=len(step.outputs_),
        then_branch_g=sides[0][0],
        else_branch_g=sides[1][0],
    )
    back = back if isinstance(back, tuple) else (back,)
    chosen = one if condition.examples[0] else other
    for symbol, made, a, b, result, dtype in zip(
        step.outputs_, back, one, other, chosen, dtypes, strict=True
    ):
        env[symbol] = _joined(walk, g, made, (a, b), result, dtype)


def loop(walk: Walk, g: Graph, step: Step, env: dict[Symbol, Any]) -> None:
    """A loop."""
    count, going, *carried = (env[v] for v in step.inputs_)
    body = step.blocks_[0]
    if not isinstance(going, Cell) and not isinstance(count, Cell):
        done = _unrolled(walk, g, body, env, count, going, carried)
        if done is not None:
            walk.bind(step, done, env)
            return
    _looped(walk, g, step, body, env, count, going, carried)


def _unrolled(
    walk: Walk,
    g: Graph,
    body: Block,
    env: dict[Symbol, Any],
    count: int,
    going: object,
    carried: list[Any],
) -> list[Any] | None:
    """What a loop of a known number of steps gives; None if the number is not known."""
    if count > UNROLLED and (count < 2**31 or not isinstance(going, bool)):
        return None
    if count >= 2**31 and body.outputs_[0].node is not None and leaves(carried):
        # While: its condition, computed within, may depend on the inputs.
        if not body.outputs_[0].is_constant():
            return None
    at = 0
    while at < count and going:
        env.update(zip(body.inputs_, [at, *carried], strict=True))
        going, *carried = walk.block(g, body, env)
        if isinstance(going, Cell):
            if not going.known:
                raise OnnxExporterError("the loop ends when a condition says so that is computed")
            going = bool(going.examples[0])
        at += 1
    return carried


def _looped(
    walk: Walk,
    g: Graph,
    step: Step,
    body: Block,
    env: dict[Symbol, Any],
    count: Any,
    going: object,
    carried: list[Any],
) -> None:
    inner = g.inner()
    scope = dict(env)
    index = Value(g.name(), fb.int64, ())
    condition = Value(g.name(), fb.bool, ())
    inner.inputs = [index, condition]
    examples = (0,) * walk.count
    scope[body.inputs_[0]] = Cell(examples, index, inner)
    starts = []
    for symbol, value in zip(body.inputs_[1:], carried, strict=True):
        start = _value(g, value)
        starts.append(start)
        samples: tuple[Any, ...] = (value,) * walk.count
        if isinstance(value, Cell):
            samples = tuple(e.clone() if isinstance(e, Tensor) else e for e in value.examples)
        inside = Value(g.name(), dtype_of_example(samples[0]))
        annotate(inside, samples)
        if inside.shape:
            inside.shape = (None,) * len(inside.shape)
        inner.inputs.append(inside)
        cell = Cell(samples, inside, inner)
        cell.loose = isinstance(samples[0], Tensor) and samples[0].dim() > 0
        scope[symbol] = cell
    goes_on, *results = walk.block(inner, body, scope)
    dtypes = [v.dtype for v in starts]
    inner.outputs = [_scalar(inner, _output(inner, goes_on, fb.bool))] + [
        _output(inner, result, dtype) for result, dtype in zip(results, dtypes, strict=True)
    ]
    endless = not isinstance(count, Cell) and count >= 2**31
    bound = None if endless else _scalar(g, g.cast(_value(g, count), fb.int64))
    first = _scalar(g, g.cast(_value(g, going), fb.bool))
    if not step.outputs_:
        return
    back = g.op("Loop", bound, first, *starts, outputs=len(step.outputs_), body_g=inner)
    back = back if isinstance(back, tuple) else (back,)
    for symbol, made, result, start, dtype in zip(
        step.outputs_, back, results, carried, dtypes, strict=True
    ):
        env[symbol] = _joined(walk, g, made, (start, result), result, dtype)


def _joined(
    walk: Walk, g: Graph, made: Value, ways: tuple[Any, Any], result: object, dtype: DType
) -> Cell:
    """The cell of a value that is one of two; its sizes are known where both agree."""
    samples = result.examples if isinstance(result, Cell) else (result,) * walk.count
    cell = Cell(samples, made, g)
    shapes = [_shape(way) for way in ways]
    annotate(made, samples)
    made.dtype = dtype or made.dtype
    if made.shape:
        cell.loose = shapes[0] != shapes[1] or None in (made.shape or ())
        if cell.loose:
            made.shape = (None,) * len(made.shape)
    return cell


def _shape(value: object) -> tuple[Any, ...] | None:
    if isinstance(value, Cell):
        return None if value.loose else tuple(getattr(e, "shape", ()) for e in value.examples)
    return ()


def _value(g: Graph, value: object) -> Value:
    if isinstance(value, Cell):
        return value.read(g)
    if isinstance(value, NUMBERS):
        return g.constant(value, dtype_of_example(value))
    raise OnnxExporterError(
        f"a branch or loop of ONNX carries tensors and numbers, and no {type(value).__name__}"
    )


def _output(g: Graph, value: object, dtype: Any) -> Value:
    """What a branch gives out: a value of its own."""
    made = _value(g, value)
    return g.op("Identity", made if dtype is None else g.cast(made, dtype))


def _scalar(g: Graph, value: Value) -> Value:
    """A condition without dimensions."""
    if value.shape is not None and len(value.shape):
        return g.reshape(value, g.constant(fb.empty(0, dtype=fb.int64)))
    return value


def _dtype(one: object, other: object) -> Any:
    """The dtype of what is one or the other."""
    found = [
        dtype_of_example(way.examples[0] if isinstance(way, Cell) else way) for way in (one, other)
    ]
    return found[0] if found[0] is found[1] else fb.promote_types(*found)
