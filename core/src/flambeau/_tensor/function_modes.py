"""Blocks in which every call of a function or method of tensors is seen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from flambeau._tensor import method_calls, overrides
from flambeau._tensor.tensor import Tensor
from flambeau.plugin.forks import make_lock


class _Stack(threading.local):
    """The modes of a thread, innermost last; those that are handling a call are out of it."""

    modes: tuple[Any, ...] = ()


stack = _Stack()
_lock = make_lock()
_entered = 0
_originals: list[tuple[str, Any]] = []  # methods of Tensor's own class, None for inherited ones


def enter(mode: object, lasting: bool = True) -> None:
    """Let a mode see the calls of this thread, before those around it.

    Args:
        lasting: whether the public functions go on looking for modes afterwards; without it they
            have to be in a block of `overrides.offering_calls`.
    """
    global _entered
    if lasting:
        overrides.intercept_functions()
    with _lock:
        _entered += 1
        if _entered == 1:
            _intercept_plain_methods()
            overrides.in_modes = _in_modes
    stack.modes = (*stack.modes, mode)


def leave() -> None:
    """Take the innermost mode out."""
    global _entered
    stack.modes = stack.modes[:-1]
    with _lock:
        _entered -= 1
        if _entered == 0:
            overrides.in_modes = None
            seen = Tensor.__getitem__
            for name, original in _originals:
                if original is None:
                    delattr(Tensor, name)
                else:
                    setattr(Tensor, name, original)
            _originals.clear()
            _forget_subscripts(seen)


def _in_modes(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the innermost mode makes of a call; NotImplemented if this thread has none.

    Or if it has, and the operator is not one for these operands.
    """
    modes = stack.modes
    if not modes:
        return NotImplemented
    mode = modes[-1]
    if not getattr(mode, "is_recorder", False):
        func, args = method_calls.named(func, args)
    stack.modes = modes[:-1]
    try:
        found = mode.__torch_function__(func, (), args, kwargs)
    finally:
        stack.modes = modes
    if found is NotImplemented and not method_calls.may_decline(func, args):
        raise TypeError(
            f"no implementation found for {getattr(func, '__name__', func)!r}: "
            f"{type(mode).__name__} returned NotImplemented"
        )
    return found


def _intercept_plain_methods() -> None:
    before = Tensor.__getitem__
    # All are looked up first: each look-up between two changes uses up one of the thousand versions
    # that CPython 3.13 keeps of a class before it stops to cache its attributes.
    for name, method in list(method_calls.interceptable()):
        _originals.append((name, vars(Tensor).get(name)))
        setattr(Tensor, name, _seen(method))
    _forget_subscripts(before)


def _forget_subscripts(method: Callable[..., Any]) -> None:
    """Let ``x[i]`` be looked up again that had specialised on a method which is no longer it.

    CPython 3.13.0 goes on calling it once the versions of the class are used up; that the
    function is another one, as after each change of its defaults, it sees.
    """
    method.__defaults__ = method.__defaults__


def _seen(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def seen(self: object, *args: object, **kwargs: object) -> object:
        found = _in_modes(seen, (self, *args), kwargs)
        return method(self, *args, **kwargs) if found is NotImplemented else found

    return seen
