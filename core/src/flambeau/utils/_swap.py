"""Two tensors that change places."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from flambeau import Tensor
from flambeau._memory.record import state_of

__all__ = ["swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Give each of two tensors what the other one is: class, values, history and attributes.

    Who holds one of the objects then has the other's contents.  Views that were made of them
    before, and graphs in which they are leaves, are not told.

    Raises:
        RuntimeError: somebody holds a weak reference to one, or their classes have different
            ``__slots__``.

    >>> import flambeau as fb
    >>> a, b = fb.zeros(2), fb.ones(3)
    >>> fb.utils.swap_tensors(a, b); a
    tensor([1., 1., 1.])
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors(): {name} must be Tensor, not {type(t).__name__}")
        if t._be.strided and weakref.getweakrefs(t):  # without strides the library has some itself
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    first: Any = t1
    second: Any = t2
    slots = set(copyreg._slotnames(type(t1)))  # type: ignore[attr-defined] - as pickle finds them
    if slots != set(copyreg._slotnames(type(t2))):  # type: ignore[attr-defined]
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    held = [{s: getattr(t, s) for s in slots if hasattr(t, s)} for t in (first, second)]
    states = [dict(state_of(t)) for t in (first, second)]
    first.__class__, second.__class__ = type(t2), type(t1)
    for t, state, own, old in (
        (first, states[1], held[1], held[0]),
        (second, states[0], held[0], held[1]),
    ):
        state_of(t).clear()
        state_of(t).update(state)
        for s in slots & old.keys():
            delattr(t, s)
        for s, value in own.items():
            setattr(t, s, value)
