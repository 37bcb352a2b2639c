"""Modules that hold modules: `Sequential`, `ModuleList` and `ModuleDict`."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Self, overload

from flambeau.nn._registry import typename
from flambeau.nn.functional._arguments import whole_number
from flambeau.nn.module import Module
from flambeau.nn.modules._fused_layers import ACTIVATIONS, activated, together
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.parameter_container import ParameterDict as ParameterDict
from flambeau.nn.modules.parameter_container import ParameterList as ParameterList
from flambeau.nn.modules.parameter_container import pairs


class _Indexed(Module):
    """Children in order, reached by position; their names are positions unless given."""

    def _key(self, idx: int) -> str:
        """The name of the child at a position, which may be negative."""
        place = operator.index(idx)
        size = len(self._modules)
        if not -size <= place < size:
            raise IndexError(f"index {idx} is out of range")
        return list(self._modules)[place]

    _get_abs_string_index = _key  # as libraries call it

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in keys:
            delattr(self, key)
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _insert(self, index: int, module: Module) -> None:
        if not (module is None or isinstance(module, Module)):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module

    def append(self, module: Module) -> Self:
        """Add a module at the end.

        >>> import flambeau as fb
        >>> fb.nn.ModuleList([fb.nn.ReLU()]).append(fb.nn.Tanh())[1]
        Tanh()
        """
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove the module at a position (or those of a slice) and return it.

        >>> import flambeau as fb
        >>> fb.nn.Sequential(fb.nn.ReLU(), fb.nn.Tanh()).pop(0)
        ReLU()
        """
        module = self[key]  # pyright: ignore[reportIndexIssue]
        del self[key]
        return module


class Sequential(_Indexed):
    """Modules that are called one after the other, each with the result of the one before.

    They are given as arguments, or with names as an ordered dictionary.

    >>> import flambeau as fb
    >>> model = fb.nn.Sequential(fb.nn.Linear(2, 3), fb.nn.ReLU())
    >>> model(fb.ones(1, 2)).shape
    torch.Size([1, 3])
    >>> model[1]
    ReLU()
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...
    def __init__(self, *args: object) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> Sequential: ...
    def __getitem__(self, idx: int | slice) -> Module:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def forward(self, input: Any) -> Any:
        """The result of the last module; `input` itself without modules."""
        if not together(input):
            for module in self._modules.values():
                input = module(input)
            return input
        linear = None  # still to be called
        for module in self._modules.values():
            if linear is not None:
                before, linear = linear, None
                if type(module) in ACTIVATIONS:
                    input = activated(before, module, input)
                    continue
                input = before(input)
            if type(module) is Linear:
                linear = module
            else:
                input = module(input)
        return input if linear is None else linear(input)

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the position `index`.

        Raises:
            IndexError: there is no such position.
            AssertionError: `module` is not a module.

        >>> import flambeau as fb
        >>> fb.nn.Sequential(fb.nn.ReLU()).insert(0, fb.nn.Tanh())[0]
        Tanh()
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, got {type(module)}")
        index = whole_number(index, "Sequential.insert", "index")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        self._insert(index + size if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add the modules of an iterable at the end.

        >>> import flambeau as fb
        >>> len(fb.nn.Sequential(fb.nn.ReLU()).extend([fb.nn.Tanh(), fb.nn.ReLU()]))
        3
        """
        for module in list(sequential):
            self.append(module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        _require_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        _require_sequential(other)
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        self._require_factor(other)
        return Sequential(*list(self) * other)

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Self:
        self._require_factor(other)
        return self.extend(list(self) * (other - 1))

    def _require_factor(self, factor: object) -> None:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")


def _require_sequential(other: object) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )


class ModuleList(_Indexed):
    """Modules in a list: registered, and used like a Python list.

    >>> import flambeau as fb
    >>> layers = fb.nn.ModuleList([fb.nn.Linear(2, 2) for _ in range(3)])
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> ModuleList: ...
    def __getitem__(self, idx: int | slice) -> Module:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._key(idx)]

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the position `index`.

        Raises:
            IndexError: the position is negative.

        >>> import flambeau as fb
        >>> layers = fb.nn.ModuleList([fb.nn.ReLU()])
        >>> layers.insert(0, fb.nn.Tanh()); layers[0]
        Tanh()
        """
        index = whole_number(index, "ModuleList.insert", "index")
        if index < 0:
            raise IndexError(f"ModuleList.insert: index {index} is negative")
        self._insert(index, module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add the modules of an iterable at the end.

        Raises:
            TypeError: `modules` is not an iterable.

        >>> import flambeau as fb
        >>> len(fb.nn.ModuleList([fb.nn.ReLU()]).extend([fb.nn.Tanh(), fb.nn.ReLU()]))
        3
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, "
                f"but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Like every module's, with equal neighbours on one line."""
        blocks: list[tuple[int, int, str]] = []  # first, last, repr
        for i, module in enumerate(self):
            text = repr(module)
            if blocks and blocks[-1][2] == text:
                blocks[-1] = (blocks[-1][0], i, text)
            else:
                blocks.append((i, i, text))
        lines = []
        for first, last, text in blocks:
            text = text.replace("\n", "\n  ")
            many = f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(f"  ({first}): {text}\n" if first == last else f"  {many}\n")
        return f"{self._get_name()}(\n{''.join(lines)})" if lines else f"{self._get_name()}()"


class ModuleDict(Module):
    """Modules in a dictionary: registered, and used like a Python dictionary, in insertion order.

    >>> import flambeau as fb
    >>> choices = fb.nn.ModuleDict({"relu": fb.nn.ReLU(), "tanh": fb.nn.Tanh()})
    >>> choices["tanh"]
    Tanh()
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules.

        >>> import flambeau as fb
        >>> choices = fb.nn.ModuleDict({"relu": fb.nn.ReLU()})
        >>> choices.clear(); len(choices)
        0
        """
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the module with this key and return it.

        >>> import flambeau as fb
        >>> fb.nn.ModuleDict({"relu": fb.nn.ReLU()}).pop("relu")
        ReLU()
        """
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The keys.

        >>> import flambeau as fb
        >>> list(fb.nn.ModuleDict({"relu": fb.nn.ReLU()}).keys())
        ['relu']
        """
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """The pairs of key and module.

        >>> import flambeau as fb
        >>> list(fb.nn.ModuleDict({"relu": fb.nn.ReLU()}).items())
        [('relu', ReLU())]
        """
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules.

        >>> import flambeau as fb
        >>> list(fb.nn.ModuleDict({"relu": fb.nn.ReLU()}).values())
        [ReLU()]
        """
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace the modules of a mapping or of an iterable of pairs, in its order.

        Raises:
            TypeError: `modules` is not an iterable, or not of pairs.
            ValueError: an element has another length than two.

        >>> import flambeau as fb
        >>> choices = fb.nn.ModuleDict()
        >>> choices.update([("relu", fb.nn.ReLU())]); list(choices)
        ['relu']
        """
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module
