"""Starting MPI in processes that no mpiexec has started.

MPICH asks a process manager for rank, size and the addresses of the others, by the protocol PMI-1.
Rank 0 starts one for the job (`flambeau_mpi.manager`) and tells the others its address.

Importing ``mpi4py.MPI`` starts MPI too, for this process alone, and programs do so to find out what
has started them.  Then all ranks take MPI's sessions, which may begin after that start has ended.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.plugin import Job
from flambeau_mpi import manager

_STARTERS = ("PMI_", "PMIX_", "HYDI_", "HYDRA_")

_started: tuple[str, Any, Any] | None = None


def mpi() -> Any:
    """The module ``mpi4py.MPI`` of this process, started.

    Raises:
        RuntimeError: it has not been started.
    """
    if _started is None:
        raise RuntimeError("MPI has not been started in this process")
    return _started[1]


def forget() -> None:
    """In a forked child: MPI belongs to the parent."""
    global _forked
    _forked = _started is not None


_forked = False


def communicator(job: Job) -> Any:
    """A communicator of all processes of a job, which shares no message with another.

    Raises:
        RuntimeError: MPI runs already, for another job; it starts once in a process.
    """
    global _started
    if _forked:
        raise RuntimeError("MPI was started before this process forked; use 'spawn' for processes")
    if _started is None:
        _started = _start(job)
    name, module, world = _started
    rank, size = world.Get_rank(), world.Get_size()
    job.set(f"mpi/{job.rank}", name.encode())
    first = job.get("mpi/0").decode()
    if (first, rank, size) != (name, job.rank, job.size):
        raise RuntimeError(
            f"MPI starts once in the life of a process: this one was rank {rank} of {size} of a "
            f"job and cannot be rank {job.rank} of {job.size} of another; start new processes"
        )
    made, request = world.Idup()
    job.wait(request.Test, "the start of MPI")
    made.Set_errhandler(module.ERRORS_RETURN)
    manager.sweep(name)  # all have come, so all have mapped it
    return made


def in_thread(job: Job, call: Callable[[], Any], what: str) -> Any:
    """What a call gives that blocks; in a thread, so that a death is heard of meanwhile."""
    ended: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            ended.append((call(), None))
        except Exception as error:  # raised where the call is waited for
            ended.append((None, error))

    threading.Thread(target=run, daemon=True).start()
    job.wait(lambda: bool(ended), what)
    value, error = ended[0]
    if error is not None:
        raise error
    return value


def _start(job: Job) -> tuple[str, Any, Any]:
    alone = _is_alone(job)
    job.set(f"node/{job.rank}", f"{int(alone)} {_free_memory()} {_node()}".encode())
    if job.rank == 0:
        told = [job.get(f"node/{rank}").decode().split(" ", 2) for rank in range(job.size)]
        again = int(any(flag == "1" for flag, _, _ in told))
        room = _room([(node, int(free)) for _, free, node in told])
        name, port = f"flambeau-{uuid.uuid4().hex[:16]}", 0
        if room >= _NEEDED:
            port = _manager(job, name, manager.mapping([node for _, _, node in told]))
        job.set("manager", f"{name} {_known_to_mpich(job.host)}:{port} {again} {room}".encode())
    name, address, again, room = job.get("manager").decode().split(" ")
    if int(room) < _NEEDED:
        raise RuntimeError(
            f"MPI takes {_NEEDED} bytes of shared memory for each process, and a machine of this "
            f"job has {room} for each of its processes in {_SHARED}. Make that file system larger "
            "(containers: --shm-size)"
        )
    given = {
        "PMI_PORT": address,
        "PMI_ID": str(job.rank),
        "PMI_RANK": str(job.rank),
        "PMI_SIZE": str(job.size),
        **_interfaces(),
    }
    if again == "1":  # MPICH's own shared memory keeps the size that it had at the first start
        given["MPIR_CVAR_NOLOCAL"] = "1"
    if int(room) < _WANTED and "UCX_TLS" not in os.environ:
        given["UCX_TLS"] = "^posix"
    # What another starter has said of its own way to start MPI is not for this one.
    theirs = {key: os.environ.pop(key) for key in [*os.environ] if key.startswith(_STARTERS)}
    theirs |= {key: os.environ[key] for key in given if key in os.environ}
    os.environ.update(given)
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False  # it would wait for ranks that may be dead
        from mpi4py import MPI

        if alone:
            MPI.Finalize()
        world = _session_world(MPI, job) if again == "1" else _world(MPI)
    finally:
        for key in given:
            os.environ.pop(key, None)
        os.environ.update(theirs)
    rank, size = world.Get_rank(), world.Get_size()
    if (rank, size) != (job.rank, job.size):
        raise RuntimeError(
            f"MPI started as rank {rank} of {size}, where {job.rank} of {job.size} was expected; "
            "the library is no MPICH, or another process manager has started this process"
        )
    return name, MPI, world


_SHARED = "/dev/shm"
# Bytes for each process.  A process that finds less than MPICH needs is killed by SIGBUS; UCX, on
# which it stands, goes without its own, but not where some processes have it and others do not.
_NEEDED = 1_150_000
_WANTED = 6_000_000


def _free_memory() -> int:
    """Bytes that are free where shared memory is, as many as can be where that is unknown."""
    try:
        found = os.statvfs(_SHARED)
    except OSError:
        return sys.maxsize
    return found.f_bavail * found.f_frsize


def _room(told: Sequence[tuple[str, int]]) -> int:
    """What each process of the fullest machine has of the bytes that are free there.

    >>> _room([("a", 900), ("b", 500), ("a", 800), ("a", 900)])
    266
    """
    count = Counter(node for node, _ in told)
    return min(free // count[node] for node, free in told)


def _is_alone(job: Job) -> bool:
    """Whether MPI was started already, for a job of this process only."""
    module = sys.modules.get("mpi4py.MPI")
    if module is None or job.size == 1 or not module.Is_initialized() or module.Is_finalized():
        return False
    return bool(module.COMM_WORLD.Get_size() == 1)


def _world(mpi: Any) -> Any:
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    return mpi.COMM_WORLD


def _session_world(mpi: Any, job: Job) -> Any:
    """The communicator of all processes by a session, which stays open like MPI itself."""
    session = mpi.Session.Init(mpi.Info.Create({"thread_level": "MPI_THREAD_MULTIPLE"}))
    members = session.Create_group("mpi://WORLD")
    create = mpi.Intracomm.Create_from_group
    return in_thread(job, lambda: create(members, "flambeau"), "the start of MPI")


def _interfaces() -> dict[str, str]:
    """What MPICH's layers have to be told when the user has chosen a network interface."""
    name = os.environ.get("GLOO_SOCKET_IFNAME")
    if not name:
        return {}
    chosen = {"FI_TCP_IFACE": name, "UCX_NET_DEVICES": name}
    return {key: value for key, value in chosen.items() if key not in os.environ}


def _node() -> str:
    """What processes that share memory have in common: the system's start, and namespaces."""
    facts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/ipc", "/proc/self/ns/net"):
        try:
            if path.endswith("boot_id"):
                with open(path) as file:
                    facts.append(file.read().strip())
            else:
                facts.append(os.readlink(path))
        except OSError:
            pass
    return " ".join(facts)


# Seconds.  All are there when the manager begins, and MPI ends a process that does not find it: a
# machine that is busy may take longer to load it than a job has been told to wait for others.
_PATIENCE = 60.0


def _known_to_mpich(host: str) -> str:
    """An address of this machine as MPICH understands it: it reads none of IPv6 (PMI-1).

    Raises:
        RuntimeError: the machine has none of IPv4.
    """
    if ":" not in host:
        return host
    if ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        return "127.0.0.1"
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError as error:
        raise RuntimeError(
            f"MPICH starts by addresses of IPv4, and this machine ({host}) has none by its name "
            f"{socket.gethostname()}: {error}. Set MASTER_ADDR to one, or enter one in /etc/hosts"
        ) from error


def _manager(job: Job, name: str, mapping: str) -> int:
    with socket.create_server((_known_to_mpich(job.host), 0), backlog=1024) as listener:
        fd = listener.fileno()
        script = [sys.executable, "-I", "-S", manager.__file__]
        subprocess.run(
            [*script, str(fd), str(job.size), name, mapping, str(max(job.timeout, _PATIENCE))],
            pass_fds=[fd],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return int(listener.getsockname()[1])
