"""Arrays of tensors with ``__torch_dispatch__``, and how their classes are asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import flambeau as fb
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import new
from flambeau._memory.record import state_of
from flambeau._tensor.attributes import in_slots
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides
from flambeau.utils import _python_dispatch

__all__ = [
    "HISTORY",
    "LIKE",
    "DisableTorchDispatch",
    "HeldArray",
    "below",
    "call",
    "has_dispatch",
    "held",
    "twin",
]

LIKE = frozenset(
    """zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros
    new_ones new_empty new_full new_empty_strided""".split()
)
"""Ops that ask a tensor for no more than its shape, dtype and device."""


class HeldArray:
    """The array of a tensor with ``__torch_dispatch__``: the tensor itself, or what it meets.

    Attributes:
        value: a tensor, or a Python number that stands for one; None of a storage.
        shape, dtype, strides, offset: what the tensor says of itself.
        inner: the plain tensor of one that was made by ``_make_subclass``.
    """

    __slots__ = ("dtype", "inner", "offset", "shape", "strides", "value")

    def __init__(
        self,
        value: Any,
        shape: tuple[int, ...],
        dtype: D.dtype,
        strides: tuple[int, ...],
        offset: int = 0,
        inner: Tensor | None = None,
    ) -> None:
        self.value = value
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        self.offset = offset
        self.inner = inner

    def as_tensor(self, be: Any) -> Tensor:
        """What a program gets: the tensor."""
        if isinstance(self.value, Tensor):
            return self.value
        return fb.tensor(self.value, dtype=self.dtype, device=be.device)

    def added(self, other: Any) -> HeldArray:
        """The sum of two gradients, of which the other may be a plain array."""
        return self.value._be.add(self, other)


_DEFAULT = vars(Tensor)["__torch_dispatch__"].__func__


HISTORY = "_fn _rg _base _view _seen _made".split()


def has_dispatch(cls: type) -> bool:
    """Whether tensors of a class say what ops make of them."""
    own = getattr(cls, "__torch_dispatch__", None)
    return own is not None and getattr(own, "__func__", own) is not _DEFAULT


def held(t: Any) -> HeldArray:
    """A tensor as an array of a backend of these."""
    if type(t._a) is HeldArray:
        return t._a
    strides = t.stride() if t._be.strided else contiguous_strides(tuple(t._a.shape))
    return HeldArray(t, tuple(t._a.shape), t.dtype, tuple(strides))


def twin(t: Any) -> Any:
    """The same tensor without history, as another object."""
    out = new(type(t))
    state = dict(state_of(t))
    for name in (*HISTORY, "_grad", "_hooks", "_retains"):
        state.pop(name, None)
    state["_rg"] = False
    state_of(out).update(state)
    for name, value in in_slots(t).items():
        setattr(out, name, value)
    return out


class _Off(threading.local):
    """How many guards of this thread turn ``__torch_dispatch__`` off."""

    blocks = 0


_off = _Off()


class DisableTorchDispatch:
    """As long as this object lives, ops of its thread do not ask ``__torch_dispatch__``.

    They work on what tensors were made of by ``_make_subclass``.
    """

    def __init__(self) -> None:
        _off.blocks += 1

    def __del__(self) -> None:
        _off.blocks -= 1


def _shown(a: Any) -> Any:
    """An argument without what this library keeps of it: history, and its place in a backend."""
    if type(a) in (list, tuple):
        return type(a)([_shown(each) for each in a])
    if type(a) in _dispatch.PLAIN and type(a._a) is HeldArray:
        return a._a.as_tensor(a._be)
    return a


def _flat(args: Any) -> Iterator[Any]:
    for a in args:
        if type(a) in (list, tuple):
            yield from _flat(a)
        else:
            yield a


def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask the classes of the arguments, most derived first, what an op makes of them.

    Modes are asked before.

    Raises:
        TypeError: all of them return NotImplemented.
    """
    args, kwargs = _shown(args), {name: _shown(a) for name, a in kwargs.items()}
    if _off.blocks:
        return below(func, (), args, kwargs)
    types: list[Any] = []
    for a in _flat((*args, *kwargs.values())):
        cls = type(a)
        if isinstance(a, Tensor) and cls not in types and has_dispatch(cls):
            place = next((i for i, u in enumerate(types) if issubclass(cls, u)), len(types))
            types.insert(place, cls)
    if (mode := _python_dispatch._get_current_dispatch_mode()) is not None:
        return mode._asked((func, args, kwargs), tuple(types))
    for cls in types:
        result = cls.__torch_dispatch__(func, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    if not types:
        return func(*args, **kwargs)
    names = ", ".join(t.__name__ for t in types)
    raise TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented: [{names}]"
    )


def below(func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
    """What ``super().__torch_dispatch__`` does: the op on the plain tensors below.

    Raises:
        TypeError: `func` is no op, or `args` and `kwargs` are no tuple and dict.
    """
    if not hasattr(func, "overloadpacket"):
        kind = type(func).__name__
        raise TypeError(f"__torch_dispatch__(): argument 'func' must be an op, not {kind}")
    by_name: Any = {} if kwargs is None else kwargs
    if not isinstance(args, (tuple, list)) or not isinstance(by_name, dict):
        found = f"{type(args).__name__} and {type(kwargs).__name__}"
        raise TypeError(f"__torch_dispatch__(): arguments are a tuple and a dict, not {found}")

    def plain(a: Any) -> Any:
        if type(a) in (list, tuple):
            return type(a)([plain(each) for each in a])
        if isinstance(a, Tensor) and type(a._a) is HeldArray:
            if (inner := a._a.inner) is None and func.overloadpacket.__name__ in LIKE:
                return fb.zeros(a._a.shape, dtype=a.dtype, device=a.device)
            if inner is None:
                raise NotImplementedError(
                    f"{func}: a {type(a).__name__} made by _make_wrapper_subclass has no data, so "
                    "there is nothing that super().__torch_dispatch__ could compute"
                )
            return inner
        return a

    given = [plain(a) for a in args]
    named = {name: plain(a) for name, a in by_name.items()}
    result = func(*given, **named)
    for before, after in zip(args, given, strict=True):
        if result is after and before is not after:
            return before  # written to
    return result
