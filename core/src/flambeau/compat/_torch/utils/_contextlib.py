"""A base of context managers that are decorators too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = [
    "_DecoratorContextManager",
    "_NoParamDecoratorContextManager",
    "_wrap_generator",
    "context_decorator",
]


def context_decorator(ctx: object, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function of which every call, and every step of a generator, runs inside a context.

    Args:
        ctx: the context, if it can be entered again, or what makes one.
        func: the function.
    """
    made: Callable[[], Any] = (
        ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx
    )
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(made, func)

    @functools.wraps(func)
    def inside(*args: object, **kwargs: object) -> object:
        with made():
            return func(*args, **kwargs)

    return inside


def _wrap_generator(ctx_factory: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function, every step of which runs inside a context of its own."""

    @functools.wraps(func)
    def steps(*args: object, **kwargs: object) -> Any:
        generator = func(*args, **kwargs)
        send, value = generator.send, None
        try:
            while True:
                with ctx_factory():
                    answer = send(value)
                try:
                    value, send = (yield answer), generator.send
                except GeneratorExit:
                    with ctx_factory():
                        generator.close()
                    raise
                except BaseException as error:
                    value, send = error, generator.throw
        except StopIteration as stop:
            return stop.value

    return steps


class _DecoratorContextManager:
    """A context manager whose objects decorate functions; each call gets a `clone`."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        raise NotImplementedError

    def clone(self) -> _DecoratorContextManager:
        """Another of this class."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, also as a decorator without brackets."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
