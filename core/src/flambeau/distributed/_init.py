"""The beginning and the end of a job, and its groups."""

from __future__ import annotations

import atexit
import operator
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed import _engines
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._rendezvous import PATIENCE, meet
from flambeau.distributed._starters import started
from flambeau.distributed._stores import Store
from flambeau.distributed._world import World

default_pg_timeout = PATIENCE
"""How long operations wait unless `init_process_group` is told otherwise."""

_world: World | None = None
_standalone: set[World] = set()
"""Jobs that are not that of `init_process_group`."""


class GroupMember:
    """The group of all processes, and what stands for a group that this process is not in."""

    NON_GROUP_MEMBER: Any = -100


class _GroupNames(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before `init_process_group`."""
        return None if _world is None else _world.group


class group(metaclass=_GroupNames):  # noqa: N801 - PyTorch's name
    """Its attribute ``WORLD`` is the group of all processes, None while there is none."""


def is_available() -> bool:
    """Whether a package is installed with which processes can exchange tensors.

    For CPUs that is flambeau-mpi.

    >>> import flambeau as fb
    >>> fb.distributed.is_available() in (True, False)
    True
    """
    return bool(_engines.usable())


def is_backend_available(backend: str) -> bool:
    """Whether `init_process_group` can be called with this name."""
    try:
        _engines.named(backend.lower())
    except (RuntimeError, ValueError):
        return False
    return True


def is_mpi_available() -> bool:
    """Whether an engine that is called ``mpi`` can be used."""
    return is_backend_available("mpi")


def is_gloo_available() -> bool:
    """Whether ``gloo``, which means the engine for CPUs here, can be used."""
    return is_backend_available("gloo")


def is_nccl_available() -> bool:
    """Whether ``nccl``, which means the engine for GPUs here, can be used."""
    return is_backend_available("nccl")


def is_ucc_available() -> bool:
    """Whether an engine ``ucc`` can be used."""
    return is_backend_available("ucc")


def is_torchelastic_launched() -> bool:
    """Whether a launcher that restarts ranks has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_initialized() -> bool:
    """Whether `init_process_group` has been called and `destroy_process_group` has not.

    >>> import flambeau as fb
    >>> fb.distributed.is_initialized()
    False
    """
    return _world is not None


def as_timedelta(timeout: timedelta | float | None) -> timedelta:
    """A timeout, which can be given in seconds; the default one for None."""
    if timeout is None:
        return default_pg_timeout
    return timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: object = None,
) -> None:
    """Join the job: wait until all of its processes have come, and start the engines.

    Args:
        backend: ``"mpi"``, an engine of another name, PyTorch's ``"gloo"`` and ``"nccl"`` for the
            engines of CPUs and GPUs, ``"cpu:gloo,cuda:nccl"``, or None for all that are installed.
        init_method: ``"env://"`` (the default) reads ``MASTER_ADDR``, ``MASTER_PORT``,
            ``WORLD_SIZE`` and ``RANK``; what is not set is asked of `srun` (which says all of it)
            and `mpiexec` (all of it on one machine); ``"tcp://host:port"`` is an address of rank
            0's machine; ``"file:///path"`` a file, not there yet, that all processes see.
        timeout: after which a wait names those who are missing; 30 minutes if not given.
        world_size: number of processes.
        rank: of this one, from 0.
        store: where processes find each other, in place of `init_method`.
        group_name: not used.
        pg_options: not used.
        device_id: the device that this process uses, for engines that want to know it early.

    Raises:
        ValueError: the job has been joined already, or rank, size or address are missing.
        RuntimeError: no installed package has such an engine.
        DistTimeoutError: not all processes came; the message has the missing ranks.

    >>> import flambeau as fb
    >>> store = fb.distributed.HashStore()
    >>> fb.distributed.init_process_group("reference", store=store, rank=0, world_size=1)
    >>> fb.distributed.get_world_size()
    1
    >>> fb.distributed.destroy_process_group()
    """
    global _world
    if _world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    rank, world_size = _whole("rank", rank), _whole("world_size", world_size)
    engines = _engines.chosen(None if backend in (None, "") else str(backend).lower())
    limit = as_timedelta(timeout)
    owned = store is None
    if store is None:
        store, rank, world_size = meet(init_method or "env://", rank, world_size, limit)
    elif init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    elif not 0 <= rank < world_size:
        raise ValueError("rank and world_size are needed with store, 0 <= rank < world_size")
    made = World(rank, world_size, store, limit, owned)
    whole = ProcessGroup(made, "world", range(world_size), limit, engines, _asked(backend))
    begin(made, whole)
    _standalone.discard(made)
    _world = made


def begin(world: World, whole: ProcessGroup) -> None:
    """Make `whole` the group of all processes of a job, and start its engine if there is one.

    The job is left when this process ends.
    """
    world.group = world.groups["world"] = whole
    try:
        for kind, engine in whole.engines.items():
            if engine.eager and (kind == "cpu" or len(whole.engines) == 1):
                whole.start(kind)
    except BaseException:
        world.leave(wait=False)
        raise
    _standalone.add(world)
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        # A process of multiprocessing that was forked ends without atexit's functions.
        util.Finalize(None, _at_exit, exitpriority=0)


def _whole(name: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"init_process_group(): {name} must be int, not {kind}") from None


def _asked(backend: str | None) -> str | None:
    """The name for the CPU in what a program wrote, or the only one."""
    if not backend or ":" not in backend:
        return backend.lower() if backend else None
    pairs = [clause.lower().partition(":") for clause in backend.split(",")]
    names = {device.strip(): name.strip() for device, _, name in pairs}
    return names.get("cpu", next(iter(names.values())))


def _at_exit() -> None:
    """Wait for the others, who may need our messages, unless this process ends by an error."""
    error = sys.exception() or getattr(sys, "last_value", None)
    well = error is None or (isinstance(error, SystemExit) and error.code in (None, 0))
    for world in [*_standalone, *([] if _world is None else [_world])]:
        world.leave(wait=well, at_end=True)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group, or the job: then wait until all processes have left it.

    Raises:
        ValueError: there is no such group.
    """
    global _world
    if not in_group(group):
        return  # the members destroy it
    found = need_group(group)
    world = found.world
    if found is not world.group:
        found.tell_calls()
        del world.groups[found.group_name]
        found.broken = "it was destroyed"
        found.close()
        return
    if world is _world:
        _world = None
    _standalone.discard(world)
    world.leave(wait=True)


def need_world() -> World:
    """The job of this process.

    Raises:
        ValueError: there is none.
    """
    if _world is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _world


def _get_default_group() -> ProcessGroup:
    return need_group(None)


def _get_default_store() -> Store:
    return need_world().store


def need_group(group: object) -> ProcessGroup:
    """The group, that of all processes for None.

    Raises:
        ValueError: there is no job, or this process is not in the group.
    """
    if isinstance(group, ProcessGroup):
        return group
    whole = need_world().group
    if group is None:
        assert whole is not None
        return whole
    raise ValueError("Invalid process group specified: this process is not in the group")
    return group


def in_group(group: object) -> bool:
    """Whether this process is in a group."""
    return not isinstance(group, int)


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group; -1 if it is not in it.

    Raises:
        ValueError: there is no job.
    """
    world = need_world()
    if not in_group(group):
        return -1
    return world.rank if group is None else need_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes in a group; -1 if this process is not in it.

    Raises:
        ValueError: there is no job.
    """
    world = need_world()
    if not in_group(group):
        return -1
    return world.size if group is None else need_group(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The engine of a group by the name that the program gave; else what it is called.

    The one for the CPU where there are several.

    >>> import flambeau as fb
    >>> dist = fb.distributed
    >>> dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_backend()
    'reference'
    >>> dist.destroy_process_group()
    """
    found = need_group(group)
    return found.asked or found.name()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """``LOCAL_RANK`` of the environment: which of the processes of its machine this one is.

    Where it is not set, what `srun` or `mpiexec` have said.

    Raises:
        RuntimeError: nobody has said it, and there is no `fallback_rank`.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if (start := started()) is not None:
        return start.local_rank
    if fallback_rank is not None:
        return fallback_rank
    raise RuntimeError("LOCAL_RANK is not in the environment; set it, or pass fallback_rank")


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The members of a group, as ranks of the job."""
    return list(need_group(group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of a rank of the job."""
    return need_group(group).rank_of(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the job of a member of a group.

    Raises:
        ValueError: there is no such member.
    """
    ranks = need_group(group).ranks
    if group is need_group(None):
        return group_rank
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: object = None,
    sort_ranks: bool = True,
) -> ProcessGroup:
    """A group of some processes.  All processes of the job call it, with the same arguments.

    Args:
        ranks: its members; None for all.
        timeout: as that of `init_process_group`, which it is if not given.
        backend: engines of the group; those of the job if not given.
        pg_options: not used.
        use_local_synchronization: only the members call it.
        group_desc: not used.
        device_id: not used.
        sort_ranks: number the members by their ranks, not by their places in `ranks`.

    Returns:
        The group; ``GroupMember.NON_GROUP_MEMBER`` in processes that are not in it.

    Raises:
        ValueError: `ranks` are not different processes of the job.
    """
    world = need_world()
    whole = need_group(None)
    members = list(range(world.size)) if ranks is None else list(ranks)
    if len(set(members)) != len(members):
        raise ValueError(f"duplicate ranks in {members}")
    if any(not 0 <= rank < world.size for rank in members) or not members:
        raise ValueError(
            f"The new group's rank should be within the world_size {world.size} set by "
            f"init_process_group, got {members}"
        )
    if sort_ranks:
        members.sort()
    if use_local_synchronization:
        name = "of " + ",".join(map(str, members))
        name += f" #{sum(known.startswith(name) for known in world.names)}"
    else:
        world.made += 1
        name = f"group {world.made}"
    world.names.append(name)
    if world.rank not in members:
        return GroupMember.NON_GROUP_MEMBER
    engines = whole.engines if backend is None else _engines.chosen(backend.lower())
    limit = whole.timeout if timeout is None else as_timedelta(timeout)
    asked = whole.asked if backend is None else _asked(backend)
    made = ProcessGroup(world, name, members, limit, engines, asked)
    world.groups[name] = made
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` neighbours each; that of this process, and all.

    Raises:
        ValueError: the size does not divide the number of processes, or is not given.
    """
    size = need_group(group).size()
    if not group_size or group_size < 0:
        raise ValueError("group_size is needed: how many processes each group has")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by {group_size=}")
    ranks = need_group(group).ranks
    lists = [ranks[i : i + group_size] for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups that share no process; that of this process, and all.

    Raises:
        ValueError: a process is in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(every)) != len(every):
        raise ValueError("a rank is in two of the groups")
    made = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    mine = [g for g in made if isinstance(g, ProcessGroup)]
    return (mine[0] if mine else None), made


all_take_as_annotated(globals())
