"""Mixed precision on CPUs, by its former names: see `flambeau.amp`."""

from __future__ import annotations

from flambeau import amp
from flambeau._types import dtype as D
from flambeau.amp._former import FormerGradScaler, deprecated

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """`flambeau.autocast` of CPUs."""

    def __init__(
        self, enabled: bool = True, dtype: D.dtype = D.bfloat16, cache_enabled: bool = True
    ) -> None:
        deprecated("cpu", "autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(FormerGradScaler):
    """`flambeau.amp.GradScaler` of CPUs."""

    _former_device = "cpu"
