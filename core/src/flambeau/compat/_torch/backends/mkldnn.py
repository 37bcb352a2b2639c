"""Intel's oneDNN, by its former name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.plugin.host import host

__all__ = ["enabled", "flags", "is_available"]

enabled = True
"""Whether it may be used; setting it has no effect, for the package that is installed decides."""


def is_available() -> bool:
    """Whether kernels of the CPU are those of ``flambeau-onednn``."""
    return host.is_available("cpu") and "onednn" in host.report("cpu")


@contextmanager
def flags(enabled: bool = False, **settings: bool) -> Iterator[None]:
    """A block with these switches, which have no effect."""
    yield
