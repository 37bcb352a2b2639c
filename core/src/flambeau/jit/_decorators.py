"""Marks on functions that say how they take part in scripted programs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from flambeau.jit._parts import compiler

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_torchscript_modifier"
_IGNORED, _UNUSED, _EXPORTED = "ignored", "unused", "exported"


def _mark(fn: Callable[..., Any], mark: str) -> Any:
    target = fn.fget if isinstance(fn, property) else fn
    try:
        setattr(target, _MARK, mark)
    except AttributeError:
        raise TypeError(
            f"{mark}: a function or method of Python is needed, got {type(target).__name__}"
        ) from None
    return fn


def _marked(fn: object) -> str:
    target = getattr(fn, "__func__", fn)
    return getattr(target, _MARK, "")


def is_ignored(fn: object) -> bool:
    """Whether Python runs a function, or it is not called at all."""
    return _marked(fn) in (_IGNORED, _UNUSED)


def is_unused(fn: Callable[..., Any]) -> bool:
    """Whether a call of a function raises."""
    return _marked(fn) == _UNUSED


def is_exported(fn: Callable[..., Any]) -> bool:
    """Whether a method is compiled though `forward` does not call it."""
    return _marked(fn) == _EXPORTED


def ignore(drop: bool | Callable[..., Any] = False, **kwargs: object) -> Any:
    """Leave a function or method to Python: its call in a scripted program runs it there.

    What is ignored cannot be saved.  With ``drop=True`` it is as `unused`.

    >>> import flambeau as fb
    >>> @fb.jit.ignore
    ... def halve(x: int) -> int:
    ...     return x >> 1
    >>> @fb.jit.script
    ... def f(x: int) -> int:
    ...     return halve(x) + 1
    >>> f(6)
    4
    """
    if callable(drop):
        return _mark(drop, _IGNORED)
    if not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    return lambda fn: _mark(fn, _UNUSED if drop else _IGNORED)


def unused(fn: F) -> F:
    """Leave a method out of a scripted module: a call of it raises.

    >>> import flambeau as fb
    >>> @fb.jit.unused
    ... def later(x: fb.Tensor) -> fb.Tensor:
    ...     return undefined(x)
    >>> @fb.jit.script
    ... def f(x: fb.Tensor, now: bool) -> fb.Tensor:
    ...     return x if now else later(x)
    >>> f(fb.ones(1), True)
    tensor([1.])
    """
    return _mark(fn, _UNUSED)


def export(fn: F) -> F:
    """Compile a method of a module even where nothing calls it.

    >>> import flambeau as fb
    >>> class Net(fb.nn.Module):
    ...     def forward(self, x):
    ...         return x
    ...     @fb.jit.export
    ...     def twice(self, x):
    ...         return x + x
    >>> fb.jit.script(Net()).twice(fb.ones(1))
    tensor([2.])
    """
    return _mark(fn, _EXPORTED)


def plain(fn: object) -> Any:
    """A public function itself, where one that offers its calls, or an older one, has its name."""
    inner = getattr(fn, "_function", None)
    return plain(inner) if inner is not None and getattr(fn, "__wrapped__", None) is inner else fn


_OVERLOADS: dict[str, list[Any]] = {}


def _key(fn: Callable[..., Any]) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"


def _overload(func: F) -> F:
    """Note one signature of a function that has several; the function itself comes last."""
    _OVERLOADS.setdefault(_key(func), []).append(func)
    return func


_overload_method = _overload


def overloads_of(fn: Callable[..., Any]) -> list[Any]:
    """The signatures that were noted for a function."""
    return _OVERLOADS.get(_key(fn), []) if hasattr(fn, "__qualname__") else []


def script_if_tracing(fn: F) -> F:
    """Script a function when it is first called while another is traced.

    >>> import flambeau as fb
    >>> @fb.jit.script_if_tracing
    ... def f(x):
    ...     return x + 1
    >>> f(fb.ones(1))
    tensor([2.])
    """

    @functools.wraps(fn)
    def wrapper(*args: object, **kwargs: object) -> object:
        is_tracing = compiler.root.is_tracing
        script = compiler.root.script

        if not is_tracing():
            return fn(*args, **kwargs)
        return script(fn)(*args, **kwargs)

    wrapper.__dict__["__original_fn"] = fn
    wrapper.__dict__["__script_if_tracing_wrapper"] = True
    return wrapper  # type: ignore[return-value]


def warn_of(name: str) -> None:
    """Say that a name is one of older programs."""
    warnings.warn(f"`{name}` is deprecated", DeprecationWarning, stacklevel=3)
