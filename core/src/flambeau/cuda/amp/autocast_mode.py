"""The former names of `flambeau.amp.autocast` and its kin for CUDA devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau import amp
from flambeau._types import dtype as D
from flambeau.amp._former import deprecated

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """`flambeau.autocast` of CUDA devices."""

    def __init__(
        self, enabled: bool = True, dtype: D.dtype = D.float16, cache_enabled: bool = True
    ) -> None:
        deprecated("cuda", "autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: D.dtype | None = None) -> Callable[..., Any]:
    """`flambeau.amp.custom_fwd` of CUDA devices."""
    deprecated("cuda", "custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """`flambeau.amp.custom_bwd` of CUDA devices."""
    deprecated("cuda", "custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
