"""Ops under PyTorch's names: what ``torch.ops.aten`` finds, and what modes are told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._tensor.overrides import run_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau._tensor.tensor import Tensor

__all__ = ["Overload", "Packet", "find"]


class Packet:
    """An op under one name: a function, with overloads, each of which calls it.

    Args:
        function: what it computes.
        namespace: the part before the colons.
        name: the part after them.
    """

    def __init__(self, function: Callable[..., Any], namespace: str, name: str) -> None:
        self._function = function
        self._qualified_op_name = f"{namespace}::{name}"
        self._asked: list[str] = []
        self.__name__ = name

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return run_plain(self._function, args, kwargs)

    def __getattr__(self, overload: str) -> Overload:
        if overload.startswith("_"):
            raise AttributeError(f"the op '{self}' has no overload {overload!r}")
        found = self.__dict__[overload] = Overload(self, overload)
        self._asked.append(overload)
        return found

    def overloads(self) -> list[str]:
        """Those that were asked for; any name gives one."""
        return list(self._asked)

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class Overload:
    """An overload of an op: the same object each time, so that programs compare it by ``is``."""

    def __init__(self, packet: Packet, overload: str) -> None:
        self.overloadpacket = packet
        self.namespace = packet._qualified_op_name.partition("::")[0]
        self._overloadname = overload
        self._opname = packet.__name__
        self.__name__ = f"{packet.__name__}.{overload}"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def name(self) -> str:
        """Namespace, name and, unless it is the default one, the overload."""
        name = self.overloadpacket._qualified_op_name
        return name if self._overloadname == "default" else f"{name}.{self._overloadname}"

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


_found: dict[str, Packet] = {}


def find(name: str) -> Packet | None:
    """The op of ``aten`` with this name; None if flambeau has no function for it."""
    if (found := _found.get(name)) is not None:
        return found
    function = _FUNCTIONS.get(name)
    if function is None and not name.startswith("__"):
        plain = name.removeprefix("special_").removeprefix("linalg_")
        nn = getattr(fb, "nn", None)  # of a distribution of its own
        homes: tuple[Any, ...] = (fb.special, fb.linalg)
        if plain == name:
            homes = (fb, fb.Tensor) if nn is None else (fb, nn.functional, fb.Tensor)
        known = (getattr(home, plain, None) for home in homes)
        function = next((each for each in known if callable(each)), None)
    if function is None:
        return None
    made = _found[name] = Packet(function, "aten", name)
    return made


def _to_copy(self: fb.Tensor, *, non_blocking: bool = False, **options: object) -> fb.Tensor:
    chosen = {name: value for name, value in options.items() if value is not None}
    chosen.pop("layout", None)
    chosen.pop("pin_memory", None)
    return self.to(**chosen, copy=True)


def _index(self: fb.Tensor, indices: Sequence[Tensor | None]) -> fb.Tensor:
    return self[tuple(slice(None) if index is None else index for index in indices)]


def _slice(
    self: fb.Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> fb.Tensor:
    return self[(slice(None),) * (dim % self.dim()) + (slice(start, end, step),)]


def _view_as(self: fb.Tensor) -> fb.Tensor:
    return self.view_as(self)


def _softmax(self: fb.Tensor, dim: int, half_to_float: bool = False) -> fb.Tensor:
    return fb.softmax(self, dim)


def _log_softmax(self: fb.Tensor, dim: int, half_to_float: bool = False) -> fb.Tensor:
    return fb.log_softmax(self, dim)


def _local_scalar_dense(self: fb.Tensor) -> complex:
    return self.item()


def _is_all_true(self: fb.Tensor) -> fb.Tensor:
    return self.all()


def _is_any_true(self: fb.Tensor) -> fb.Tensor:
    return self.any()


def _sym_size(self: fb.Tensor, dim: int | None = None) -> int:
    return self.size() if dim is None else self.size(dim)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_is_all_true": _is_all_true,
    "_is_any_true": _is_any_true,
    "_local_scalar_dense": _local_scalar_dense,
    "_log_softmax": _log_softmax,
    "_pin_memory": fb.Tensor.pin_memory,
    "_softmax": _softmax,
    "_to_copy": _to_copy,
    "_unsafe_view": fb.Tensor.view,
    "alias": _view_as,
    "index": _index,
    "lift_fresh": _view_as,
    "slice": _slice,
    "sym_size": _sym_size,
}
"""Ops that are no functions."""
