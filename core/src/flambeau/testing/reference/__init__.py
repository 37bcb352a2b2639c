"""The reference backend, device type ``ref``: what every primitive means, in plain Python.

No array library, no strides, no mutation: an array is a shape, a dtype and a tuple of numbers, and
a kernel is a few lines that say what its op computes.  Other backends are compared with it.
"""

from flambeau.testing.reference.array import RefArray, rounded
from flambeau.testing.reference.kernels import KERNELS

__all__ = ["KERNELS", "RefArray", "rounded"]
