"""Steps that a plan makes or leaves out: the optimiser's, where gradients are not finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import version
from flambeau._memory.record import is_tensor
from flambeau._memory.views import storage_of
from flambeau.plugin.plan import Plan, Slot, Step, replayed

if TYPE_CHECKING:
    from flambeau.plans.capture import Capture

__all__ = ["step_unless"]


def step_unless(plainly: Callable[..., Any], capture: Capture) -> Callable[..., Any]:
    """``GradScaler._maybe_opt_step`` whose branch is a call of the plan.

    What it calls inside becomes one call, which every run makes if its gradients are finite.
    """

    def run(
        scaler: object, optimizer: Any, state: dict[str, Any], *args: object, **kwargs: object
    ) -> Any:
        found = list(state["found_inf_per_device"].values())
        in_place = capture.be.strided and all(t._be is capture.be for t in found)
        if not capture.listens or not in_place or len(found) != 1 or args or kwargs:
            return plainly(scaler, optimizer, state, *args, **kwargs)
        if capture.followed:
            capture.refuse("a number changes beside a step that may be left out")
        with capture.inside():
            skips = bool(found[0].item())
        if skips:
            capture.refuse("a step was left out, since gradients were not finite", lasting=False)
            return None
        asked = capture.reference(found[0]._a)
        tensors = _tensors(optimizer)
        before, first = [version(t) for t in tensors], len(capture.steps)
        result = optimizer.step()
        written = [(t, n) for t, v in zip(tensors, before, strict=True) if (n := version(t) - v)]
        inner = capture.steps[first:]
        del capture.steps[first:]
        made = {s for step in inner for s in step.makes}
        capture.within |= made
        read = {s for step in inner for s in step.reads}
        inputs = sorted(read - made - capture.constants.keys())
        part = Plan(inner, inputs, (), capture.constants, capture.specs, capture.strides)
        calls = capture.be.backend.compile_plan(part) or replayed(part)
        kernel = partial(_unless, capture.be.backend.item, calls, written)
        given = (asked, *map(Slot, part.inputs), *part.numbers)
        capture.steps.append(Step("unless", kernel, given, None, effect=True))
        return result

    return run


def _tensors(optimizer: Any) -> Sequence[Any]:
    """What a step may write to."""
    found = [p for group in optimizer.param_groups for p in group["params"]]
    for state in optimizer.state.values():
        found += [t for t in state.values() if is_tensor(t)]
    return found


def _unless(
    item: Callable[[Any], Any],
    calls: Callable[..., Any],
    written: Sequence[tuple[Any, int]],
    skips: object,
    *given: object,
) -> None:
    if not item(skips):
        calls(*given)
        return
    for t, count in written:  # the run counts them
        storage_of(t).version -= count
