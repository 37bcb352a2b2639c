"""NVIDIA's profiler, which is told nothing: `flambeau.profiler` measures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Do nothing."""


def stop() -> None:
    """Do nothing."""


@contextmanager
def profile() -> Iterator[None]:
    """A block, between `start` and `stop`."""
    start()
    try:
        yield
    finally:
        stop()
