"""Switches of CUDA's libraries: TensorFloat-32 in matrix products, the cache of FFT plans."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.attention_kernels import attention_kernels
from flambeau.accelerator._namespace import namespace
from flambeau.backends._switch import Switch
from flambeau.plugin.host import host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flambeau._types.hints import DeviceLike


class Matmul:
    """Matrix products of CUDA devices.

    Attributes:
        allow_tf32: whether float32 factors may be rounded to 10 bits.
    """

    allow_tf32 = Switch("matmul_tf32")


class FftPlanCache:
    """The plans of cuFFT that one device keeps; index it to name a device.

    Attributes:
        max_size: how many plans are kept; can be set.
        size: how many there are.

    Raises:
        RuntimeError: there is no device, or its backend keeps no plans.
    """

    def __init__(self, device: DeviceLike | None = None) -> None:
        self._device = device

    def __getitem__(self, device: DeviceLike) -> FftPlanCache:
        return FftPlanCache(device)

    def _cache(self) -> Any:
        runtime = namespace("cuda")._runtime
        backend = runtime.needed()
        found = getattr(backend, "fft_plan_cache", None)
        if found is None:
            raise RuntimeError("cufft_plan_cache: this backend of 'cuda' keeps no plans")
        return found(runtime.index(self._device))

    @property
    def size(self) -> int:
        """How many plans are kept now."""
        return self._cache().size

    @property
    def max_size(self) -> int:
        """How many plans are kept at most."""
        return self._cache().max_size

    @max_size.setter
    def max_size(self, value: int) -> None:
        self._cache().max_size = value

    def clear(self) -> None:
        """Forget all plans."""
        self._cache().clear()


matmul = Matmul()
cufft_plan_cache = FftPlanCache()


def is_built() -> bool:
    """Whether a package for CUDA devices is installed, with or without a device.

    >>> import flambeau as fb
    >>> isinstance(fb.backends.cuda.is_built(), bool)
    True
    """
    return "cuda" in host.device_types()


def enable_flash_sdp(enabled: bool) -> None:
    """Let `scaled_dot_product_attention` be computed by one kernel for all of it, on any device.

    >>> import flambeau as fb
    >>> fb.backends.cuda.enable_flash_sdp(True)
    """
    attention_kernels.flash = bool(enabled)


def flash_sdp_enabled() -> bool:
    """Whether `scaled_dot_product_attention` may be computed by one kernel for all of it.

    >>> import flambeau as fb
    >>> fb.backends.cuda.flash_sdp_enabled()
    True
    """
    return attention_kernels.flash


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Let `scaled_dot_product_attention` be computed by a second kernel of this kind.

    >>> import flambeau as fb
    >>> fb.backends.cuda.enable_mem_efficient_sdp(True)
    """
    attention_kernels.efficient = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether `scaled_dot_product_attention` may be computed by a second kernel of this kind.

    >>> import flambeau as fb
    >>> fb.backends.cuda.mem_efficient_sdp_enabled()
    True
    """
    return attention_kernels.efficient


def enable_math_sdp(enabled: bool) -> None:
    """Let `scaled_dot_product_attention` be computed by the formula, on any device.

    >>> import flambeau as fb
    >>> fb.backends.cuda.enable_math_sdp(True)
    """
    attention_kernels.math = bool(enabled)


def math_sdp_enabled() -> bool:
    """Whether `scaled_dot_product_attention` may be computed by the formula.

    >>> import flambeau as fb
    >>> fb.backends.cuda.math_sdp_enabled()
    True
    """
    return attention_kernels.math


def enable_cudnn_sdp(enabled: bool) -> None:
    """Let `scaled_dot_product_attention` be computed by cuDNN's kernel, on any device.

    >>> import flambeau as fb
    >>> fb.backends.cuda.enable_cudnn_sdp(True)
    """
    attention_kernels.cudnn = bool(enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """A block with some kernels of attention; `nn.attention.sdpa_kernel` is its newer form.

    >>> import flambeau as fb
    >>> with fb.backends.cuda.sdp_kernel(enable_flash=False):
    ...     fb.backends.cuda.flash_sdp_enabled()
    False
    """
    kernels = attention_kernels
    before = kernels.flash, kernels.math, kernels.efficient, kernels.cudnn
    enabled = enable_flash, enable_math, enable_mem_efficient, enable_cudnn
    kernels.flash, kernels.math, kernels.efficient, kernels.cudnn = map(bool, enabled)
    try:
        yield
    finally:
        kernels.flash, kernels.math, kernels.efficient, kernels.cudnn = before


def cudnn_sdp_enabled() -> bool:
    """Whether `scaled_dot_product_attention` may be computed by cuDNN's kernel.

    >>> import flambeau as fb
    >>> fb.backends.cuda.cudnn_sdp_enabled()
    True
    """
    return attention_kernels.cudnn
