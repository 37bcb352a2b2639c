"""Compiled kernels for flambeau's device ``cpu``, faster than the NumPy ones they replace."""

__version__ = "0.1.0"
