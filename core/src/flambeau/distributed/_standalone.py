"""Groups that a program makes itself from a store, without `init_process_group`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed import _engines, _init
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._stores import Store
from flambeau.distributed._world import World


@dataclass(frozen=True)
class GlooDevice:
    """A network interface, by its name or an address of it.

    Engines choose their way by themselves; ``GLOO_SOCKET_IFNAME`` names an interface to them.
    """

    hostname: str = ""
    interface: str = ""


@dataclass
class GlooOptions:
    """What `ProcessGroupGloo` can be told.

    Attributes:
        devices: not used.
        timeout: after which a wait names those who are missing; seconds or timedelta.
        threads: not used.
    """

    devices: Sequence[GlooDevice] = field(default_factory=list)
    timeout: timedelta | float = _init.default_pg_timeout
    threads: int = 2


class ProcessGroupGloo(ProcessGroup):
    """The processes that meet at a store, as a group on the engine for CPUs.

    It is a job of its own: `init_process_group` is neither needed nor told.  It ends with
    `destroy_process_group` of it, or with the process.

    Args:
        store: that all processes see.
        rank: of this process, from 0.
        size: the number of processes.
        options: `GlooOptions`, or a timeout.
        timeout: after which a wait names those who are missing; 30 minutes if not given.

    Raises:
        ValueError: `rank` is none of `size` processes.
        RuntimeError: no package for processes of CPUs is installed.
        DistTimeoutError: not all processes came; the message has the missing ranks.
    """

    engine = "gloo"
    Options = GlooOptions

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        options: GlooOptions | timedelta | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        if not 0 <= rank < size:
            raise ValueError(f"rank {rank} is not one of {size} processes")
        given = options.timeout if isinstance(options, GlooOptions) else options
        limit = _init.as_timedelta(timeout if given is None else given)
        engines = _engines.chosen(self.engine)
        world = World(rank, size, store, limit, owned=False)
        super().__init__(world, "world", range(size), limit, engines, self.engine)
        _init.begin(world, self)

    @staticmethod
    def create_device(hostname: str = "", interface: str = "") -> GlooDevice:
        """A network interface for `GlooOptions.devices`."""
        return GlooDevice(hostname, interface)

    create_tcp_device = create_device


all_take_as_annotated(globals())
