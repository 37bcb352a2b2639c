"""Keeping NumPy's floating-point warnings away from users of flambeau, and only from them.

``1 / 0`` and ``log(0)`` are ordinary values to a tensor program, while the same user's own NumPy
code must keep its warnings, so the process-wide error state stays as it is. NumPy's public remedy,
an ``errstate`` block, costs more than a small ``np.add``. There are two cheaper ones here:

* `quiet` sets NumPy's error state around a call (about 0.2 µs): for kernels of several steps.
* `silent` costs nothing per call: for thin wrappers of one ufunc. A warning raised in C is
  attributed to the running Python function, and CPython drops warnings of functions whose globals
  say that ``__name__`` is None. If an interpreter does not, `quiet` is used in its place; this is
  tried out at import.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

try:
    # NumPy keeps its error state in a context variable; setting it directly skips errstate's class.
    from numpy._core.umath import _extobj_contextvar, _make_extobj  # type: ignore[attr-defined]
except ImportError:  # a NumPy that keeps it elsewhere
    _state: Any = None
    _ignore: Any = None
else:
    _state, _ignore = _extobj_contextvar, _make_extobj(all="ignore")


def quiet(function: F) -> F:
    """`function` with floating-point warnings and errors switched off while it runs."""
    if _state is None:
        return np.errstate(all="ignore")(function)
    change, restore, ignore = _state.set, _state.reset, _ignore

    def quietly(*args: object) -> object:
        before = change(ignore)
        try:
            return function(*args)
        finally:
            restore(before)

    return wraps(function)(quietly)  # type: ignore[return-value]


def _nameless(function: F) -> F:
    copy = FunctionType(
        function.__code__,  # type: ignore[attr-defined]
        {"__name__": None, "__builtins__": builtins},
        function.__name__,
        function.__defaults__,  # type: ignore[attr-defined]
        function.__closure__,  # type: ignore[attr-defined]
    )
    copy.__doc__ = function.__doc__
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    return copy  # type: ignore[return-value]


def _drops_warnings() -> bool:
    one, zero = np.ones(1), np.zeros(1)

    def provoke(divide: Callable[..., Any] = np.true_divide) -> None:
        divide(one, zero)

    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
        warnings.simplefilter("always")
        _nameless(provoke)()
    return not seen


NAMELESS = _drops_warnings()
"""Whether this interpreter drops warnings of functions without a module name."""


def silent(function: F) -> F:
    """`function` with floating-point warnings dropped at no cost per call.

    The function must reach everything but builtins through its arguments and its closure (it gets
    globals of its own), and calls NumPy's C functions itself: a Python function that it calls has
    its own globals and must be silent or `quiet` too.  Where the user made floating-point errors
    raise (``np.seterr(all="raise")``), they still do; wrappers catch `FloatingPointError`.
    """
    return _nameless(function) if NAMELESS else quiet(function)
