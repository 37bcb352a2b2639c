"""The package that `flambeau.distributed` replaced in PyTorch 1.0, for programs that still name it.

Its functions are those of `flambeau.distributed`, with the older arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau import Tensor
from flambeau import distributed as dist
from flambeau.distributed import get_rank as get_rank
from flambeau.distributed import get_world_size as get_world_size
from flambeau.distributed import group as group
from flambeau.distributed import is_available as is_available
from flambeau.distributed import is_initialized as is_initialized
from flambeau.distributed import launch as launch
from flambeau.distributed import reduce_op as reduce_op

if TYPE_CHECKING:
    from flambeau.distributed._group import ProcessGroup


__all__ = [
    "all_gather",
    "all_gather_multigpu",
    "all_reduce",
    "all_reduce_multigpu",
    "barrier",
    "broadcast",
    "broadcast_multigpu",
    "gather",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "launch",
    "new_group",
    "recv",
    "reduce",
    "reduce_multigpu",
    "reduce_op",
    "scatter",
    "send",
]

SUM = reduce_op.SUM


def init_process_group(backend: str, init_method: str = "env://", **kwargs: Any) -> None:
    """`flambeau.distributed.init_process_group`; ``"tcp"`` means the engine of CPUs.

    With ``file://`` a rank that is not given is the next free one.  Multicast addresses are not
    supported: name an address of rank 0.

    Args:
        backend: ``"tcp"``, ``"mpi"``, ``"gloo"``, ``"nccl"``.
        init_method: as there.
        kwargs: `world_size`, `rank` and `group_name`, which tells jobs at one file apart.
    """
    name = kwargs.pop("group_name", "")
    if name and init_method.startswith("file://"):
        init_method = f"{init_method}.{name}"
    if init_method.startswith("file://") and kwargs.get("rank", -1) < 0:
        size = kwargs.get("world_size", -1)
        counter = dist.FileStore(init_method.removeprefix("file://") + ".ranks", size)
        kwargs["rank"] = counter.add("ranks", 1) - 1
        dist.init_process_group("gloo" if backend == "tcp" else backend, init_method, **kwargs)
        counter.close()
        return
    dist.init_process_group("gloo" if backend == "tcp" else backend, init_method, **kwargs)


def new_group(ranks: Any = None) -> ProcessGroup:
    """`flambeau.distributed.new_group`."""
    return dist.new_group(ranks)


def send(tensor: Tensor, dst: int) -> None:
    """`flambeau.distributed.send`."""
    dist.send(tensor, dst)


def recv(tensor: Tensor, src: int | None = None) -> int:
    """`flambeau.distributed.recv`."""
    return dist.recv(tensor, src)


def isend(tensor: Tensor, dst: int) -> dist.Work | None:
    """`flambeau.distributed.isend`."""
    return dist.isend(tensor, dst)


def irecv(tensor: Tensor, src: int) -> dist.Work | None:
    """`flambeau.distributed.irecv`."""
    return dist.irecv(tensor, src)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> None:
    """`flambeau.distributed.broadcast`."""
    dist.broadcast(tensor, src, group)


def all_reduce(tensor: Tensor, op: object = SUM, group: ProcessGroup | None = None) -> None:
    """`flambeau.distributed.all_reduce`."""
    dist.all_reduce(tensor, op, group)


def reduce(tensor: Tensor, dst: int, op: object = SUM, group: ProcessGroup | None = None) -> None:
    """`flambeau.distributed.reduce`."""
    dist.reduce(tensor, dst, op, group)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None
) -> None:
    """`flambeau.distributed.all_gather`."""
    dist.all_gather(tensor_list, tensor, group)


def gather(tensor: Tensor, **kwargs: Any) -> None:
    """`flambeau.distributed.gather`: `gather_list` where tensors arrive, `dst` elsewhere."""
    rows, group = kwargs.get("gather_list"), kwargs.get("group")
    dst = kwargs["dst"] if rows is None else kwargs.get("dst", dist.get_rank())
    dist.gather(tensor, rows, dst, group)


def scatter(tensor: Tensor, **kwargs: Any) -> None:
    """`flambeau.distributed.scatter`: `scatter_list` where tensors leave, `src` elsewhere."""
    rows, group = kwargs.get("scatter_list"), kwargs.get("group")
    src = kwargs["src"] if rows is None else kwargs.get("src", dist.get_rank())
    dist.scatter(tensor, rows, src, group)


def barrier(group: ProcessGroup | None = None) -> None:
    """`flambeau.distributed.barrier`."""
    dist.barrier(group)


def broadcast_multigpu(
    tensor_list: list[Tensor], src: int, group: ProcessGroup | None = None
) -> None:
    """`flambeau.distributed.broadcast_multigpu`."""
    dist.broadcast_multigpu(tensor_list, src, group)


def all_reduce_multigpu(
    tensor_list: list[Tensor], op: object = SUM, group: ProcessGroup | None = None
) -> None:
    """`flambeau.distributed.all_reduce_multigpu`."""
    dist.all_reduce_multigpu(tensor_list, op, group)


def reduce_multigpu(
    tensor_list: list[Tensor], dst: int, op: object = SUM, group: ProcessGroup | None = None
) -> None:
    """`flambeau.distributed.reduce_multigpu`."""
    dist.reduce_multigpu(tensor_list, dst, op, group)


def all_gather_multigpu(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
) -> None:
    """`flambeau.distributed.all_gather_multigpu`."""
    dist.all_gather_multigpu(output_tensor_lists, input_tensor_list, group)
