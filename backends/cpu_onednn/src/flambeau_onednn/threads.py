"""How many threads oneDNN uses.

OpenMP keeps the number per calling thread, and PyTorch, or compiled kernels of another package, may
share the runtime. So it is set around each use and put back.
"""

from __future__ import annotations

import os

from flambeau_onednn.library import onednn

_count = 1
_alone = False


def get_num_threads() -> int:
    """The number of threads of a primitive made or run now; 1 in forked processes."""
    return 1 if _alone else _count


def set_num_threads(count: int) -> None:
    """Let primitives use `count` threads.

    Raises:
        ValueError: `count` is not positive.
    """
    global _count
    if count < 1:
        raise ValueError(f"the number of threads must be positive, got {count}")
    _count = count


class limited:  # noqa: N801 - used as a function
    """A block in which OpenMP has `count` threads in this thread; afterwards what it had before."""

    __slots__ = ("before", "count")

    def __init__(self, count: int) -> None:
        self.count = self.before = count

    def __enter__(self) -> None:
        library = onednn()
        if library is None or library.get_threads is None or library.set_threads is None:
            return
        self.before = library.get_threads()
        if self.before != self.count:
            library.set_threads(self.count)

    def __exit__(self, *exc: object) -> None:
        library = onednn()
        if self.before != self.count and library is not None and library.set_threads is not None:
            library.set_threads(self.before)


def stay_alone() -> None:
    """Use one thread from now on, whatever is asked for later.

    A forked process has OpenMP's records of threads, and not the threads: it would wait for them.
    """
    global _alone
    _alone = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=stay_alone)
