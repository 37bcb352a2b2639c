"""Names of ``torch.cuda`` that only programs for PyTorch want."""

from __future__ import annotations

import flambeau as fb
from flambeau.accelerator._streams import Selected as StreamContext

__all__ = ["StreamContext", "_lazy_init", "is_bf16_supported"]

_lazy_init = fb.cuda.init


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a CUDA device, for all of them compute with bfloat16."""
    return fb.cuda.is_available()
