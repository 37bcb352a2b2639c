"""``torch.ops``: functions that a program defined by `torch.library`, and those of ``aten``."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import flambeau as fb
from flambeau.compat._absent import AbsentFunction
from flambeau.utils._named_ops import DEFINED

__all__ = ["load_library"]


class _Packet:
    """An op of ``aten``: a function of flambeau with overloads, each of which calls it."""

    def __init__(self, function: Any, name: str, packet: _Packet | None = None) -> None:
        self._function = function
        self._name = name
        self.overloadpacket = packet or self
        self.__name__ = name.partition(".")[2] if packet else name.rpartition("::")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> _Packet:
        if overload.startswith("_") or self.overloadpacket is not self:
            raise AttributeError(f"the op '{self._name}' has no overload {overload!r}")
        found = self.__dict__[overload] = _Packet(
            self._function, f"{self._name}.{overload}".replace("::", "."), self
        )
        return found

    def __repr__(self) -> str:
        return f"<OpOverload(op={self._name!r})>"


class _Namespace:
    """The ops of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, op: str) -> Any:
        if op in DEFINED.get(self._name, {}):
            return DEFINED[self._name][op]
        if self._name == "aten" and not op.startswith("__"):
            if op in _ATEN:
                packet = self.__dict__[op] = _Packet(_ATEN[op], f"aten::{op}")
                return packet
            name = op.removeprefix("special_").removeprefix("linalg_")
            homes = (fb.special, fb.linalg) if name != op else (fb, fb.nn.functional, fb.Tensor)
            for home in homes:
                if callable(found := getattr(home, name, None)):
                    packet = self.__dict__[op] = _Packet(found, f"aten::{op}")
                    return packet
        raise AttributeError(f"'_OpNamespace' {self._name!r} object has no attribute {op!r}")

    def __dir__(self) -> list[str]:
        return sorted(DEFINED.get(self._name, {}))


def _to_copy(self: fb.Tensor, *, non_blocking: bool = False, **options: Any) -> fb.Tensor:
    chosen = {name: value for name, value in options.items() if value is not None}
    chosen.pop("layout", None)
    chosen.pop("pin_memory", None)
    return self.to(**chosen, copy=True)


def _index(self: fb.Tensor, indices: Any) -> fb.Tensor:
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


_ATEN: dict[str, Any] = {
    "_pin_memory": fb.Tensor.pin_memory,
    "_to_copy": _to_copy,
    "_unsafe_view": fb.Tensor.view,
    "alias": _view_as,
    "index": _index,
    "lift_fresh": _view_as,
    "slice": _slice,
    **{
        name: AbsentFunction(f"torch.ops.aten.{name}")
        for name in ("_sparse_addmm", "_sparse_mm_reduce_impl")
    },
}
"""Ops that are no functions, and those that libraries name and do not call."""


def load_library(path: str | os.PathLike[str]) -> None:
    """Load a library, which registers its ops under a namespace of this module.

    Raises:
        OSError: it is not there, or was compiled for something else.
    """
    ctypes.CDLL(os.fspath(path))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = globals()[name] = _Namespace(name)
    return found
