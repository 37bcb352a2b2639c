"""Calls of a plan that others replace: numbers known before, gradients of parts of an array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau.plugin import float32, float64
from flambeau.plugin.plan import Plan, Slot, Step, slots_in
from flambeau_numpy.extending import Array, empty

__all__ = ["simplified"]

_VIEWS = frozenset("view permute slice as_strided expand detach diagonal unfold".split())
Part = tuple[Slot, tuple[slice, ...]]


def simplified(plan: Plan) -> Plan:
    """A plan that gives the same by fewer calls, or `plan`."""
    steps, constants = _folded(plan, plan.steps)
    steps = _placed(plan, steps)
    if len(steps) == len(plan.steps):
        return plan
    return plan.with_steps(steps, constants)


def _folded(plan: Plan, steps: Sequence[Step]) -> tuple[Sequence[Step], dict[int, Any]]:
    """The calls without those of constants that give a number, which becomes a constant."""
    fixed = set(plan.outputs)
    for step in steps:
        if step.effect or step.op in _VIEWS:  # others may get hold of these, and write
            fixed.update(slots_in((*step.args, step.results)))
    known, constants, kept = dict(plan.constants), {}, []
    for step in steps:
        given = list(slots_in(step.args))
        made = step.results
        if (
            given
            and type(made) is Slot
            and made not in fixed
            and not plan.specs[made][0]
            and all(type(a) is Slot or type(a) in (int, float, bool) for a in step.args)
            and all(slot in known for slot in given)
        ):
            value = np.asarray(
                step.kernel(*[known[a] if type(a) is Slot else a for a in step.args])
            )
            known[made] = constants[made] = value
        else:
            kept.append(step)
    return kept, constants


def _placed(plan: Plan, steps: Sequence[Step]) -> Sequence[Step]:
    """Sums of the gradients of slices that cover an array: the slices are put beside each other.

    What lies beside a slice is zero there; adding zeros changes negative zeros only, hence the
    calls of the step add one too.
    """
    uses = Counter(s for step in steps for s in slots_in(step.args))
    uses.update(plan.outputs)
    parts: dict[int, list[Part]] = {}
    gone: dict[int, list[int]] = {}  # steps that a sum makes needless
    for i, step in enumerate(steps):
        made = step.results
        if type(made) is not Slot:
            continue
        if step.op == "slice_backward" and type(step.args[0]) is Slot and _is_band(step.args):
            parts[made], gone[made] = [(step.args[0], step.args[2])], [i]
        elif step.op == "add" and len(step.args) == 2:
            a, b = step.args
            both = a in parts and b in parts and uses[a] == uses[b] == 1 and a != b
            if both and plan.specs[a] == plan.specs[b]:
                parts[made], gone[made] = parts[a] + parts[b], [*gone[a], *gone[b], i]
                del parts[a], parts[b]
    replaced: dict[int, Step] = {}
    needless: set[int] = set()
    for made, found in parts.items():
        shape, dtype = plan.specs[made]
        first, last = min(gone[made]), gone[made][-1]
        if any(step.effect for step in steps[first:last]):  # it may write to what is put together
            continue
        if len(found) > 1 and dtype in (float32, float64) and _cover(found, shape):
            needless.update(gone[made])
            args = tuple([slot for slot, _ in found]), tuple([index for _, index in found])
            replaced[last] = Step("placed", _placing(shape), args, Slot(made))
    return [replaced.get(i, s) for i, s in enumerate(steps) if i in replaced or i not in needless]


def _is_band(args: tuple[Any, ...]) -> bool:
    """Whether a gradient is that of a slice along one dimension."""
    _, shape, index = args
    if len(index) != len(shape) or not all(type(x) is slice and x.step in (None, 1) for x in index):
        return False
    whole = [(x.start or 0, x.stop) == (0, n) for x, n in zip(index, shape, strict=True)]
    return whole.count(False) == 1


def _cover(parts: Sequence[Part], shape: tuple[int, ...]) -> bool:
    """Whether slices along one dimension are all of it, once."""
    dims = {
        d for _, index in parts for d, x in enumerate(index) if (x.start, x.stop) != (0, shape[d])
    }
    if len(dims) != 1:
        return False
    (dim,) = dims
    spans = sorted((index[dim].start, index[dim].stop) for _, index in parts)
    ends = [0, *(stop for _, stop in spans)]
    return [start for start, _ in spans] == ends[:-1] and ends[-1] == shape[dim]


def _placing(shape: tuple[int, ...]) -> Any:
    """The kernel of `placed`: the sum of the gradients of slices."""

    def placed(arrays: Sequence[Array], indices: Sequence[tuple[slice, ...]]) -> Array:
        out = empty(shape, arrays[0].dtype)
        for a, index in zip(arrays, indices, strict=True):
            np.add(a, 0.0, out[index], dtype=a.dtype)
        return out

    return placed
