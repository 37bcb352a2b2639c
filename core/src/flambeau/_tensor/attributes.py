"""What programs have set on a tensor: ``x.note = 3``, and ``vars(x)``."""

from __future__ import annotations

import contextlib
import copyreg
from typing import TYPE_CHECKING, Any

from flambeau._dispatch import dispatch as _dispatch
from flambeau._memory.record import TensorBase, state_of

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor

OWN = frozenset(
    "_a _be dtype _rg _fn _st _base _view _seen _made _msteps _grad _hooks _retains".split()
)
"""The names in a tensor's dictionary that make it a tensor."""


ATTRIBUTES_TRAVEL = True
"""Whether copies and files of a tensor have the attributes that were set on it."""


def attributes_of(t: Tensor) -> dict[str, Any]:
    """What copies and files of a tensor have of it that was set and that its class knows not."""
    if not ATTRIBUTES_TRAVEL:
        return {}
    kind = _dispatch.Tensor_
    found = {k: v for k, v in state_of(t).items() if k not in OWN and not hasattr(kind, k)}
    if type(t) not in _dispatch.PLAIN:
        found |= in_slots(t)
    return found


def in_slots(t: Tensor) -> dict[str, Any]:
    """What is in the ``__slots__`` of a tensor's class."""
    names = copyreg._slotnames(type(t))  # type: ignore[attr-defined] - as pickle finds them
    return {name: getattr(t, name) for name in names if hasattr(t, name)}


class Attributes(dict[str, Any]):
    """The ``__dict__`` of a tensor: changes of it reach the tensor, but not what it is made of."""

    __slots__ = ("_state",)

    def __init__(self, t: Any) -> None:
        self._state = state = state_of(t)
        super().__init__({k: v for k, v in state.items() if k not in OWN})

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, value)
        if name not in OWN:
            self._state[name] = value

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def update(self, *args: object, **kwargs: object) -> None:
        """As of any dictionary."""
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __ior__(self, other: object) -> Attributes:
        self.update(other)
        return self

    def setdefault(self, name: str, default: object = None) -> Any:
        """As of any dictionary."""
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, *default: object) -> Any:
        """As of any dictionary."""
        value = super().pop(name, *default)
        if name not in OWN:
            self._state.pop(name, None)
        return value

    def popitem(self) -> tuple[str, Any]:
        """As of any dictionary."""
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self) -> None:
        """As of any dictionary."""
        for name in list(self):
            del self[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _get(t: object) -> dict[str, Any]:
    """What programs have set on the tensor, by name; changes of it reach the tensor."""
    return Attributes(t)


def _set(t: object, value: dict[str, Any]) -> None:
    value = dict(value)
    shown = Attributes(t)
    shown.clear()
    shown.update(value)


shown = property(_get, _set)


def show_attributes(cls: type) -> None:
    """Let a class of tensors whose first base hides it have the tensor's ``__dict__``, by a base.

    A base of its own, as bases of bases have an order.  Python refuses one, and tensors show their
    state, if memory of the first base is laid out otherwise: that of generic classes.
    """
    if not issubclass(cls.__bases__[0], TensorBase) and cls.__bases__[0].__dictoffset__:
        first = type("ShowsAttributes", (TensorBase,), {"__slots__": (), "__dict__": shown})
        with contextlib.suppress(TypeError):
            cls.__bases__ = (first, *cls.__bases__)
