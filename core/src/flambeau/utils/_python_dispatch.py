"""Modes that see every op below autograd, forward and backward."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._autograd.modes import no_grad
from flambeau.autograd import _recorder
from flambeau.utils import _aten_calls

__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
]


class _Stack(threading.local):
    """The modes of a thread, innermost last."""

    modes: tuple[TorchDispatchMode, ...] = ()


_stack = _Stack()


class TorchDispatchMode:
    """A block in which this thread's ops are seen below autograd: those of backward as well.

    Derive from it and write ``__torch_dispatch__(self, func, types, args, kwargs)``, which is
    called instead of a kernel and returns the result.  `func` is an op of ``torch.ops.aten`` where
    there is one of the same arguments, such as ``aten.mm.default``, else one of the namespace
    ``flambeau`` with the name and arguments of `flambeau.ops.OPS`; kernels of several of PyTorch's
    ops, such as ``layer_norm``, are one call.  Tensors among the arguments have no history.  While
    it runs, its mode is off and those around it are on, so that it may call `func`.

    >>> import flambeau as fb
    >>> from flambeau.utils._python_dispatch import TorchDispatchMode
    >>> class Named(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = fb.ones(2, 2)
    >>> with Named():
    ...     y = (x @ x + x).exp()
    aten.mm.default
    aten.add.Tensor
    aten.exp.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """What an op makes; derived classes say it.

        Raises:
            NotImplementedError: they do not.
        """
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__ of its own")

    def __enter__(self) -> Any:
        _recorder.handle(self._instead)
        _stack.modes = (*_stack.modes, self)
        return self

    def __exit__(self, *exc: object) -> None:
        _stack.modes = _stack.modes[:-1]
        _recorder.release()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: it is a program's."""
        return False

    def _instead(
        self, name: str, kernel: Callable[..., Any], args: tuple[Any, ...], be: Any
    ) -> Any:
        """What the mode makes of a call of a kernel, as arrays."""
        before = _stack.modes
        _stack.modes = before[: before.index(self)] if self in before else before
        try:
            with no_grad():
                found = _aten_calls.tensors(args, be)
                if name == "linear":
                    return _aten_calls.arrays(_aten_calls.linear_calls(self._told, *found))
                result = self._told(_aten_calls.call_of(name, found, be))
            return None if name.endswith("_") or name in _WRITING else _aten_calls.arrays(result)
        finally:
            _stack.modes = before

    def _told(self, call: _aten_calls.Call) -> Any:
        func, args, kwargs = call
        result = self.__torch_dispatch__(func, (), args, kwargs)
        if result is NotImplemented:
            raise TypeError(
                f"no implementation found for '{func}': {type(self).__name__} returned "
                "NotImplemented"
            )
        return result


_WRITING = frozenset({"assign"})


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode of this thread."""
    return _stack.modes[-1] if _stack.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The modes of this thread, outermost first."""
    return list(_stack.modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """A block in which no mode of this thread sees anything."""
    modes, handlers = _stack.modes, _recorder.handling.handlers
    _stack.modes, _recorder.handling.handlers = (), ()
    try:
        yield list(modes)
    finally:
        _stack.modes, _recorder.handling.handlers = modes, handlers


def is_traceable_wrapper_subclass(t: object) -> bool:
    """False: tensors hold arrays, not other tensors."""
    return False
