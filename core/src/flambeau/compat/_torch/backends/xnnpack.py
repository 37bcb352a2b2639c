"""A library of kernels for phones, which flambeau does not use."""

__all__ = ["enabled"]

enabled = False
