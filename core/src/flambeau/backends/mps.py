"""Apple's GPUs: device type ``mps``, where a package serves it."""

from __future__ import annotations


def is_built() -> bool:
    """Whether a package for ``mps`` devices is installed.

    >>> import flambeau as fb
    >>> fb.backends.mps.is_built() or not fb.backends.mps.is_available()
    True
    """
    from flambeau.plugin.host import host

    return "mps" in host.device_types()


def is_available() -> bool:
    """Whether there is an ``mps`` device.

    >>> import flambeau as fb
    >>> isinstance(fb.backends.mps.is_available(), bool)
    True
    """
    from flambeau.plugin.host import host

    return host.is_available("mps")
