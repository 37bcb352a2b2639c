"""How a function runs again as it did: what it drew from and wrote to is put back meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau._dispatch import dispatch as _dispatch
from flambeau._memory.record import Storage
from flambeau._memory.views import storage_of
from flambeau._random.generator import Generator

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.native import Array
    from flambeau.plans.entry import Seen
    from flambeau.plugin.plan import Step

__all__ = ["Before", "Moment", "drawn_from", "replace"]

_T = TypeVar("_T")


class Moment:
    """Where generators are in their streams and what tensors hold, before a run changes both."""

    __slots__ = ("_places", "_values")

    def __init__(self, generators: Sequence[Generator], tensors: Sequence[Tensor]) -> None:
        self._places = [(each, each._saved()) for each in generators]
        self._values = [(t, t._be.clone(t._a), _dispatch.version(t)) for t in tensors]

    def during(self, function: Callable[[], _T]) -> _T:
        """What a function gives if it is run as of then; afterwards all is as it is now."""
        now = Moment([each for each, _ in self._places], [t for t, *_ in self._values])
        try:
            self._return()
            return function()
        finally:
            now._return()

    def _return(self) -> None:
        for generator, place in self._places:
            generator._restore(place)
        for t, array, version in self._values:
            replace(t._be, t, t._be.clone(array))
            storage_of(t).version = version


class Before:
    """What a run may change, which has to be made again if it fails for what looks on."""

    __slots__ = ("_moment", "_numbers", "_seen")

    def __init__(
        self,
        generators: Sequence[Generator],
        seen: Sequence[Seen],
        numbers: Sequence[tuple[Any, str]],
    ) -> None:
        self._moment = Moment(generators, [one.tensor for one in seen])
        self._seen = seen
        self._numbers = [(mapping, key, mapping[key]) for mapping, key in numbers]

    def back(self) -> None:
        """Put all of it back."""
        self._moment._return()
        for one in self._seen:
            one.tensor._grad, one.tensor._rg, one.tensor._fn = one.grad, one.rg, one.fn
        for mapping, key, value in self._numbers:
            mapping[key] = value


def drawn_from(steps: Sequence[Step]) -> list[Generator]:
    """The generators that calls draw from."""
    found = {id(a): a for step in steps for a in step.args if isinstance(a, Generator)}
    return list(found.values())


def replace(be: BoundBackend, t: Tensor, array: Array) -> None:
    """Give a tensor the values of a fresh array, as `_writes.inplace.exchange` does."""
    st = t._st
    if be.strided and st is not None and st.shared:
        be.assign(t._a, array)
        return
    if st is None:
        st = t._st = Storage(array, be, t.dtype)
    t._a = array
    if be.strided or t._base is None:
        st.buffer = array
