"""Capture of gradient formulas that a backend computes late: `Backend.deferred`.

Their ops return stand-ins for arrays until the formula ends.  A stand-in has a slot like an array,
and what makes arrays of those is a step like an op: a plan puts off what the run put off, and
computes it at the same places, by the same kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau.plans.capture import Capture

__all__ = ["settling"]


def settling(
    settle: Callable[[Sequence[Any]], Sequence[Any]], be: BoundBackend, capture: Capture
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """`settle` that writes down what it makes arrays of."""
    known = (be.array, be.backend.stand_in, type(None))

    def run(results: Sequence[Any]) -> Sequence[Any]:
        if not capture.listens:
            return settle(results)
        if any(type(r) is dict for r in results):
            capture.refuse("a gradient is sparse")
            return settle(results)
        given = [r if isinstance(r, known) else be.to_array(r) for r in results]
        found = settle(given)
        capture.add("settle", settle, (given,), [*found])
        return found

    return run
