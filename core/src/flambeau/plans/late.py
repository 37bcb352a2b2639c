"""Capture of gradient formulas that a backend computes late: `Backend.deferred`.

Their ops return stand-ins for arrays until the formula ends.  A stand-in has a slot like an array,
and what makes arrays of those is a step like an op: a plan puts off what the run put off, and
computes it at the same places, by the same kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import OPS

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau.plans.capture import Capture

__all__ = ["listen_late"]


def listen_late(be: BoundBackend, capture: Capture) -> None:
    """Write down what gradient formulas ask of `be`, whose own ops are listened to already."""
    late = be.formulas
    own = late.__dict__
    for name in OPS:
        if (op := own.get(name)) is not None:
            own[name] = _put_off(name, op, be, capture)
    own["part"] = own["slice"]
    for name in ("scalar_const", "host_array", "backend"):
        own[name] = be.__dict__[name]
    be.settle = _settling(be.settle, be, capture)


def _put_off(
    name: str, op: Callable[..., Any], be: BoundBackend, capture: Capture
) -> Callable[..., Any]:
    array, stand_in = be.array, be.backend.stand_in

    def run(*args: object, **named: object) -> Any:
        if named or not capture.listens:
            if named and capture.listens:
                capture.refuse(f"{name} was called with named arguments")
            return op(*args, **named)
        with capture.inside():
            result = op(*args)
        raw = False
        if not isinstance(result, (array, stand_in, tuple, list, type(None))):
            result, raw = be.to_array(result), True
        capture.add(name, op, args, result, raw=raw)
        return result

    return run


def _settling(
    settle: Callable[[Sequence[Any]], Sequence[Any]], be: BoundBackend, capture: Capture
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    known = (be.array, be.backend.stand_in, type(None))

    def run(results: Sequence[Any]) -> Sequence[Any]:
        if not capture.listens:
            return settle(results)
        given = [r if isinstance(r, known) else be.to_array(r) for r in results]
        if not all(isinstance(r, known) for r in given):
            capture.refuse("a gradient is sparse")
        found = settle(given)
        capture.add("settle", settle, (given,), [*found])
        return found

    return run
