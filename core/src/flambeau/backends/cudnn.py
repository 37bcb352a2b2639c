"""Switches of cuDNN: ``enabled``, ``benchmark``, ``deterministic``, ``allow_tf32``.

>>> import flambeau as fb
>>> fb.backends.cudnn.deterministic
False
>>> with fb.backends.cudnn.flags(deterministic=True):
...     fb.backends.cudnn.deterministic
True
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from flambeau.backends._switch import switchable
from flambeau.plugin.accelerator import numerics
from flambeau.plugin.host import host

enabled: bool
benchmark: bool
deterministic: bool
allow_tf32: bool
switchable(
    __name__,
    enabled="enabled",
    benchmark="benchmark",
    deterministic="deterministic",
    allow_tf32="convolution_tf32",
)


def version() -> int | None:
    """The version of cuDNN that the backend of CUDA devices uses, such as 91900; None without."""
    if not host.is_available("cuda"):
        return None
    found = host.report("cuda").get("cudnn")
    return int(found) if found and found.isdigit() else None


def is_available() -> bool:
    """Whether the backend of CUDA devices uses cuDNN."""
    return version() is not None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """A block with these switches; afterwards they are as before."""
    before = asdict(numerics)
    numerics.enabled, numerics.benchmark = enabled, benchmark
    numerics.deterministic, numerics.convolution_tf32 = deterministic, allow_tf32
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(numerics, name, value)
