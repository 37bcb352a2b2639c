"""What programs ask about engines and groups before they use them."""

from __future__ import annotations

import os
from enum import IntEnum

import flambeau as fb
from flambeau import device as Device
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed import _engines
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._init import is_backend_available, need_group, need_world
from flambeau.distributed._names import Backend
from flambeau.distributed._reduce_op import ReduceOp


class DebugLevel(IntEnum):
    """How much a program is told of what its processes do, as PyTorch numbers it."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level() -> DebugLevel:
    """What ``TORCH_DISTRIBUTED_DEBUG`` asks for; what processes call is compared at every level.

    Raises:
        RuntimeError: it is no level.
    """
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, not {name!r}"
        )
    return DebugLevel[name]


def get_default_backend_for_device(device: str | Device) -> str:
    """The name for `init_process_group` that means the engine of a type of devices.

    Raises:
        ValueError: no engine serves such devices.

    >>> import flambeau as fb
    >>> fb.distributed.get_default_backend_for_device("cpu")
    'gloo'
    """
    kind = fb.device(device).type
    name = Backend.default_device_backend_map.get(kind)
    if name is not None:
        return name
    for engine in _engines.usable():
        if kind in engine.devices:
            return engine.name
    raise ValueError(f"Default backend not registered for device : {device}")


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The engines of a group with the types of devices that they serve, ``"cpu:mpi,cuda:nccl"``.

    Raises:
        ValueError: there is no job, or this process is not in the group.
    """
    engines = need_group(group).engines
    return ",".join(f"{kind}:{engine.name}" for kind, engine in engines.items())


def get_pg_count() -> int:
    """How many groups there are, that of all processes among them.

    Raises:
        ValueError: there is no job.
    """
    return len(need_world().groups)


def is_xccl_available() -> bool:
    """Whether an engine ``xccl`` can be used."""
    return is_backend_available("xccl")


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether tensors of complex numbers can be combined so.

    >>> import flambeau as fb
    >>> dist = fb.distributed
    >>> dist.supports_complex(dist.ReduceOp.SUM), dist.supports_complex(dist.ReduceOp.MAX)
    (True, False)
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


all_take_as_annotated(globals())
