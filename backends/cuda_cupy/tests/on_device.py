"""Whether there is a GPU to test on."""

from __future__ import annotations

from functools import cache

from flambeau.plugin.host import host


@cache
def missing() -> str:
    """What is missing; empty where there is a device."""
    try:
        backend = host.activate("cuda").backend
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return "" if backend.device_count() else f"no CUDA device: {backend.unavailable()}"
