"""Many steps of an iteration that comes to rest, or goes in a circle, long before their end."""

from __future__ import annotations

from collections.abc import Callable

from flambeau import Tensor

_FEW = 64
"""Steps that are made without looking where they lead."""


def iterate(step: Callable[[], object], state: Tensor, times: int) -> None:
    """Make a step so many times, which writes `state` and depends on nothing else that changes.

    Once the state is one that was there before, whole circles are left out: the result is the same
    to the last bit.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils._iteration import iterate
    >>> x = fb.ones(2)
    >>> iterate(lambda: x.mul_(-1), x, 2**70 + 1)
    >>> x
    tensor([-1., -1.])
    """
    seen, place = state, times
    for done in range(1, times + 1):
        step()
        if done < _FEW:
            continue
        if done > place and ((state == seen) | ((state != state) & (seen != seen))).all():
            for _ in range((times - done) % (done - place)):
                step()
            return
        if done & (done - 1) == 0:
            seen, place = state.clone(), done
