"""Argument names that PyTorch 1.0 documents and today's PyTorch has renamed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def documented(*forms: dict[str, str]) -> Callable[[F], F]:
    """A decorator: the function also takes the documented names of its arguments.

    Each form of call is a dict from documented names to those of the function.  A form applies when
    one of its names that the function itself does not have is used; calls by position, or by the
    function's own names, are passed on as they are.  The signature lists all names.

    >>> from flambeau._keywords import documented
    >>> @documented({"mat": "input"})
    ... def rows(input): return len(input)
    >>> rows(mat=[1, 2]), rows([3])
    (2, 1)
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = signature.parameters
        named = [(frozenset(form) - frozenset(own), form) for form in forms]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not kwargs:
                return function(*args)
            for triggers, form in named:
                if not triggers.isdisjoint(kwargs):
                    kwargs = {form.get(name, name): value for name, value in kwargs.items()}
                    break
            return function(*args, **kwargs)

        extra = dict.fromkeys(name for triggers, form in named for name in form if name in triggers)
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[
                *own.values(),
                *(
                    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
                    for name in extra
                ),
            ]
        )
        return call  # type: ignore[return-value]

    return decorate


def only_one(function: str, **given: Any) -> Any:
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
