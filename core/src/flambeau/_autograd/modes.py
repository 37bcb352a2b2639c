"""Modes of execution: gradient recording, per thread and per asyncio task."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

_Call = TypeVar("_Call", bound=Callable[..., Any])

_grad_mode: ContextVar[bool] = ContextVar("flambeau_grad_mode", default=True)
recording = _grad_mode.get
set_recording = _grad_mode.set
_inference: ContextVar[bool] = ContextVar("flambeau_inference_mode", default=False)


class _GradMode:
    """A context manager and decorator that sets gradient recording and restores it."""

    _mode: bool

    def __init__(self) -> None:
        self._previous: list[bool] = []

    def __enter__(self) -> None:
        before = recording()
        self._previous.append(before)
        try:
            set_recording(self._mode)
        except BaseException:  # an interrupt, when it was set already
            set_recording(before)
            raise

    def __exit__(self, *exc: object) -> None:
        # An interrupt may follow any call: the mode is back before anything else is called.
        set_recording(self._previous[-1])
        del self._previous[-1]

    def _fresh(self) -> _GradMode:
        return type(self)()

    def __call__(self, func: _Call) -> _Call:
        if inspect.isclass(func):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To keep the present behaviour, "
                "decorate the class's `__init__` method.",
                FutureWarning,
                stacklevel=2,
            )
            func.__init__ = self(func.__init__)  # type: ignore[misc]
            return func  # type: ignore[return-value]
        if inspect.isgeneratorfunction(func):
            return _wrapped_generator(self._fresh, func)  # type: ignore[return-value]

        mode = self._mode

        @functools.wraps(func)
        def inner(*args: object, **kwargs: object) -> object:
            # Not by the block, whose end an interrupt could keep from beginning.
            before = recording()
            try:
                set_recording(mode)
                return func(*args, **kwargs)
            finally:
                set_recording(before)

        return inner  # type: ignore[return-value]


def _wrapped_generator(
    fresh: Callable[[], _GradMode], func: Callable[..., Any]
) -> Callable[..., Iterator[Any]]:
    # The mode holds while the generator's own code runs, not while its consumer's does.
    @functools.wraps(func)
    def inner(*args: object, **kwargs: object) -> Any:
        generator = func(*args, **kwargs)
        try:
            with fresh():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with fresh():
                        generator.close()
                    raise
                except BaseException as error:
                    with fresh():
                        response = generator.throw(error)
                else:
                    with fresh():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return inner


class no_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Context manager and decorator: operations inside are not recorded for backward.

    Local to the thread.  Works with or without parentheses as a decorator.

    >>> import flambeau as fb
    >>> x = fb.ones(1, requires_grad=True)
    >>> with fb.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    _mode = False

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        self = super().__new__(cls)
        if orig_func is None:
            return self
        self.__init__()
        return self(orig_func)

    def __init__(self, orig_func: object = None) -> None:
        super().__init__()


class enable_grad(no_grad):  # noqa: N801 - PyTorch's name
    """Context manager and decorator: operations inside are recorded, also within `no_grad`.

    >>> import flambeau as fb
    >>> x = fb.ones(1, requires_grad=True)
    >>> with fb.no_grad(), fb.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    _mode = True


class set_grad_enabled(_GradMode):  # noqa: N801 - PyTorch's name
    """Switch recording on or off: at once as a function, or for a block as a context manager.

    Args:
        mode: whether operations are recorded.

    >>> import flambeau as fb
    >>> x = fb.ones(1, requires_grad=True)
    >>> with fb.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._mode = bool(mode)
        self._before = before = recording()
        try:
            set_recording(self._mode)
        except BaseException:
            set_recording(before)
            raise

    def __enter__(self) -> None:
        self._previous.append(self._before)
        try:
            set_recording(self._mode)
        except BaseException:
            set_recording(self._before)
            raise

    def __call__(self, func: _Call) -> _Call:
        set_recording(self._before)  # as a decorator, constructing it changes nothing here
        return super().__call__(func)

    def _fresh(self) -> _GradMode:
        return no_grad() if not self._mode else enable_grad()


class inference_mode(_GradMode):  # noqa: N801 - PyTorch's name
    """Context manager and decorator for code that will never need gradients.

    Recording is off as in `no_grad`; with ``mode=False`` it is on.

    >>> import flambeau as fb
    >>> with fb.inference_mode():
    ...     fb.is_grad_enabled()
    False
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.__init__()
            return self(mode)
        return self

    def __init__(self, mode: bool | Callable[..., Any] = True) -> None:
        super().__init__()
        self._mode = mode is False
        self._outside: list[bool] = []

    def __enter__(self) -> None:
        before = _inference.get()
        self._outside.append(before)
        try:
            _inference.set(not self._mode)
            super().__enter__()
        except BaseException:
            _inference.set(before)
            raise

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        _inference.set(self._outside.pop())

    def _fresh(self) -> _GradMode:
        return type(self)(not self._mode)

    def __call__(self, func: _Call) -> _Call:
        made = super().__call__(func)
        if inspect.isclass(func) or inspect.isgeneratorfunction(func):
            return made
        on = not self._mode

        @functools.wraps(func)
        def inner(*args: object, **kwargs: object) -> object:
            before = _inference.get()
            try:
                _inference.set(on)
                return made(*args, **kwargs)
            finally:
                _inference.set(before)

        return inner  # type: ignore[return-value]


def is_grad_enabled() -> bool:
    """Whether operations are recorded at present in this thread.

    >>> import flambeau as fb
    >>> fb.is_grad_enabled()
    True
    """
    return recording()


def is_inference_mode_enabled() -> bool:
    """Whether the innermost `inference_mode` of this thread is on.

    >>> import flambeau as fb
    >>> with fb.inference_mode():
    ...     fb.is_inference_mode_enabled()
    True
    """
    return _inference.get()
