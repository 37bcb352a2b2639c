"""Apple's GPUs: device type ``mps``, where a package serves it."""

from __future__ import annotations

from flambeau.plugin.host import host


def is_built() -> bool:
    """Whether a package for ``mps`` devices is installed.

    >>> import flambeau as fb
    >>> fb.backends.mps.is_built() or not fb.backends.mps.is_available()
    True
    """
    return "mps" in host.device_types()


def is_available() -> bool:
    """Whether there is an ``mps`` device.

    >>> import flambeau as fb
    >>> isinstance(fb.backends.mps.is_available(), bool)
    True
    """
    return host.is_available("mps")
