"""The former names of `flambeau.amp.autocast` and its kin for CPUs."""

from __future__ import annotations

from flambeau import amp
from flambeau._types import dtype as D
from flambeau.amp._former import deprecated

__all__ = ["autocast"]


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """`flambeau.autocast` of CPUs."""

    def __init__(
        self, enabled: bool = True, dtype: D.dtype = D.bfloat16, cache_enabled: bool = True
    ) -> None:
        deprecated("cpu", "autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)
