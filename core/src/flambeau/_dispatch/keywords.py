"""Argument names that PyTorch 1.0 documents and today's PyTorch has renamed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def documented(*forms: dict[str, str]) -> Callable[[F], F]:
    """A decorator: the function also takes the documented names of its arguments.

    Each form of call is a dict from documented names to those of the function.  A form applies when
    one of its names that the function itself does not have is used; calls by position, or by the
    function's own names, are passed on as they are.  The signature lists all names.

    >>> from flambeau._dispatch.keywords import documented
    >>> @documented({"mat": "input"})
    ... def rows(input): return len(input)
    >>> rows(mat=[1, 2]), rows([3])
    (2, 1)
    """

    def decorate(function: F) -> F:
        code = function.__code__  # type: ignore[attr-defined]
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        named = [(frozenset(form) - frozenset(own), form) for form in forms]

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            if not kwargs:
                return function(*args)
            for triggers, form in named:
                if not triggers.isdisjoint(kwargs):
                    kwargs = {form.get(name, name): value for name, value in kwargs.items()}
                    break
            return function(*args, **kwargs)

        extra = dict.fromkeys(name for triggers, form in named for name in form if name in triggers)
        call.__signature__ = _WithNames(function, extra)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


class _WithNames(inspect.Signature):
    """The signature of a function and more names, worked out when it is asked for.

    To work out all of them at once would take a twentieth of the import of flambeau.
    """

    __slots__ = ("_extra", "_function")

    def __init__(self, function: Callable[..., Any], extra: Iterable[str]) -> None:
        self._function = function
        self._extra = extra

    def _whole(self) -> inspect.Signature:
        own = inspect.signature(self._function)
        kind = inspect.Parameter.KEYWORD_ONLY
        more = [inspect.Parameter(name, kind, default=None) for name in self._extra]
        return own.replace(parameters=[*own.parameters.values(), *more])

    @property
    def parameters(self) -> Any:
        return self._whole().parameters

    @property
    def return_annotation(self) -> object:
        return self._whole().return_annotation

    def replace(self, **changes: Any) -> inspect.Signature:
        return self._whole().replace(**changes)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self._whole().__reduce__()


def many(function: str, argument: str, given: tuple[Any, ...], named: object) -> Any:
    """The numbers of ``x.f(2, 3)``, ``x.f((2, 3))`` or ``x.f(argument=(2, 3))``.

    Raises:
        TypeError: none was given, by place and by name, or a single number by name.
    """
    if named is not None:
        if given:
            raise TypeError(f"{function}() got {argument!r} by place and by name")
        if not isinstance(named, (list, tuple)):
            raise TypeError(
                f"{function}(): argument {argument!r} must be tuple of ints, not "
                f"{type(named).__name__}"
            )
        return named
    if not given:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{argument}"')
    return given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given


def only_one(function: str, **given: object) -> object:
    """The value of an argument that has several names, of which a call must use one.

    Raises:
        TypeError: none was used, or more than one.
    """
    values = [value for value in given.values() if value is not None]
    if len(values) != 1:
        names = " or ".join(repr(name) for name in given)
        problem = "missing required argument" if not values else "got more than one value for"
        raise TypeError(f"{function}() {problem} {names}")
    return values[0]
