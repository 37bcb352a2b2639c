"""Decisions: what a function does by the truth of a tensor.

A plan is of a run that decided as it did.  Where a decision is made, a call of the plan looks
whether it would be the same, and says so by an error if it is not: then another plan, or the
function itself, is what has to run.  That is right of functions without effects only.  Of others
`known` ones are looked at before a run, as `Reach.truth` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import version
from flambeau.plans import capture as _capture

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._tensor.tensor import Tensor
    from flambeau._types.native import Array

__all__ = ["OtherwiseError", "decided", "known"]


class OtherwiseError(Exception):
    """A run would decide otherwise than the one that a plan is of."""


def decided(condition: Tensor) -> bool:
    """``bool(condition)``; where a run is captured, a call that looks whether it is the same."""
    capture = _capture.current()
    if capture is None or not capture.listens:
        return bool(condition)
    if condition._be is not capture.be:
        capture.refuse("a decision by a tensor of another device")
        return bool(condition)
    with capture.inside():
        truth = bool(condition)
    check = _unless_as_before(condition._be.backend._held.item)
    capture.add("decide", check, (condition._a, truth), None, effect=True)
    return truth


def _unless_as_before(item: Callable[[Any], Any]) -> Callable[[Any, bool], None]:
    def decide(array: Array, before: bool) -> None:
        if bool(item(array)) is not before:
            raise OtherwiseError

    return decide


def known(condition: Tensor) -> bool:
    """``bool(condition)`` of a tensor whose truth is looked at before each run of a plan.

    That is one of which a ``__plan__`` said `Reach.truth`, until it is written to.

    >>> import flambeau as fb
    >>> fb.plans.known(fb.tensor(2))
    True
    """
    capture = _capture.current()
    if capture is None or not capture.listens:
        return bool(condition)
    held = capture.truths.get(id(condition))
    if held is None or version(condition) != held[1]:
        return bool(condition)
    with capture.inside():
        return bool(condition)
