"""Names of ``torch.cuda`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Callable

import flambeau as fb
from flambeau.accelerator._streams import Selected as StreamContext

__all__ = [
    "StreamContext",
    "_lazy_call",
    "_lazy_init",
    "get_sync_debug_mode",
    "is_bf16_supported",
    "set_sync_debug_mode",
]

_lazy_init = fb.cuda.init


def _lazy_call(callable: Callable[[], object], **kwargs: object) -> None:
    """Call a function once there is a CUDA device, which is now or never."""
    if fb.cuda.is_available():
        callable()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a CUDA device, for all of them compute with bfloat16."""
    return fb.cuda.is_available()


_sync_debug_modes = ["default", "warn", "error"]
_sync_debug = 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Keep how calls that wait for the device shall be reported; none is reported.

    Raises:
        RuntimeError: it is none of "default", "warn" and "error", nor of 0, 1 and 2.
    """
    global _sync_debug
    if isinstance(debug_mode, str) and debug_mode not in _sync_debug_modes:
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`"
        )
    mode = _sync_debug_modes.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected 0, 1, or 2")
    _sync_debug = mode


def get_sync_debug_mode() -> int:
    """What `set_sync_debug_mode` was told: 0, 1 or 2."""
    return _sync_debug
