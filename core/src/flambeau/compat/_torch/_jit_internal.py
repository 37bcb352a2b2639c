"""Decorators of PyTorch's own modules that others import, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035

from flambeau.jit import (
    Future,
    export,
    ignore,
    is_scripting,
    unused,
)

__all__ = [
    "Dict",
    "Final",
    "Future",
    "List",
    "Optional",
    "Tuple",
    "Union",
    "_qualified_name",
    "boolean_dispatch",
    "export",
    "ignore",
    "is_scripting",
    "unused",
    "weak_module",
    "weak_script",
    "weak_script_method",
]


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function as it is."""
    return fn


weak_module = weak_script = weak_script_method = _copy_to_script_wrapper


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None = None,
    func_name: str | None = None,
) -> Callable[..., Any]:
    """One function of two, chosen by the argument `arg_name` at the place `arg_index`."""

    def chosen(*args: object, **kwargs: object) -> object:
        chooses = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chooses else if_false)(*args, **kwargs)

    return chosen


def _qualified_name(obj: Any) -> str:
    """The name of a class or function with that of its module, under which scripts know it."""
    module = "__torch__" if obj.__module__ == "__main__" else f"__torch__.{obj.__module__}"
    return f"{module}.{obj.__qualname__}"
