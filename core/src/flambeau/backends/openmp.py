"""OpenMP."""

from __future__ import annotations

from flambeau.plugin.host import host


def is_available() -> bool:
    """Whether the CPU's backend says that its threads are OpenMP's.

    >>> import flambeau as fb
    >>> isinstance(fb.backends.openmp.is_available(), bool)
    True
    """
    return host.is_available("cpu") and "openmp" in host.report("cpu")
