"""Objects that can be pickled, in place of tensors.

They are unpickled where they arrive: take part only in jobs whose processes you trust.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._exchange import collectives, messages
from flambeau.distributed._exchange.collectives import _root
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._init import in_group, need_group


def _packed(obj: object, group: ProcessGroup) -> Tensor:
    data = fb.frombuffer(bytearray(pickle.dumps(obj)), dtype=fb.uint8)
    return data.to(group.kind())


def _padded(data: Tensor, size: int) -> Tensor:
    room = fb.zeros(size, dtype=fb.uint8, device=data.device)
    room[: data.numel()] = data
    return room


def _unpacked(data: Tensor) -> Any:
    return pickle.loads(data._be.backend.to_host(data.contiguous()._a))


def _sizes(mine: int, group: ProcessGroup) -> list[int]:
    found = fb.zeros(group.size(), dtype=fb.int64, device=group.kind())
    collectives.all_gather_into_tensor(found, fb.tensor([mine], device=group.kind()), group)
    return [int(n) for n in found.tolist()]


def all_gather_object(
    object_list: list[Any], obj: object, group: ProcessGroup | None = None
) -> None:
    """The objects of all processes: ``object_list[i] = obj of rank i``."""
    if not in_group(group):
        return
    found = need_group(group)
    for i, data in enumerate(_gathered(obj, found, None) or []):
        object_list[i] = _unpacked(data)


def _gathered(obj: object, group: ProcessGroup, root: int | None) -> list[Tensor] | None:
    data = _packed(obj, group)
    sizes = _sizes(data.numel(), group)
    padded = _padded(data, max(sizes))
    room = [fb.empty_like(padded) for _ in sizes]
    if root is None:
        collectives.all_gather(room, padded, group)
    elif root == group.rank():
        collectives.gather(padded, room, group=group, group_dst=root)
    else:
        collectives.gather(padded, group=group, group_dst=root)
        return None
    return [row[:size].clone() for row, size in zip(room, sizes, strict=True)]


def gather_object(
    obj: object,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """The objects of all processes in rank `dst` (0 by default), which alone gives a list.

    Raises:
        ValueError: `dst` gives no list, or another rank does.
    """
    if not in_group(group):
        return
    found = need_group(group)
    root = _root(found, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    if found.rank() == root and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if found.rank() != root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    rows = _gathered(obj, found, root)
    if rows is not None and object_gather_list is not None:
        for i, row in enumerate(rows):
            object_gather_list[i] = _unpacked(row)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: object = None,
    group_src: int | None = None,
) -> None:
    """The objects of rank `src` (0 by default) in the lists of all, which are of one length."""
    if not in_group(group):
        return
    found = need_group(group)
    root = _root(found, 0 if src is None and group_src is None else src, group_src, "src")
    kind = found.kind()
    data = _packed(object_list, found) if found.rank() == root else fb.empty(0, dtype=fb.uint8)
    size = fb.tensor([data.numel()], device=kind)
    collectives.broadcast(size, group=found, group_src=root)
    if found.rank() != root:
        data = fb.empty(int(size.item()), dtype=fb.uint8, device=kind)
    collectives.broadcast(data, group=found, group_src=root)
    if found.rank() != root:
        object_list[:] = _unpacked(data)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """To each process its object of the list of rank `src`, as the first of its output list.

    Raises:
        ValueError: `src` gives no list of as many objects as there are processes.
    """
    if not in_group(group):
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    found = need_group(group)
    root = _root(found, 0 if src is None and group_src is None else src, group_src, "src")
    rows: list[Tensor] | None = None
    kind = found.kind()
    size = fb.zeros(found.size(), dtype=fb.int64, device=kind)
    if found.rank() == root:
        given: Iterable[Any] = scatter_object_input_list or []
        packed = [_packed(obj, found) for obj in given]
        if len(packed) != found.size():
            raise ValueError(
                "Argument ``scatter_object_input_list`` must have an object for each "
                "process on the source rank."
            )
        size = fb.tensor([data.numel() for data in packed], device=kind)
        longest = max(data.numel() for data in packed)
        rows = [_padded(data, longest) for data in packed]
    collectives.broadcast(size, group=found, group_src=root)
    sizes = [int(n) for n in size.tolist()]
    mine = fb.empty(max(sizes), dtype=fb.uint8, device=kind)
    collectives.scatter(mine, rows, group=found, group_src=root)
    scatter_object_output_list[0] = _unpacked(mine[: sizes[found.rank()]].clone())


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: object = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to rank `dst`, which calls `recv_object_list`."""
    if not in_group(group):
        return
    data = _packed(object_list, need_group(group))
    messages.send(fb.tensor([data.numel()], device=data.device), dst, group, 0, group_dst)
    messages.send(data, dst, group, 0, group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: object = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects from rank `src`, or from any; the rank that had sent."""
    if not in_group(group):
        return -1
    kind = need_group(group).kind()
    size = fb.empty(1, dtype=fb.int64, device=kind)
    source = messages.recv(size, src, group, 0, group_src)
    data = fb.empty(int(size.item()), dtype=fb.uint8, device=kind)
    messages.recv(data, source, group)
    object_list[:] = _unpacked(data)
    return source


all_take_as_annotated(globals())
