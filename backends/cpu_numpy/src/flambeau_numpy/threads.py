"""One number of threads for all that computes on the CPU, and how idle threads wait.

NumPy's and SciPy's BLAS each have a pool, and so have other packages with kernels. All of them
follow `set_num_threads`. Idle threads sleep: they would spin for milliseconds otherwise, on
processors that another pool, or another process, has work for. A forked child has one thread for
good, because the threads of its parent's pools do not exist there, and waiting for them would be
forever.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flambeau_numpy.pools import Pool, loaded, pools

followers: dict[str, Callable[[int], object]] = {}
"""Other providers of kernels, by name, that are told the number of threads."""

COUNTS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables that say how many threads there are at the start, as OpenBLAS reads them."""

WAITING = {"OPENBLAS_THREAD_TIMEOUT": "4", "OMP_WAIT_POLICY": "passive"}
"""Variables that let idle threads sleep at once; the libraries read them when they are loaded."""

_STATED = {"OMP_WAIT_POLICY": ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")}

_is_forked = False
_count: int | None = None  # as set last, or that of the start once it was asked for


@contextmanager
def sleeping_when_idle() -> Iterator[None]:
    """A block in which libraries may be loaded; what the environment says already is left so.

    Afterwards the environment is as before: how other programs wait is not our business.
    """
    ours = {
        name: value
        for name, value in WAITING.items()
        if not any(stated in os.environ for stated in _STATED.get(name, (name,)))
    }
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def processors() -> int:
    """How many processors this process may use: its affinity, and a container's quota.

    >>> processors() >= 1
    True
    """
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        count = os.cpu_count() or 1
    return max(1, min(count, _quota(Path("/sys/fs/cgroup"))))


def _quota(groups: Path) -> int:
    """Processors' worth of time that a control group, version 2 or 1, allows; many if it is all."""
    try:
        if (file := groups / "cpu.max").exists():
            quota, period = file.read_text().split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((groups / "cpu" / name).read_text() for name in names)
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else 1 << 20
    except (OSError, ValueError):  # no such groups, or "max"
        return 1 << 20


def at_start() -> int:
    """The number of threads before anybody sets it."""
    for name in COUNTS:
        try:
            if (count := int(os.environ.get(name, "0").split(",")[0])) > 0:
                return count
        except ValueError:
            continue
    return processors()


def get_num_threads() -> int:
    """Number of threads that the BLAS library of NumPy uses (1 if it has no pool).

    In a forked child it is 1.
    """
    if _is_forked:
        return 1
    return max((pool.get() for pool in pools()), default=1)


def set_num_threads(count: int) -> None:
    """Let the BLAS libraries, and the `followers`, use `count` threads in this process.

    In a forked child one thread remains, whatever `count` is.

    Raises:
        RuntimeError: `count` is not positive.
    """
    if count < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {count}")
    global _count
    if _is_forked:
        count = 1
    _count = count
    for pool in pools():
        pool.put(count)
    for follow in followers.values():
        follow(count)


def count() -> int:
    """The number of threads as set last, or that of the start, without asking BLAS."""
    global _count
    if _is_forked:
        return 1
    if _count is None:
        _count = at_start()
    return _count


def follow(provider: str, set_count: Callable[[int], object]) -> None:
    """Tell a provider of kernels the number of threads, now and whenever it changes."""
    followers[provider] = set_count
    set_count(count())


def start() -> None:
    """Called when the kernels are loaded: a container's quota is no news to BLAS otherwise."""
    if not any(name in os.environ for name in COUNTS) and (
        _quota(Path("/sys/fs/cgroup")) < (os.cpu_count() or 1)
    ):
        set_num_threads(processors())


_forked: list[Pool] = []  # those whose threads a child does not have
_forked_with = False  # whether SciPy's was among them


def _before_fork() -> None:
    # Looked for here: the child could wait for the lock of the dynamic linker.
    global _forked, _forked_with
    if pools.cache_info().currsize:
        _forked = pools()
    elif not _forked or _forked_with != ("scipy.linalg" in sys.modules):
        with suppress(OSError, ImportError):  # a process may have no descriptor left to import with
            _forked, _forked_with = loaded(), "scipy.linalg" in sys.modules


def _after_fork() -> None:
    global _is_forked
    _is_forked = True
    for pool in _forked:
        pool.put(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def blas_name() -> str:
    """Name and version of the BLAS library, such as ``openblas 0.3.31``."""
    return ", ".join(pool.name() for pool in pools()) or "none found"
