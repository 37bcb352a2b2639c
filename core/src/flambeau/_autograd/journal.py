"""Journals of functions that run a second time for backward, and have to do the same both times.

A checkpoint matches the nodes of both runs.  A compiled function in it may repeat a plan, which
records one node, or run as it is: what it did in the first run is noted, and done in the second.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["ANY", "Journal", "kept", "open_journals"]

ANY: Any = object()
"""What a call may do that nothing was noted of."""


class _Here(threading.local):
    journals: tuple[Journal, ...] = ()


_here = _Here()
open_journals: set[Journal] = set()
"""Those of all threads: mostly none, and then nobody is asked for more."""


def kept() -> tuple[Journal, ...]:
    """The journals that this thread keeps or follows, the outermost first."""
    return _here.journals if open_journals else ()


class Journal:
    """What the compiled functions of one run did, call by call."""

    __slots__ = ("_at", "_done")

    def __init__(self) -> None:
        self._done: list[Any] = []
        self._at: int | None = None

    @contextmanager
    def open(self, follows: bool = False) -> Iterator[None]:
        """A block whose calls are noted, or, if it `follows`, are those that were noted."""
        before = _here.journals
        self._at = 0 if follows else None
        try:
            _here.journals = (*before, self)
            open_journals.add(self)
            yield
        finally:
            _here.journals = before
            open_journals.discard(self)

    def begin(self) -> tuple[int, Any]:
        """The place of a call, and what it has to do: a plan, None without one, or `ANY`."""
        if (at := self._at) is None:
            self._done.append(None)
            return len(self._done) - 1, ANY
        self._at = at + 1
        return at, self._done[at] if at < len(self._done) else None

    def note(self, place: int, plan: object) -> None:
        """Note what the call of this place did."""
        if self._at is None:
            self._done[place] = plan
