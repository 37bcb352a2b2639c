"""Mixed precision on CUDA devices, under its older path."""

from __future__ import annotations

from typing import Any

from flambeau.compat._torch import amp
from flambeau.compat._torch.amp import custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """`torch.amp.autocast` of CUDA devices."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler` of CUDA devices."""

    def __init__(self, *args: Any, enabled: bool = True, **kwargs: Any) -> None:
        super().__init__("cuda", *args, enabled=enabled, **kwargs)
