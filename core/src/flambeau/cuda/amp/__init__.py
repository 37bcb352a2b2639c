"""Mixed precision on CUDA devices, by its former names: see `flambeau.amp`."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau import amp
from flambeau._types import dtype as D

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """`flambeau.autocast` of CUDA devices."""

    def __init__(
        self, enabled: bool = True, dtype: D.dtype = D.float16, cache_enabled: bool = True
    ) -> None:
        _deprecated("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`flambeau.amp.GradScaler` of CUDA devices."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _deprecated("GradScaler")
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(fwd: Any = None, *, cast_inputs: D.dtype | None = None) -> Any:
    """`flambeau.amp.custom_fwd` of CUDA devices."""
    _deprecated("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """`flambeau.amp.custom_bwd` of CUDA devices."""
    _deprecated("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
