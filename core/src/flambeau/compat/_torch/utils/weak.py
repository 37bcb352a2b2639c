"""Weak references and dictionaries that compare tensors by identity."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref):
    """A weak reference, equal to another of the same object."""

    __slots__ = ("_id",)

    _id: int

    def __new__(cls, key: Any, callback: Callable[..., Any] | None = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, WeakIdRef) else None
        return a is b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that keeps no key alive and compares keys by identity."""

    def __init__(self, dict: Any = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.data: dict[WeakIdRef, Any] = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: object, value: Any) -> None:
        data = self.data
        self.data[self.ref_type(key, lambda ref: data.pop(ref, None))] = value

    def __delitem__(self, key: object) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return sum(ref() is not None for ref in list(self.data))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: fb.Tensor) -> None:
        assert isinstance(tensor, fb.Tensor)
        self.ref = weakref.ref(tensor)

    def __call__(self) -> fb.Tensor | None:
        return self.ref()
