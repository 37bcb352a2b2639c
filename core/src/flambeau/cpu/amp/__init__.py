"""Mixed precision on CPUs, by its former names: see `flambeau.amp`."""

from __future__ import annotations

import warnings

from flambeau import amp
from flambeau._types import dtype as D

__all__ = ["GradScaler", "autocast"]


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """`flambeau.autocast` of CPUs."""

    def __init__(
        self, enabled: bool = True, dtype: D.dtype = D.bfloat16, cache_enabled: bool = True
    ) -> None:
        _deprecated("autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`flambeau.amp.GradScaler` of CPUs."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _deprecated("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
