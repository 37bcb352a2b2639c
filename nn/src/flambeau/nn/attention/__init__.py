"""Which kernels compute attention."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import IntEnum

from flambeau.backends import cuda

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """A kernel of `nn.functional.scaled_dot_product_attention`.

    ``MATH`` is the formula in ops, ``FLASH_ATTENTION`` one kernel for all of it, which the package
    of a device may have.  The others are PyTorch's, and there are none.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


_SWITCHES: dict[SDPBackend, tuple[Callable[[bool], None], Callable[[], bool]]] = {
    SDPBackend.MATH: (cuda.enable_math_sdp, cuda.math_sdp_enabled),
    SDPBackend.FLASH_ATTENTION: (cuda.enable_flash_sdp, cuda.flash_sdp_enabled),
    SDPBackend.EFFICIENT_ATTENTION: (
        cuda.enable_mem_efficient_sdp,
        cuda.mem_efficient_sdp_enabled,
    ),
    SDPBackend.CUDNN_ATTENTION: (cuda.enable_cudnn_sdp, cuda.cudnn_sdp_enabled),
}


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[None]:
    """A block in which attention is computed by one of the named kernels, in all threads.

    With ``FLASH_ATTENTION`` alone, the formula still serves arguments that the kernel of the device
    does not take, or a device without one; with ``MATH`` alone it always serves.

    Args:
        backends: a kernel or a list of kernels.
        set_priority: accepted; ``FLASH_ATTENTION`` comes first.

    Raises:
        AssertionError: `backends` is neither.
        RuntimeError: in the block, where neither of both is named and attention is computed.

    >>> import flambeau as fb
    >>> from flambeau.nn.attention import SDPBackend, sdpa_kernel
    >>> q = fb.ones(1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     fb.nn.functional.scaled_dot_product_attention(q, q, q).sum()
    tensor(8.)
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    chosen = backends if isinstance(backends, list) else [backends]
    before = {kernel: enabled() for kernel, (_, enabled) in _SWITCHES.items()}
    try:
        for kernel, (enable, _) in _SWITCHES.items():
            enable(kernel in chosen)
        yield
    finally:
        for kernel, (enable, _) in _SWITCHES.items():
            enable(before[kernel])
