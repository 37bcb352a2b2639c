"""Numbers of the host that a captured optimiser step computes, and computes anew in every run.

On a device without kernels for optimisers their bodies run, which count steps on the host and
derive rates from the count in plain Python.  While a step is captured these numbers know what
they are computed from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.plugin.plan import Number, Option

__all__ = ["Computed", "Counter", "Tracked"]


class _Count(Number):
    """What a tensor on the host will hold once it has been counted up `ahead` times."""

    __slots__ = ("ahead", "tensor")

    def __init__(self, tensor: Tensor, ahead: int) -> None:
        self.tensor, self.ahead = tensor, ahead

    def text(self, name: Callable[[Any], str]) -> str:
        return f"({name(self.tensor)}.item() + {self.ahead})"

    def __repr__(self) -> str:
        return f"[count + {self.ahead}]"


class Computed(Number):
    """What an expression makes of numbers and functions, some of the numbers plain."""

    __slots__ = ("form", "parts", "size")

    def __init__(self, form: str, parts: Sequence[Any]) -> None:
        self.form, self.parts = form, parts
        self.size = 1 + sum(p.size if isinstance(p, Computed) else 1 for p in parts)

    def text(self, name: Callable[[Any], str]) -> str:
        return self.form.format(*map(name, self.parts))

    def options(self) -> Iterator[Option]:
        for part in self.parts:
            if isinstance(part, Number):
                yield from part.options()

    def __repr__(self) -> str:
        return "(" + self.form.format(*(getattr(p, "__name__", repr(p)) for p in self.parts)) + ")"


class Tracked(float):
    """A float that knows how it is computed; what is computed from it knows as well.

    It is equal to itself only: no table of constants has one.  Asking it for a decision refuses
    the plan, which would not take it anew.
    """

    __slots__ = ("number", "refuse")

    def __new__(cls, value: float, number: Number, refuse: Callable[[str], None]) -> Tracked:
        self = float.__new__(cls, value)
        self.number, self.refuse = number, refuse
        return self

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def _arithmetic(sign: str, function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def run(self: Tracked, other: object) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        number = other.number if isinstance(other, Tracked) else other
        parts, values = (self.number, number), (float(self), float(other))
        if reflected:
            parts, values = parts[::-1], values[::-1]
        return Tracked(function(*values), Computed(f"{{}} {sign} {{}}", parts), self.refuse)

    return run


def _decision(name: str) -> Callable[..., Any]:
    plain = getattr(float, name)

    def run(self: Tracked, *args: object) -> Any:
        self.refuse("a number of the optimiser decides what it does")
        return plain(self, *args)

    return run


for _sign, _name in {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "**": "pow"}.items():
    _function = getattr(operator, _name)
    setattr(Tracked, f"__{_name}__", _arithmetic(_sign, _function, False))
    setattr(Tracked, f"__r{_name}__", _arithmetic(_sign, _function, True))
for _name in ("__bool__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Tracked, _name, _decision(_name))


class Counter:
    """A count of steps in the place of its tensor, for the body of an optimiser's step."""

    __slots__ = ("_count", "_read", "_refuse", "_tensor", "_times")

    def __init__(
        self,
        tensor: Tensor,
        count: Callable[[Tensor], int],
        read: Callable[[Tensor], float],
        refuse: Callable[[str], None],
    ) -> None:
        """Stand for `tensor`, which `count` counts up and says how often it has done so."""
        self._tensor, self._count, self._read, self._refuse = tensor, count, read, refuse
        self._times = 0

    def add_(self, _: int) -> Counter:
        """Count up, now and in every run."""
        self._times = self._count(self._tensor)
        return self

    def item(self) -> Tracked:
        """The count."""
        number = _Count(self._tensor, self._times)
        return Tracked(self._read(self._tensor), number, self._refuse)
