"""Which device an index means, and what tensors there are in nested arguments."""

from __future__ import annotations

from collections.abc import Iterator

import flambeau as fb
from flambeau import Tensor

Device = fb.device | str | int


def tensors_in(value: object) -> Iterator[Tensor]:
    """The tensors in a nest of tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def device_type(*values: object) -> str | None:
    """The type that an index without name means: that of the tensors, or the accelerator's.

    None where no tensor is on a device with indices and there is no accelerator.
    """
    for tensor in tensors_in(values):
        if tensor.device.type not in ("cpu", "meta"):
            return tensor.device.type
    found = fb.accelerator.current_accelerator()
    return None if found is None else found.type


def placed(device: Device, kind: str | None) -> fb.device:
    """The device that `device` means, an index being one of the type `kind`; -1 is the CPU.

    Raises:
        RuntimeError: it is an index and there is no type of devices with indices.
    """
    if not isinstance(device, int):
        return fb.device(device)
    if device == -1:
        return fb.device("cpu")
    if kind is None:
        raise RuntimeError(
            f"Cannot access accelerator device {device} when none is available; name the device "
            f"('cpu' or 'type:{device}'), or install a backend: python -m flambeau lists them"
        )
    return fb.device(kind, device)
