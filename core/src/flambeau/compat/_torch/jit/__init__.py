"""Scripted programs: Python is what runs, so the decorators give back what they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import flambeau as fb
from flambeau.compat._torch.jit import annotations

__all__ = [
    "Attribute",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "_drop",
    "_fork",
    "_isinstance",
    "_overload",
    "_overload_method",
    "_script_if_tracing",
    "_unwrap_optional",
    "_wait",
    "annotate",
    "annotations",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "unused",
    "wait",
]

T = TypeVar("T")


class TracerWarning(Warning):
    """Never given: nothing is traced."""


class ScriptFunction:
    """The class of scripted functions, of which there are none."""


class ScriptModule(fb.nn.Module):
    """A base class of older programs, whose methods are marked by `script_method`."""


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """A function, class or module as it is."""
    return obj


def script_method(fn: T) -> T:
    """A method as it is."""
    return fn


script_if_tracing = export = interface = script_method


def unused(fn: T) -> T:
    """A method as it is."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A method as it is; with `drop` only, a decorator."""
    return drop if callable(drop) else lambda fn: fn


def freeze(mod: T, *args: Any, **kwargs: Any) -> T:
    """A module as it is."""
    return mod


optimize_for_inference = freeze


def annotate(the_type: Any, the_value: T) -> T:
    """A value, whose type only a compiler would want to know."""
    return the_value


def Attribute(value: T, type: Any) -> T:
    """A value, whose type only a compiler would want to know."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether an object is of a type; of containers only the container is looked at."""
    from builtins import isinstance as is_instance
    from typing import get_origin

    types = target_type if is_instance(target_type, tuple) else (target_type,)
    return is_instance(obj, tuple(get_origin(kind) or kind for kind in types))


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = is_scripting
_enabled = False


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Callable[[], T]:
    """A call that may run beside others: it runs at once."""
    result = func(*args, **kwargs)
    return lambda: result


def wait(future: Callable[[], T]) -> T:
    """What a call of `fork` returned."""
    return future()


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block with or without a compiler's optimisations."""
    yield


fuser = optimized_execution


@contextmanager
def strict_fusion() -> Iterator[None]:
    """A block that should be one kernel."""
    yield


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """The strategy before: none."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Ask for fusion of what is scripted."""
    global _enabled
    _enabled = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Whether `enable_onednn_fusion` asked for it."""
    return _enabled


def _overload(func: T) -> T:
    """Mark one of several signatures of a function, without a body."""
    return func


def _unwrap_optional(x: T | None) -> T:
    """A value that is not None.

    Raises:
        AssertionError: it is.
    """
    assert x is not None, "Unwrapping null optional"
    return x


_overload_method, _drop, _script_if_tracing = _overload, unused, script_if_tracing
_fork, _wait, _isinstance = fork, wait, isinstance
