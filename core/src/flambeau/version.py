"""Versions, under the names that programs ask for: ``flambeau.version``.

>>> import flambeau as fb
>>> fb.version.__version__ == fb.__version__
True
"""

from __future__ import annotations

from flambeau import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]

cuda: str | None = None
"""The CUDA version that this package was built with: none, it contains no compiled code."""
hip: str | None = None
"""As `cuda`, for ROCm."""
debug = False
"""Whether this is a debug build."""
git_version = "unknown"
"""The commit of the source, where a build records it."""
