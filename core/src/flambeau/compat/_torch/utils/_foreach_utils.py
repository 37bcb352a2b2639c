"""Lists of tensors by device and dtype, as optimisers of libraries sort them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau._dispatch.dispatch import PLAIN

__all__ = [
    "_device_has_foreach_support",
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_group_tensors_by_device_and_dtype",
    "_has_foreach_support",
]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Types of devices on which lists of tensors are faster: no CPU is, as in PyTorch."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Types of devices with kernels for a step of an optimiser."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: fb.device) -> bool:
    return device.type in _get_foreach_kernels_supported_devices()


def _has_foreach_support(tensors: Sequence[Any], device: fb.device) -> bool:
    """Whether the tensors could be handled as a list: none is of a class of its own."""
    return _device_has_foreach_support(device) and all(
        each is None or type(each) in PLAIN for each in tensors
    )


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Lists of the same length, split by what their first tensors are.

    Args:
        tensorlistlist: the lists; later ones may have None in place of tensors.
        with_indices: whether to say the places in the original lists.
    """
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for place, entries in enumerate(zip(*(each for each in tensorlistlist if each), strict=True)):
        key = entries[0].device, entries[0].dtype
        lists, places = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        rest = iter(entries)
        for original, into in zip(tensorlistlist, lists, strict=True):
            if original:
                into.append(next(rest))
        if with_indices:
            places.append(place)
    return groups
