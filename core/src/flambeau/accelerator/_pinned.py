"""Page-locked host memory: what copies to a device can read while the program goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._types.device import device as Device
from flambeau.accelerator import current_accelerator
from flambeau.accelerator._namespace import namespace
from flambeau.plugin.accelerator import Accelerator

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


def _accelerator(device: Any) -> Accelerator | None:
    where = current_accelerator() if device is None else Device(device)
    return None if where is None else namespace(where.type)._runtime.found()


def is_pinned(t: Tensor, device: object = None) -> bool:
    """Whether a CPU tensor lives in page-locked memory of an accelerator."""
    if t.device.type != "cpu" or not t.numel():
        return False
    backend = _accelerator(device)
    return backend is not None and backend.is_pinned(t.data_ptr())


def pinned(t: Tensor, device: object = None) -> Tensor:
    """A copy of a CPU tensor in page-locked memory; itself if it is there, or nothing needs that.

    Raises:
        RuntimeError: the tensor is not on the CPU.
    """
    from flambeau import frombuffer

    if t.device.type != "cpu":
        raise RuntimeError(
            f"cannot pin '{t.type()}': only dense CPU tensors can be pinned, this one is on "
            f"{t.device}"
        )
    backend = _accelerator(device)
    if backend is None or not t.numel() or backend.is_pinned(t.data_ptr()):
        return t
    buffer = backend.pinned(t.numel() * t.element_size())
    if buffer is None:
        return t
    source = t.detach()
    out = frombuffer(buffer, dtype=t.dtype, count=t.numel()).view(t.shape)
    out.copy_(source)
    return out
