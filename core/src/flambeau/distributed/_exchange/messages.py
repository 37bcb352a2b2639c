"""Messages from one process to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau import Tensor
from flambeau.distributed._exchange.collectives import _root
from flambeau.distributed._exchange.vectors import need, target, vector
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._init import in_group, need_group
from flambeau.distributed._work import Work


def _words(name: str, tensor: Tensor, way: str) -> str:
    kind = str(tensor.dtype).rpartition(".")[2]
    return f"{name} ({kind}[{tensor.numel()}], {way})"


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send a tensor to rank `dst`, which receives one of as many elements and this dtype.

    The tensor must not be written before the `Work` is done.

    Raises:
        ValueError: `dst` is this process, or not in the group.
    """
    need("tensor", tensor)
    if not in_group(group):
        return None
    found = need_group(group)
    found.check_usable()
    to = _root(found, dst, group_dst, "dst")
    if to == found.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as "
            "the rank of the current process."
        )
    request = found.communicator(tensor).isend(vector(tensor), to, 2 * tag)
    words = _words("send", tensor, f"to rank {found.ranks[to]}")
    return Work(found, request, words, peers=[found.ranks[to]])


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive into a tensor from rank `src`, or, if not given, from any.

    `Work.source_rank` says who had sent.

    Raises:
        ValueError: `src` is this process, or not in the group.
    """
    need("tensor", tensor)
    if not in_group(group):
        return None
    found = need_group(group)
    found.check_usable()
    anybody = src is None and group_src is None
    source = None if anybody else _root(found, src, group_src, "src")
    if source == found.rank():
        raise ValueError(
            "Invalid source rank: source rank should not be the same as the rank of "
            "the current process."
        )
    array, finish = target(tensor)
    request = found.communicator(tensor).irecv(array, source, 2 * tag)
    way = "from any rank" if source is None else f"from rank {found.ranks[source]}"
    others = [rank for place, rank in enumerate(found.ranks) if place != found.rank()]
    peers = others if source is None else [found.ranks[source]]
    return Work(found, request, _words("recv", tensor, way), finish, peers=peers)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to rank `dst`; as `isend`, and wait."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive into a tensor; as `irecv`, and wait.  Who had sent, -1 outside of the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    return work.source_rank() if group_src is None else need_group(group).ranks[group_src]


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: to send, or to receive into.
        peer: rank of the other process.
        group: whose members exchange messages.
        tag: which messages belong together.
        group_peer: `peer` as a rank of the group.

    Raises:
        RuntimeError: `op` is another function.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise RuntimeError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages.

    Raises:
        RuntimeError: the list is empty, or holds something else.
    """
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise RuntimeError("Invalid ``p2p_op_list``. Each op is expected to be of type P2POp.")
    begun = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in begun if work is not None]
