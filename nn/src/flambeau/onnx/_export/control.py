"""Branches and loops: taken at export if their conditions are known, else ``If`` and ``Loop``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau import Tensor
from flambeau.jit._graph import Block
from flambeau.jit._graph import Node as Step
from flambeau.jit._graph import Value as Symbol
from flambeau.onnx._export.aliases import Carried, make_kin, relatives
from flambeau.onnx._export.cells import Cell, annotate, leaves
from flambeau.onnx._export.effects import Effects, Frame, Place, Saved, attribute, become, copies
from flambeau.onnx._export.errors import OnnxExporterError
from flambeau.onnx._export.graph import NUMBERS, Graph, Value, dtype_of_example

if TYPE_CHECKING:
    from flambeau import dtype as DType
    from flambeau.onnx._export.walk import Walk

import flambeau as fb

T = TypeVar("T")

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
    sides = [Frame(walk, g.inner()).walked(block, dict(env)) for block in (then, otherwise)]
    written = list(dict.fromkeys([*sides[0].written, *sides[1].written]))
    places = list(dict.fromkeys([*sides[0].changed, *sides[1].changed]))
    both = [
        [*side.results, *(attribute(walk, g, side.changed, place) for place in places)]
        for side in sides
    ]
    targets: list[Symbol | Place] = [*step.outputs_, *places]
    same = [a is b for a, b in zip(*both, strict=True)]
    _receive(walk, env, _picked(targets, same), _picked(both[0], same))
    other = [not each for each in same]
    targets, ways = _picked(targets, other), [_picked(way, other) for way in both]
    g.shared.stale = sides[0].stale | sides[1].stale
    if not targets and not written:
        return
    value = g.cast(condition.read(g), fb.bool)
    dtypes = [_dtype(a, b) for a, b in zip(*ways, strict=True)]
    for side, results in zip(sides, ways, strict=True):
        inner = side.graph
        with side.again():
            inner.outputs = [
                _output(inner, result, dtype) for result, dtype in zip(results, dtypes, strict=True)
            ]
            inner.outputs += [inner.op("Identity", root.read(inner)) for root in written]
    back = g.op(
        "If",
        _scalar(g, value),
        outputs=len(ways[0]) + len(written),
        then_branch_g=sides[0].graph,
        else_branch_g=sides[1].graph,
    )
    back = back if isinstance(back, tuple) else (back,)
    chosen = ways[0] if condition.examples[0] else ways[1]
    joined = [
        _joined(walk, g, made, (a, b), result, dtype)
        for made, a, b, result, dtype in zip(back, *ways, chosen, dtypes, strict=False)
    ]
    make_kin(joined, [[relatives(result) for result in way] for way in ways])
    _receive(walk, env, targets, joined)
    for root, made in zip(written, back[len(joined) :], strict=True):
        examples = list(root.examples)
        for at, holds in enumerate(condition.examples):
            side = sides[0 if holds else 1]
            if root in side.written:
                examples[at] = side.written[root][1][at]
        become(walk, g, root, made, tuple(examples))


def _picked(values: Sequence[T], which: Sequence[bool]) -> list[T]:
    return [value for value, wanted in zip(values, which, strict=True) if wanted]


def _receive(
    walk: Walk, env: dict[Symbol, Any], targets: Sequence[Symbol | Place], values: Sequence[Any]
) -> None:
    """Let names and attributes be values."""
    for target, value in zip(targets, values, strict=True):
        if isinstance(target, Symbol):
            env[target] = value
        else:
            walk.attributes[target] = value


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
    loop = Carried(walk, g, dict(zip(body.inputs_[1:], carried, strict=True)))
    while True:  # what the body changes of what is outside is known once it was walked
        starts = [_value(g, value) for value in loop.given.values()]
        starts += [root.read(g) for root in loop.written]
        before = set(g.shared.stale)
        effects, results, goes_on = _body(walk, g, body, env, loop)
        if not loop.learn(g, effects, results, before):
            break
    inner = effects.graph
    dtypes = [v.dtype for v in starts[: len(loop.given)]]
    with effects.again():
        inner.outputs = [_scalar(inner, _output(inner, goes_on, fb.bool))] + [
            _output(inner, result, dtype)
            for result, dtype in zip(results.values(), dtypes, strict=True)
        ]
        inner.outputs += [inner.op("Identity", root.read(inner)) for root in loop.written]
    endless = not isinstance(count, Cell) and count >= 2**31
    bound = None if endless else _scalar(g, g.cast(_value(g, count), fb.int64))
    first = _scalar(g, g.cast(_value(g, going), fb.bool))
    outside = dict(zip(body.inputs_[1:], step.outputs_, strict=True))
    env.update({outside[symbol]: value for symbol, value in loop.held.items()})
    if not starts:
        return
    back = g.op("Loop", bound, first, *starts, outputs=len(starts), body_g=inner)
    back = back if isinstance(back, tuple) else (back,)
    joined = [
        _joined(walk, g, made, (start, result), result, dtype)
        for made, result, start, dtype in zip(
            back, results.values(), loop.given.values(), dtypes, strict=False
        )
    ]
    loop.tie(joined)
    targets = [outside[at] if isinstance(at, Symbol) else at for at in results]
    _receive(walk, env, targets, joined)
    for root, made in zip(loop.written, back[len(joined) :], strict=True):
        become(walk, g, root, made, effects.written[root][1])


def _body(
    walk: Walk, g: Graph, body: Block, env: dict[Symbol, Any], loop: Carried
) -> tuple[Effects, dict[Symbol | Place, Any], Any]:
    """The body of a loop, what it makes of what is carried, and whether the loop goes on."""
    inner = g.inner()
    frame = Frame(walk, inner)
    scope = {**env, **loop.held}
    index = Value(g.name(), fb.int64, ())
    inner.inputs = [index, Value(g.name(), fb.bool, ())]
    scope[body.inputs_[0]] = Cell((0,) * walk.count, index, inner)
    loop.cells = {}
    for target, value in loop.given.items():
        samples: tuple[Any, ...] = (value,) * walk.count
        if isinstance(value, Cell):
            samples = copies(value.examples)
        inside = Value(g.name(), dtype_of_example(samples[0]))
        annotate(inside, samples)
        if inside.shape:
            inside.shape = (None,) * len(inside.shape)
        inner.inputs.append(inside)
        cell = Cell(samples, inside, inner)
        cell.loose = isinstance(samples[0], Tensor) and samples[0].dim() > 0
        loop.cells[target] = cell
    before = {root: Saved(root) for root in loop.written}
    for root in loop.written:
        root.value = root.annotated(Value(g.name(), dtype_of_example(root.examples[0])))
        root.graph = inner
        root.version += 1
        inner.inputs.append(root.value)
    outside = dict(walk.attributes)
    _receive(walk, scope, list(loop.cells), list(loop.cells.values()))
    if not g.shared.probing:
        loop.tie(list(loop.cells.values()))
    frame.attributes = dict(walk.attributes)
    effects = frame.walked(body, scope)
    goes_on, *ends = effects.results
    results: dict[Symbol | Place, Any] = {
        symbol: value
        for symbol, value in zip(body.inputs_[1:], ends, strict=True)
        if symbol not in loop.held
    }
    for place in loop.given:
        if not isinstance(place, Symbol):
            results[place] = effects.changed.get(place, walk.attributes[place])
    walk.attributes = outside
    for root, saved in before.items():
        effects.written[root] = root.read(inner), copies(root.examples)
        saved.put_back(root)
    return effects, results, goes_on


def _joined(
    walk: Walk,
    g: Graph,
    made: Value,
    ways: tuple[Any, Any],
    result: object,
    dtype: DType | None,
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
