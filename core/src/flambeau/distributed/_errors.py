"""What goes wrong between processes, by PyTorch's names."""

from __future__ import annotations


class DistError(RuntimeError):
    """Communication failed."""


class DistBackendError(DistError):
    """An engine failed, a process died, or processes call different things."""


class DistNetworkError(DistError):
    """There is no connection."""


class DistStoreError(DistError):
    """A store did not answer in time."""


class DistTimeoutError(DistBackendError):
    """Somebody did not come in time."""
