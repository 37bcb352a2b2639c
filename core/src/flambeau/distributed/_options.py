"""Arguments of a group's methods in one object, by the names that PyTorch gives them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from flambeau.distributed._reduce_op import ReduceOp

_UNSET = timedelta(milliseconds=-1)


@dataclass
class _Options:
    """What all have: `timeout`, negative for that of the group."""

    timeout: timedelta = _UNSET
    asyncOp: bool = True  # noqa: N815 - PyTorch's name


@dataclass
class AllreduceOptions(_Options):
    """Arguments of `ProcessGroup.allreduce`: how elements are combined."""

    reduceOp: ReduceOp = ReduceOp.SUM  # noqa: N815 - PyTorch's name


@dataclass
class BroadcastOptions(_Options):
    """Arguments of `ProcessGroup.broadcast`: the process, and which of its tensors."""

    rootRank: int = 0  # noqa: N815 - PyTorch's name
    rootTensor: int = 0  # noqa: N815 - PyTorch's name


@dataclass
class ReduceOptions(AllreduceOptions):
    """Arguments of `ProcessGroup.reduce`: the process that gets the result, and in which tensor."""

    rootRank: int = 0  # noqa: N815 - PyTorch's name
    rootTensor: int = 0  # noqa: N815 - PyTorch's name


@dataclass
class GatherOptions(_Options):
    """Arguments of `ProcessGroup.gather`: the process that gets all."""

    rootRank: int = 0  # noqa: N815 - PyTorch's name


@dataclass
class ScatterOptions(_Options):
    """Arguments of `ProcessGroup.scatter`: the process that gives all."""

    rootRank: int = 0  # noqa: N815 - PyTorch's name


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    """Arguments of `ProcessGroup.reduce_scatter`: how elements are combined."""


@dataclass
class AllgatherOptions(_Options):
    """Arguments of `ProcessGroup.allgather`."""


@dataclass
class AllToAllOptions(_Options):
    """Arguments of `ProcessGroup.alltoall`."""


@dataclass
class BarrierOptions(_Options):
    """Arguments of `ProcessGroup.barrier`."""
