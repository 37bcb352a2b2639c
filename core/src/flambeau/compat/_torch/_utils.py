"""Helpers of PyTorch's own modules that others import, too."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.serialization._rebuild import rebuild_parameter as _rebuild_parameter
from flambeau.serialization._rebuild import rebuild_tensor as _rebuild_tensor
from flambeau.serialization._rebuild import rebuild_tensor_v2 as _rebuild_tensor_v2
from flambeau.utils.data._utils.worker import CaughtError

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.hints import DeviceLike


__all__ = ["_rebuild_parameter", "_rebuild_tensor", "_rebuild_tensor_v2"]


def _element_size(dtype: fb.dtype) -> int:
    """The bytes of a number."""
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Tensor:
    """The elements of several tensors in a vector."""
    return fb.cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Parts of a vector in the shapes of tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(t) for part, t in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Sequence[Any], size_limit: int) -> Iterator[list[Any]]:
    """Tensors in groups of one dtype with at most `size_limit` bytes, if each one fits."""
    groups: dict[Any, tuple[list[Any], int]] = {}
    for t in tensors:
        size = t.numel() * t.element_size()
        group, filled = groups.get(t.dtype, ([], 0))
        if group and filled + size > size_limit:
            yield group
            group, filled = [], 0
        groups[t.dtype] = ([*group, t], filled + size)
    yield from (group for group, _ in groups.values())


def _get_device_index(device: DeviceLike, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device: the current one's if it has none and `optional`.

    Raises:
        ValueError: it is a CPU and that is not allowed, or has no index.
    """
    if isinstance(device, int):
        return device
    if device is not None:
        device = fb.device(device)
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.index is not None:
            return device.index
        if device.type == "cpu":
            return -1
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index but got: {device}")
    return fb.cuda.current_device()


class ExceptionWrapper(CaughtError):  # noqa: N818 - PyTorch's name
    """An exception of another thread, with its traceback as text, to be raised in this one."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        _, error, _ = exc_info or sys.exc_info()
        assert error is not None, "there is no exception to wrap"
        super().__init__(where, error)
        self.exc_type, self.exc_msg = self.kind, self.text


def _get_available_device_type() -> str | None:
    """The type of the accelerator, None without one."""
    found = fb.accelerator.current_accelerator(check_available=True)
    return None if found is None else found.type


def _get_device_module(device_type: str) -> Any:
    """The module of a type of devices, such as ``torch.cuda``."""
    return getattr(fb, device_type)
