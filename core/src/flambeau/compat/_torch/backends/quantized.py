"""Engines of quantised kernels: there are none."""

__all__ = ["engine", "supported_engines"]

engine = "none"
supported_engines = ["none"]
