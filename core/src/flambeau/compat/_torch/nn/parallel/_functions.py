"""Copies between devices that gradients flow back through."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import flambeau as fb

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter", "_get_stream"]


class Broadcast:
    """Copies of tensors on several devices."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], *inputs: fb.Tensor) -> tuple[fb.Tensor, ...]:
        """The copies of all tensors on the first device, then those on the next one.

        Raises:
            TypeError: a tensor is on the CPU.
        """
        _refuse_cpu("Broadcast", inputs)
        return tuple(x.to(_placed(place, x)) for place in target_gpus for x in inputs)


class ReduceAddCoalesced:
    """Sums over devices."""

    @staticmethod
    def apply(destination: object, num_inputs: int, *grads: fb.Tensor) -> tuple[fb.Tensor, ...]:
        """The sum of each of `num_inputs` tensors, which come device by device."""
        sums = []
        for i in range(num_inputs):
            here = [x.to(_placed(destination, x)) for x in grads[i::num_inputs]]
            sums.append(fb.stack(here).sum(0))
        return tuple(sums)


class Gather:
    """Tensors of several devices, joined on one."""

    @staticmethod
    def apply(target_device: object, dim: int, *inputs: fb.Tensor) -> fb.Tensor:
        """The tensors joined along a dimension."""
        return fb.nn.parallel.gather(inputs, _placed(target_device, inputs[0]), dim)


class Scatter:
    """Parts of a tensor, each on a device of its own."""

    @staticmethod
    def apply(
        target_gpus: Sequence[Any], chunk_sizes: Sequence[int] | None, dim: int, input: fb.Tensor
    ) -> tuple[fb.Tensor, ...]:
        """The parts, of equal sizes unless these are given."""
        if chunk_sizes is None:
            parts = input.chunk(len(target_gpus), dim)
        else:
            parts = input.split(list(chunk_sizes), dim)
        pairs = zip(parts, target_gpus, strict=False)
        return tuple(part.to(_placed(place, input)) for part, place in pairs)


@cache
def _stream_of(device: fb.device) -> Any:
    return fb.cuda.Stream(device)


def _get_stream(device: fb.device | int) -> Any:
    """The stream on which copies to a device run beside its work; None for the CPU."""
    place = fb.device("cuda", device) if isinstance(device, int) else fb.device(device)
    return None if place.type == "cpu" else _stream_of(place)


def _refuse_cpu(name: str, inputs: Sequence[fb.Tensor]) -> None:
    if any(x.device.type == "cpu" for x in inputs):
        raise TypeError(f"{name} function not implemented for CPU tensors")


def _placed(place: Any, like: fb.Tensor) -> fb.device:
    """A device by its number among those of a tensor's type; the CPU by -1."""
    if not isinstance(place, int):
        return fb.device(place)
    if place < 0:
        return fb.device("cpu")
    return fb.device("cuda" if like.device.type == "cpu" else like.device.type, place)
