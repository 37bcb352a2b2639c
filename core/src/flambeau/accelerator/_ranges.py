"""Ranges and marks that a vendor's profiler shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.accelerator._runtime import Runtime


class Ranges:
    """Names for stretches of time, for the profiler of one device type."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def mark(self, msg: str) -> None:
        """Note a moment.

        Raises:
            RuntimeError: there is no device.
        """
        self._runtime.needed().mark(msg)

    def range_push(self, msg: str) -> int:
        """Open a range; returns how many ranges were open before.

        Raises:
            RuntimeError: there is no device.
        """
        return self._runtime.needed().range_push(msg)

    def range_pop(self) -> int:
        """Close the innermost range; returns how many are open still.

        Raises:
            RuntimeError: there is no device.
        """
        return self._runtime.needed().range_pop()

    @contextmanager
    def range(self, msg: str, *args: object, **kwargs: object) -> Iterator[None]:
        """A block as a range; `msg` is formatted with the further arguments."""
        self.range_push(msg.format(*args, **kwargs))
        try:
            yield
        finally:
            self.range_pop()
