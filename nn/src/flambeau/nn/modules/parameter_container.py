"""Modules that hold parameters: `ParameterList` and `ParameterDict`."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, Self, overload

from flambeau import Tensor
from flambeau.nn._registry import typename
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter


def _as_parameter(value: Any) -> Any:
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


def _line(key: object, value: object, dtype: str) -> str:
    """One line of the repr."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.shape)
    where = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    return f"  ({key}): {kind} containing: [{dtype} of size {size}{where}]"


class ParameterList(Module):
    """Parameters in a list: registered, and used like a Python list.

    Tensors become parameters; other objects are kept as they are.

    >>> import flambeau as fb
    >>> weights = fb.nn.ParameterList([fb.ones(2), fb.zeros(3)])
    >>> weights
    ParameterList(
        (0): Parameter containing: [torch.float32 of size 2]
        (1): Parameter containing: [torch.float32 of size 3]
    )
    """

    _size: int

    def __init__(
        self, values: Iterable[Any] | None = None, *, parameters: Iterable[Any] | None = None
    ) -> None:
        super().__init__()
        self._size = 0
        values = parameters if values is None else values
        if values is not None:
            self.extend(values)

    def _key(self, idx: int) -> str:
        place = operator.index(idx)
        if not -self._size <= place < self._size:
            raise IndexError(f"index {idx} is out of range")
        return str(place % self._size)

    _get_abs_string_index = _key  # as libraries call it

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> Any: ...
    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[i] for i in range(*idx.indices(len(self))))
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, param: object) -> None:
        setattr(self, self._key(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: object = None, *, parameter: object = None) -> Self:
        """Add a parameter at the end; PyTorch 1.0 calls it `parameter`.

        >>> import flambeau as fb
        >>> len(fb.nn.ParameterList().append(fb.ones(2)))
        1
        """
        self._size += 1
        self[self._size - 1] = parameter if value is None else value
        return self

    def extend(
        self, values: Iterable[Any] | None = None, *, parameters: Iterable[Any] | None = None
    ) -> Self:
        """Add the parameters of an iterable at the end; PyTorch 1.0 calls it `parameters`.

        Raises:
            TypeError: `values` is a tensor or not an iterable.

        >>> import flambeau as fb
        >>> len(fb.nn.ParameterList().extend([fb.ones(2), fb.ones(3)]))
        2
        """
        values = parameters if values is None else values
        # A tensor is an iterable of its rows, which is never meant here.
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, "
                f"but got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(
            _line(i, p, repr(p.dtype) if isinstance(p, Tensor) else "") for i, p in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters in a dictionary: registered, and used like a Python dictionary.

    Tensors become parameters; other objects are kept as they are.  A mapping that is not an
    `OrderedDict` is entered in the order of its sorted keys.

    >>> import flambeau as fb
    >>> weights = fb.nn.ParameterDict({"left": fb.ones(2), "right": fb.zeros(3)})
    >>> list(weights)
    ['left', 'right']
    >>> weights["left"].requires_grad
    True
    """

    _keys: dict[str, None]

    def __init__(self, parameters: object = None) -> None:
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _checked(key))

    def __setitem__(self, key: str, value: object) -> None:
        self._keys[_checked(key)] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same parameters.

        >>> import flambeau as fb
        >>> weights = fb.nn.ParameterDict({"left": fb.ones(2)})
        >>> weights.copy()["left"] is weights["left"]
        True
        """
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: object = None) -> Any:
        """The parameter with this key, which is `default` from now on if there was none.

        >>> import flambeau as fb
        >>> fb.nn.ParameterDict().setdefault("left", fb.ones(2)).requires_grad
        True
        """
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all parameters.

        >>> import flambeau as fb
        >>> weights = fb.nn.ParameterDict({"left": fb.ones(2)})
        >>> weights.clear(); len(weights)
        0
        """
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove the parameter with this key and return it.

        >>> import flambeau as fb
        >>> fb.nn.ParameterDict({"left": fb.ones(2)}).pop("left").shape
        torch.Size([2])
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the pair that was added last and return it.

        >>> import flambeau as fb
        >>> fb.nn.ParameterDict({"left": fb.ones(2)}).popitem()[0]
        'left'
        """
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: object = None) -> Any:
        """The parameter with this key, or `default`.

        >>> import flambeau as fb
        >>> fb.nn.ParameterDict().get("left", 3)
        3
        """
        return self[key] if key in self else default  # noqa: SIM401 - that is this method

    def fromkeys(self, keys: Iterable[str], default: object = None) -> ParameterDict:
        """A new dictionary with `default` under all `keys`.

        >>> import flambeau as fb
        >>> list(fb.nn.ParameterDict().fromkeys(["a", "b"]))
        ['a', 'b']
        """
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The keys.

        >>> import flambeau as fb
        >>> list(fb.nn.ParameterDict({"left": fb.ones(2)}).keys())
        ['left']
        """
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The pairs of key and parameter.

        >>> import flambeau as fb
        >>> [key for key, _ in fb.nn.ParameterDict({"left": fb.ones(2)}).items()]
        ['left']
        """
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The parameters.

        >>> import flambeau as fb
        >>> [p.shape for p in fb.nn.ParameterDict({"left": fb.ones(2)}).values()]
        [torch.Size([2])]
        """
        return (self[key] for key in self._keys)

    def update(self, parameters: object) -> None:
        """Add or replace the parameters of a mapping or of an iterable of pairs.

        Raises:
            TypeError: `parameters` is not an iterable, or not of pairs.
            ValueError: an element has another length than two.

        >>> import flambeau as fb
        >>> weights = fb.nn.ParameterDict()
        >>> weights.update([("left", fb.ones(2))]); list(weights)
        ['left']
        """
        found = pairs(parameters, "ParameterDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            found.sort(key=operator.itemgetter(0))
        for key, value in found:
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        copy = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(key, value, typename(value)) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


def _checked(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string "
            f"(type is '{type(key).__name__}')"
        )
    return key


def pairs(values: object, who: str) -> list[tuple[str, Any]]:
    """The pairs of a mapping, of a module dictionary or of an iterable of pairs."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{who}.update should be called with an iterable of key/value pairs, "
            f"but got {type(values).__name__}"
        )
    if hasattr(values, "items"):
        return list(values.items())  # pyright: ignore[reportAttributeAccessIssue]
    found = []
    for place, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{who} update sequence element #{place} should be Iterable; "
                f"is {type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{who} update sequence element #{place} has length {len(pair)}; 2 is required"
            )
        found.append(pair)
    return found
