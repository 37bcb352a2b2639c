"""Copies of tensors to several devices, and back to one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._types.device import device as Device
from flambeau.accelerator._runtime import Runtime
from flambeau.accelerator._streams import Selected

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.hints import DeviceLike


class Communication:
    """The collective copies of one device type; devices are given as in `Runtime.index`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def _devices(self, devices: Iterable[Any]) -> list[Device]:
        return [self._runtime.device(self._runtime.index(d)) for d in devices]

    def broadcast(self, tensor: Tensor, devices: Iterable[Any]) -> tuple[Tensor, ...]:
        """A copy of `tensor` on each of `devices`; the tensor itself where it is already.

        Args:
            tensor: what to copy.
            devices: where to; the first one should be the tensor's own.
        """
        return tuple(tensor.to(where) for where in self._devices(devices))

    def broadcast_coalesced(
        self, tensors: Iterable[Tensor], devices: Iterable[Any], buffer_size: int = 10485760
    ) -> list[list[Tensor]]:
        """Copies of several tensors on each of `devices`, small ones packed into buffers.

        Args:
            tensors: what to copy, all on the first device.
            devices: where to.
            buffer_size: bytes per buffer.

        Returns:
            For each device the list of its copies, in the order of `tensors`.
        """
        places, tensors = self._devices(devices), list(tensors)
        found: list[list[Any]] = [[None] * len(tensors) for _ in places]
        for group in _groups(tensors, buffer_size):
            buffer = fb.cat([tensors[i].detach().reshape(-1) for i in group])
            for copies, where in zip(found, places, strict=True):
                parts = buffer.to(where).split([tensors[i].numel() for i in group])
                for i, part in zip(group, parts, strict=True):
                    here = where == tensors[i].device
                    copies[i] = tensors[i] if here else part.reshape(tensors[i].shape)
        return found

    def reduce_add(self, inputs: Iterable[Tensor], destination: DeviceLike | None = None) -> Tensor:
        """The sum of tensors of one shape that lie on different devices.

        Args:
            inputs: the summands.
            destination: where the sum is to be; the current device by default.

        Raises:
            ValueError: there is none, their shapes differ, or one is on no device of the type.
        """
        inputs = list(inputs)
        if not inputs:
            raise ValueError("reduce_add expects at least one input")
        where = self._runtime.device(self._runtime.index(destination))
        for i, t in enumerate(inputs):
            if t.device.type != where.type:
                raise ValueError(
                    f"reduce_add expects all inputs to be on {where.type} devices; input {i} is "
                    f"on {t.device}"
                )
            if t.shape != inputs[0].shape:
                raise ValueError(
                    f"input {i} has invalid size: got {tuple(t.shape)}, but expected "
                    f"{tuple(inputs[0].shape)}"
                )
        total = inputs[0].to(where)
        for t in inputs[1:]:
            total = total + t.to(where)
        return total

    def scatter(
        self,
        tensor: Tensor,
        devices: Iterable[Any],
        chunk_sizes: Iterable[int] | None = None,
        dim: int = 0,
        streams: Iterable[Any] | None = None,
    ) -> tuple[Tensor, ...]:
        """Pieces of `tensor` along `dim`, one on each of `devices`.

        Args:
            tensor: what to cut up.
            devices: where the pieces go.
            chunk_sizes: their lengths; equal ones (as `flambeau.chunk` cuts) by default.
            dim: along which dimension.
            streams: on which stream of its device each piece is copied.

        Raises:
            ValueError: the lengths do not fit the devices or the tensor.
        """
        places = self._devices(devices)
        if chunk_sizes is None:
            pieces = tensor.chunk(len(places), dim)
        else:
            sizes = list(chunk_sizes)
            if len(sizes) != len(places) or sum(sizes) != tensor.size(dim):
                raise ValueError(
                    f"scatter: chunk_sizes {tuple(sizes)} must be one length per device "
                    f"({len(places)}) and add up to {tensor.size(dim)}"
                )
            pieces = tensor.split(sizes, dim)
        queues = [None] * len(pieces) if streams is None else list(streams)
        out = []
        for piece, where, stream in zip(pieces, places, queues, strict=False):
            with Selected(self._runtime, stream):
                out.append(piece.to(where).contiguous())
        return tuple(out)

    def gather(
        self, tensors: Iterable[Tensor], dim: int = 0, destination: DeviceLike | None = None
    ) -> Tensor:
        """Tensors of several devices joined along `dim` on one.

        Args:
            tensors: the pieces.
            dim: along which dimension.
            destination: where to: a device, its index, -1 or ``"cpu"`` for the CPU; by default
                the current device.

        Raises:
            ValueError: there are none.
        """
        tensors = list(tensors)
        if not tensors:
            raise ValueError("gather expects at least one tensor")
        if destination == -1 or (isinstance(destination, (str, Device)) and _is_cpu(destination)):
            where = Device("cpu")
        else:
            where = self._runtime.device(self._runtime.index(destination))
        return fb.cat([t.to(where) for t in tensors], dim)


def _is_cpu(where: str | Device) -> bool:
    return Device(where).type == "cpu"


def _groups(tensors: list[Tensor], buffer_size: int) -> list[list[int]]:
    """Places of tensors of one dtype that fill a buffer together."""
    groups: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    for i, t in enumerate(tensors):
        size = t.numel() * t.element_size()
        group, filled = open_.get(t.dtype, ([], 0))
        if not group or filled + size > buffer_size:
            group, filled = [], 0
            groups.append(group)
        group.append(i)
        open_[t.dtype] = (group, filled + size)
    return groups
