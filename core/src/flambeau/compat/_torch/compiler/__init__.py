"""Compilation, by the names of PyTorch's: what is compiled becomes plans of kernel calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from flambeau.plans import compile, reset

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
    "nested_compile_region",
    "reset",
    "set_stance",
    "wrap_numpy",
]


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, **settings: object
) -> Callable[..., Any]:
    """A function as it is; without one, a decorator."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function as it is."""
    return fn


assume_constant_result = nested_compile_region = wrap_numpy = allow_in_graph


def is_compiling() -> bool:
    """False: a captured run is an ordinary one, and knows no ops that only compilers do."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def cudagraph_mark_step_begin() -> None:
    """Say that a step begins."""


def list_backends(exclude_tags: object = ()) -> list[str]:
    """The compilers: what executes a plan is the backend of its tensors."""
    return ["plan"]


@contextmanager
def set_stance(*args: object, **kwargs: object) -> Any:
    """A block in which compilation is used otherwise."""
    yield
