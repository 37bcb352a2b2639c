"""Which trace this thread is in, and warnings about what a trace cannot keep."""

from __future__ import annotations

import sys
import threading
import warnings
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from flambeau._tensor import function_modes

if TYPE_CHECKING:
    from types import FrameType

    from flambeau.jit._tracing.recorder import Recorder


for_export: ContextVar[bool] = ContextVar("for_export", default=False)
"""Whether a trace is read and not run: a function of autograd with a method `symbolic` is one node,
and a constant is what it was when it was first read, whatever is written to it later."""


class _Active(threading.local):
    """The trace of a thread, also while it runs a call that was noted."""

    recorder: Recorder | None = None


active = _Active()


class TracerWarning(Warning):
    """Something that a trace keeps as it was in the one run that it saw."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """There are none about lines of the library itself."""


def current() -> Recorder | None:
    """The trace that sees what this thread does now; None within the calls that it notes."""
    for mode in reversed(function_modes.stack.modes):
        if getattr(mode, "is_recorder", False):
            return mode
    return None


def tracing_now() -> bool:
    """Whether this thread is in a trace."""
    return current() is not None


def is_library(frame: FrameType) -> bool:
    """Whether a frame is one of this library, or of what that was generated for it."""
    name = frame.f_globals.get("__name__", "flambeau")
    return name.partition(".")[0] == "flambeau" or name in ("contextlib", "functools")


def user_frame(depth: int = 2) -> FrameType | None:
    """The innermost frame that is a line of the program."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and is_library(frame):
        frame = frame.f_back
    return frame


def warn_user(what: str, why: str = "") -> None:
    """Warn at the line of the program, if it is one of those that does it, and none of ours."""
    caller = sys._getframe(2)
    while caller.f_globals.get("__name__", "").startswith(("flambeau.jit._tracing",)):
        assert caller.f_back is not None
        caller = caller.f_back
    if is_library(caller):
        return
    reason = why or (
        "might cause the trace to be incorrect. We can't record the data flow of Python values, so "
        "this value will be treated as a constant in the future. This means that the trace might "
        "not generalize to other inputs!"
    )
    warn_at(caller, f"{what} {reason}")


def warn_at(frame: Any, message: str) -> None:
    """Warn at a line of a program."""
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message,
        TracerWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<string>"),
        registry,
    )
