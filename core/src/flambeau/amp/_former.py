"""What the former names of mixed precision share, those of CPUs and of CUDA devices."""

from __future__ import annotations

import warnings
from typing import ClassVar

from flambeau.amp.grad_scaler import GradScaler


def deprecated(device: str, name: str) -> None:
    """Warn the caller's caller that `flambeau.amp` has the name."""
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}('{device}', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class FormerGradScaler(GradScaler):
    """`flambeau.amp.GradScaler` of the devices that a subclass names."""

    _former_device: ClassVar[str]

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        device = self._former_device
        deprecated(device, "GradScaler")
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
