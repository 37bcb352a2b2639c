"""Intel's MKL."""

from __future__ import annotations

from flambeau.plugin.host import host


def is_available() -> bool:
    """Whether the CPU's matrix products are MKL's.

    >>> import flambeau as fb
    >>> isinstance(fb.backends.mkl.is_available(), bool)
    True
    """
    return host.is_available("cpu") and "mkl" in host.report("cpu").get("blas", "").lower()
