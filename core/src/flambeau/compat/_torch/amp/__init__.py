"""Mixed precision: it can be switched off, which it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau as fb
from flambeau.compat._parts import reason

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_available",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
]


def is_autocast_available(device_type: str) -> bool:
    """Whether mixed precision is available: it is not."""
    return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False."""
    return False


is_autocast_cpu_enabled = is_autocast_enabled


def get_autocast_dtype(device_type: str) -> fb.dtype:
    """The narrow dtype that PyTorch would use on a type of devices."""
    return fb.bfloat16 if device_type == "cpu" else fb.float16


def get_autocast_cpu_dtype() -> fb.dtype:
    """As `get_autocast_dtype` of the CPU."""
    return fb.bfloat16


def get_autocast_gpu_dtype() -> fb.dtype:
    """As `get_autocast_dtype` of a GPU."""
    return fb.float16


class autocast:  # noqa: N801 - PyTorch's name
    """A block or function with mixed precision if `enabled`, which is refused.

    For CUDA devices on a machine without them it warns and is disabled, as PyTorch's is.

    Raises:
        NotImplementedError: it is enabled, for a device that there is.
    """

    def __init__(
        self,
        device_type: str,
        dtype: fb.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"Expected `device_type` of type `str`, got: `{type(device_type).__name__}`"
            )
        self.device = device_type
        self.fast_dtype = dtype or get_autocast_dtype(device_type)
        if enabled and device_type == "cuda" and not fb.cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled

    def __enter__(self) -> autocast:
        if self._enabled:
            raise NotImplementedError(f"autocast({self.device!r}): {reason('torch.amp')}")
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return run


def custom_fwd(fwd: Any = None, **settings: Any) -> Any:
    """The forward of an `autograd.Function` as it is; without one, a decorator."""
    return (lambda function: function) if fwd is None else fwd


custom_bwd = custom_fwd


class GradScaler:
    """The scale of a loss: without mixed precision it is 1, and `step` is the optimiser's.

    Raises:
        NotImplementedError: it is enabled, for a device that there is.
    """

    def __init__(self, device: str = "cuda", *args: Any, enabled: bool = True, **kw: Any) -> None:
        if enabled and device == "cuda" and not fb.cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            enabled = False
        if enabled:
            raise NotImplementedError(f"GradScaler({device!r}): {reason('torch.amp')}")

    def scale(self, outputs: Any) -> Any:
        """The loss as it is."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Leave the gradients as they are."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(...)``."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Choose the next scale: it stays."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
