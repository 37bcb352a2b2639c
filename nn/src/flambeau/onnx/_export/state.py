"""Whether an export is running."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_RUNNING: ContextVar[bool] = ContextVar("flambeau.onnx", default=False)


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Let `is_in_onnx_export` say so."""
    before = _RUNNING.set(True)
    try:
        yield
    finally:
        _RUNNING.reset(before)


def is_in_onnx_export() -> bool:
    """Whether a model is being exported, by this thread, right now.

    >>> import flambeau as fb
    >>> fb.onnx.is_in_onnx_export()
    False
    """
    return _RUNNING.get()
