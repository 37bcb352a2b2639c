"""Names of ``torch.backends.cudnn`` that only programs for PyTorch want."""

from __future__ import annotations

import flambeau as fb
from flambeau.backends import cudnn
from flambeau.plugin.accelerator import numerics

__all__ = ["disable_global_flags", "is_acceptable"]


def disable_global_flags() -> None:
    """Have switches set by `flags` alone: here they may be set in either way."""


def is_acceptable(tensor: fb.Tensor) -> bool:
    """Whether cuDNN would compute with a tensor."""
    return tensor.is_cuda and numerics.enabled and cudnn.is_available()
