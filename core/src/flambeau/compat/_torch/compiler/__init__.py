"""Compilation: there is none, so a function is its own compiled form."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "wrap_numpy",
]


def compile(model: Callable[..., Any] | None = None, **settings: Any) -> Any:
    """A function or module as it is; without one, a decorator."""
    return (lambda function: function) if model is None else model


def disable(fn: Any = None, recursive: bool = True, **settings: Any) -> Any:
    """A function as it is; without one, a decorator."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """A function as it is."""
    return fn


assume_constant_result = wrap_numpy = allow_in_graph


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Forget what was compiled: nothing."""


cudagraph_mark_step_begin = reset


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers: none."""
    return []


@contextmanager
def set_stance(*args: Any, **kwargs: Any) -> Any:
    """A block in which compilation is used otherwise."""
    yield
