"""The kernels of oneDNN by family; the file names are those of `flambeau.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau_onednn.kernels import convolution, linalg

KERNELS: dict[str, Callable[..., Any]] = convolution.KERNELS | linalg.KERNELS
"""Every kernel by the name of its canonical op."""
