"""Modes that see every op below autograd, forward and backward."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._autograd.modes import no_grad
from flambeau.autograd import _recorder
from flambeau.utils import _aten_calls

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend


__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
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
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """What an op makes; derived classes say it.

        Raises:
            NotImplementedError: they do not.
        """
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__ of its own")

    def __enter__(self) -> TorchDispatchMode:
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
        self, name: str, kernel: Callable[..., Any], args: tuple[Any, ...], be: BoundBackend
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

    def _asked(self, call: _aten_calls.Call, types: tuple[type, ...]) -> Any:
        """What the mode makes of a call with tensors of classes that have their own say."""
        modes, handlers = _stack.modes, _recorder.handling.handlers
        _stack.modes, _recorder.handling.handlers = modes[:-1], handlers[:-1]
        try:
            return self._told(call, types)
        finally:
            _stack.modes, _recorder.handling.handlers = modes, handlers

    def _told(self, call: _aten_calls.Call, types: tuple[type, ...] = ()) -> Any:
        func, args, kwargs = call
        result = self.__torch_dispatch__(func, types, args, kwargs)
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
    """Whether a tensor of another class says which tensors it consists of.

    It does by ``__tensor_flatten__`` and ``__tensor_unflatten__``.
    """
    return is_traceable_wrapper_subclass_type(type(t)) and isinstance(t, fb.Tensor)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether tensors of a class say which tensors they consist of."""
    return (
        issubclass(t, fb.Tensor)
        and t is not fb.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any,
    callback: Callable[[str, fb.Tensor], fb.Tensor],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """A tensor of the same class, made of what `callback` makes of each part, told its name."""
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(parts, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What an op gives, where that is a view or an argument that was written to.

    Views share their memory here anyway; of a call that writes it is the tensor written to.
    """
    name = func.overloadpacket.__name__
    if name.endswith("_") and not name.endswith("__") and args:
        return args[0]
    if "out" in (kwargs or {}):
        return kwargs["out"]
    return out
