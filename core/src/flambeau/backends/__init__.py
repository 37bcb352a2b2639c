"""Switches of the libraries that backends use, by PyTorch's names.

What they set is `flambeau.plugin.numerics`, which backends read; a switch of a library that is
not there can be set and does nothing.
"""

from __future__ import annotations

from flambeau.absence import tell as _tell
from flambeau.backends import cuda, cudnn, mkl, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mps", "openmp"]


_tell(__name__)
