"""The gradient of a captured function: a second plan, behind one node of the graph.

Where what is returned has a history, the backward pass through the function is captured after it,
and the calls are cut in two: those of the function, which also return what the others need, and
those of the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flambeau._autograd import engine
from flambeau._autograd.modes import recording, set_recording
from flambeau._autograd.node import Edges, Node, Out, next_seq
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.record import is_tensor
from flambeau._memory.views import edge
from flambeau._types.trees import SUPPORTED_NODES
from flambeau.plans.capture import Capture
from flambeau.plugin.plan import Plan, replayed

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.native import Array


__all__ = ["Backward", "Facts", "Halves", "Recorder", "captured_backward", "recorder"]


Recorder = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], Callable[[], object]], None]
"""What gives the results of a replay their history: see `recorder`."""


class Backward:
    """A backward pass in the making: the tensors at its ends, and where its calls begin.

    Attributes:
        results: the tensors whose gradients come in.
        wanted: the tensors whose gradients go out.
        first: how many calls came before the pass.
        given: the slots of the gradients that come in.
        found: the slots of those that go out, None for a tensor without one.
        reached: for each result the places in `wanted` that its history leads to.
        refused: why there can be no plan, or None.
    """

    def __init__(self, results: Sequence[Any], wanted: Sequence[Any], first: int) -> None:
        self.results = results
        self.wanted = wanted
        self.first = first
        self.given: list[int] = []
        self.found: list[int | None] = []
        self.reached: list[frozenset[int]] = []
        self.refused: str | None = None


def captured_backward(capture: Capture, result: object, seen: Sequence[Any]) -> Backward | None:
    """Capture the backward pass of what a function returned; None if nothing has a history.

    Args:
        capture: the capture, still on.
        result: what the function returned.
        seen: the tensors that were there before (`flambeau.plans.entry.Seen`).
    """
    results: list[Any] = []
    with_history(result, {id(one.tensor) for one in seen}, results)
    wanted = [one.tensor for one in seen if one.tensor.requires_grad]
    ends = {id(e) for t in wanted if (e := edge(t)) is not None}
    if not results:
        return None
    backward = Backward(results, wanted, len(capture.steps))
    hooked = _has_hooks(results, ends)  # checkpoints have some, and empty nodes as a pass does
    if not hooked and any(_consumed(t, ends) for t in results):
        return None
    if hooked or any(t._hooks is not None for t in wanted):
        backward.refused = "there are hooks of tensors or nodes"
    elif any(t.dtype.is_complex for t in (*results, *wanted)):
        backward.refused = "gradients are complex"
    if backward.refused is not None:
        return backward
    be = capture.be
    grads = []
    with capture.inside():
        for t in results:
            grads.append(wrap(be, be.full(tuple(t._a.shape), 1, t.dtype), t.dtype))
    backward.given = [capture.slot(g._a) for g in grads]
    passes = capture.passes
    try:
        found = engine.run(
            results,
            grads,
            retain_graph=True,
            create_graph=False,
            inputs=wanted,
            accumulate=False,
            ends=True,
        )
    except Exception as error:  # for the pass itself to raise, if there will be one
        backward.refused = f"the backward pass raises {type(error).__name__}"
        return backward
    finally:
        capture.passes = passes
    for g in found:
        if g is not None and (g.is_sparse or capture.find(g._a) is None):
            backward.refused = "a gradient is none that a plan can give"
            return backward
    # What nothing was found for is left alone: the pass then has no part for it.
    backward.found = [None if g is None else capture.find(g._a) for g in found]
    backward.reached = [_reached(t, wanted, ends) for t in results]
    return backward


def _reached(result: Any, wanted: Sequence[Any], ends: set[int]) -> frozenset[int]:
    """The places of the tensors that the history of a result leads to."""
    found = {id(edge(result))}
    for node in _nodes([result], ends):
        found.update(map(id, node.edges))
    return frozenset(i for i, t in enumerate(wanted) if id(edge(t)) in found)


def with_history(value: object, known: set[int], found: list[Any]) -> None:
    """Append the tensors of `value` that have a history to `found`, but for known ones."""
    if is_tensor(value):
        if value.requires_grad and id(value) not in known and all(t is not value for t in found):
            found.append(value)
    elif isinstance(value, dict):
        for part in value.values():
            with_history(part, known, found)
    elif isinstance(value, (list, tuple)):
        for part in value:
            with_history(part, known, found)
    elif (node := SUPPORTED_NODES.get(type(value))) is not None:
        for part in node.flatten_fn(value)[0]:
            with_history(part, known, found)


def _nodes(tensors: Sequence[Any], ends: set[int]) -> Sequence[Node]:
    """The nodes behind tensors, up to those of `ends` by identity."""
    waiting: list[Any] = [edge(t) for t in tensors]
    seen: dict[int, Node] = {}
    while waiting:
        node = waiting.pop()
        if isinstance(node, Out) and id(node) not in ends:
            node = node.node
        if isinstance(node, Node) and id(node) not in ends and node.seq not in seen:
            seen[node.seq] = node
            waiting += node.edges
    return list(seen.values())


def _has_hooks(results: Sequence[Any], ends: set[int]) -> bool:
    return any(node._hooks is not None for node in _nodes(results, ends))


def _consumed(t: object, ends: set[int]) -> bool:
    """Whether a backward pass has been through the history of a tensor to `ends`, and freed it.

    What is beyond is none of the function: a checkpoint there is empty from the beginning.
    """
    return any(node.saved is None for node in _nodes([t], ends))


class Halves:
    """The two plans of a function and its backward pass."""

    def __init__(
        self,
        capture: Capture,
        inputs: Sequence[int],
        outputs: Sequence[int],
        backward: Backward,
        constants: dict[int, Any],
    ) -> None:
        """Cut the calls of both.

        Args:
            capture: all calls, and what is known of their arrays.
            inputs: slots of the arrays that the function is given, arguments and state.
            outputs: slots of what it returns and leaves behind.
            backward: the pass.
            constants: arrays that are the same in all runs, by slot.
        """
        steps, known = capture.steps, (capture.specs, capture.strides)
        first, second = steps[: backward.first], steps[backward.first :]
        made = {s for step in first for s in step.makes} | set(inputs)
        found = [s for s in backward.found if s is not None]
        late = Plan(second, [], found, dict(constants), *known)
        read = {s for step in late.steps for s in step.reads} | set(found)
        self.saved = sorted(read & made)
        self.early = Plan(first, inputs, [*outputs, *self.saved], dict(constants), *known)
        self.late = Plan(second, [*self.saved, *backward.given], found, dict(constants), *known)

    def compiled(self, be: BoundBackend) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The functions of both plans."""
        compile_plan = be.backend.compile_plan
        early = compile_plan(self.early) or replayed(self.early)
        return early, compile_plan(self.late) or replayed(self.late)


class Facts(NamedTuple):
    """What the nodes of one plan have in common.

    Attributes:
        be: the device.
        replay: the calls of the backward pass.
        found, reached: as in `Backward`.
        results: shape and dtype of the tensors at the ends.
    """

    be: BoundBackend
    replay: Callable[..., Sequence[Any]]
    found: Sequence[int | None]
    reached: Sequence[frozenset[int]]
    results: Sequence[tuple[tuple[int, ...], DType]]


INSTEAD = ("the function", "itself")
"""What a `PlanBackward` has saved whose function ran as it is where a plan was to be repeated."""


class PlanBackward(Node):
    """The node of a replayed function.

    ``saved`` is (arrays, [(tensor, array, version, name)]): what the pass reads, and which of it
    must not have been written to since.
    """

    __slots__ = ("again", "facts", "n_out", "wanted")

    title = "PlanBackward"

    facts: Facts
    again: Any  # None while it is empty
    wanted: Any

    def empty(self) -> None:
        """Keep nothing alive that the function was given, either."""
        self.saved = self.again = self.wanted = None

    def fill(self, twin: PlanBackward) -> None:
        self.saved, self.again, self.wanted = twin.saved, twin.again, twin.wanted

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        if self.saved is None:
            raise self.freed()
        if self.n_out == 1:
            g = {0: g}
        if not F.native:
            return self._recorded(g)
        if self.saved is INSTEAD:
            return self._through_again(F, g)
        arrays, guarded = self.saved
        for t, version, name in guarded:
            if (now := _dispatch.version(t)) != version:
                raise self.stale(name, tuple(t._a.shape), now, version)
        facts = self.facts
        if len(g) < self.n_out:
            return self._partly(F, g, arrays)
        found = iter(facts.replay(*arrays, *[F.fresh(g[i]) for i in range(self.n_out)]))
        return tuple([None if slot is None else next(found) for slot in facts.found])

    def _partly(self, F: Any, g: dict[int, Any], arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients where some results have none: these count as zeros, where that is the same.

        What only they lead to has no gradient, and where a zero is multiplied by infinity the
        function runs again.
        """
        facts, be = self.facts, self.facts.be
        given = [
            F.fresh(g[i]) if i in g else be.full(shape, 0, dtype)
            for i, (shape, dtype) in enumerate(facts.results)
        ]
        made = iter(facts.replay(*arrays, *given))
        reached = frozenset[int]().union(*[facts.reached[i] for i in g])
        found: list[Any] = []
        for i, slot in enumerate(facts.found):
            grad = None if slot is None else next(made)
            found.append(grad if i in reached else None)
        if all(grad is None or _is_finite(be, grad) for grad in found):
            return tuple(found)
        return self._through_again(F, g)

    def _through_again(self, F: Any, g: dict[int, Any]) -> tuple[Any, ...]:
        """Gradients of the function that runs again, without a history."""
        be, results = self.facts.be, self.facts.results
        given = {i: wrap(be, F.fresh(a), results[i][1]) for i, a in g.items()}
        again = self._recorded(given, create_graph=False)
        return tuple([None if t is None else t._a for t in again])

    def _recorded(self, g: dict[int, Any], create_graph: bool = True) -> tuple[Any, ...]:
        """Gradients of the function that runs again, as it is; mostly to have a history."""
        before = recording()
        try:
            set_recording(True)
            results: list[Any] = []
            with_history(self.again(), set(map(id, self.wanted)), results)
            chosen = [results[i] for i in sorted(g)]
            return tuple(
                engine.run(
                    chosen,
                    [g[i] for i in sorted(g)],
                    retain_graph=True,
                    create_graph=create_graph,
                    inputs=self.wanted,
                    accumulate=False,
                    ends=True,
                )
            )
        finally:
            set_recording(before)


def _is_finite(be: BoundBackend, array: Array) -> bool:
    return bool(wrap(be, array, be.dtype_of(array)).isfinite().all().item())


def recorder(
    facts: Facts,
    guarded: Sequence[tuple[str, str]],
    wanted: Sequence[str],
    kept: int,
    space: dict[str, Any],
) -> Recorder:
    """What gives the results of each replay their history, written out for one plan.

    It is called with the tensors that the call was given, the arrays that the replay found, the
    tensors at the ends, and what calls the function itself, for gradients of gradients.

    Args:
        facts: of the nodes.
        guarded: tensors that must not be written to before the pass, as expressions of ``given``
            and of what `space` names, and their names.
        wanted: those that gradients are for, as such expressions.
        kept: how many of the arrays found, the last ones, the pass reads.
        space: what the expressions name.
    """
    ends = range(len(facts.results))
    space |= {
        "new": object.__new__,
        "PlanBackward": PlanBackward,
        "Out": Out,
        "edge": edge,
        "version": _dispatch.version,
        "next_seq": next_seq,
        "facts": facts,
        "names": [name for _, name in guarded],
    }
    lines = [
        "node = new(PlanBackward)",
        "node._hooks = None",
        f"wanted = node.wanted = ({''.join(f'{t}, ' for t in wanted)})",
        f"node.edges = ({''.join(f'edge(wanted[{i}]), ' for i in range(len(wanted)))})",
    ]
    tensors = [t for t, _ in guarded]
    lines += [f"g{i} = {t}" for i, t in enumerate(tensors)]
    held = [f"(g{i}, version(g{i}), names[{i}])" for i in range(len(tensors))]
    lines += [
        f"node.saved = {f'found[-{kept}:]' if kept else '()'}, [{', '.join(held)}]",
        f"node.n_out = {len(ends)}",
        "node.facts, node.again, node.seq = facts, again, next_seq()",
    ]
    for i in ends:
        lines += [f"t = ends[{i}]", f"t._fn = {f'Out(node, {i})' if len(ends) > 1 else 'node'}"]
        lines.append("t._rg = True")
    body = "\n    ".join(lines)
    exec(
        compile(f"def recorded(given, found, ends, again):\n    {body}\n", "<recorder>", "exec"),
        space,
    )
    return space["recorded"]
