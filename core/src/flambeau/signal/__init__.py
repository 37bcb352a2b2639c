"""Signal processing: the window functions of `flambeau.signal.windows`."""

from flambeau.signal import windows

__all__ = ["windows"]
