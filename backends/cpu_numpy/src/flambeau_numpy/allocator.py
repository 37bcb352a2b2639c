"""The caching host allocator: memory of large results, kept for the next result of about that size.

The C library returns large blocks to the system when they are freed, and the system hands out
zeroed pages one fault at a time: a chain of operations on 1 MB arrays spends ten times as long on
page faults as on arithmetic. Blocks therefore go to a pool when the last array that sees them
dies.

``FLAMBEAU_CPU_CACHE=0`` in the environment switches the pool off; ``FLAMBEAU_CPU_CACHE_MB`` bounds
it (default: an eighth of the machine's memory, at most 2048).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

THRESHOLD = 1 << 17
"""Results of fewer bytes than this come from the C library, which is fast for them."""

_ndarray = np.ndarray
_plain = np.empty


class _Block(np.ndarray):
    """Memory of the pool; a type of its own, lest NumPy skips the lease when it sets a base."""

    __slots__ = ()


class _Lease(np.ndarray):
    """A block on loan, base of the arrays that use it.  Its end returns the block to the pool."""

    __slots__ = ()

    def __del__(self) -> None:
        block = self.base
        if block is not None:
            _give_back(block)  # type: ignore[arg-type]


class _Pool:
    """Free blocks by size.

    The lock is never waited for.  A lease may end anywhere, inside this code too, and in any
    thread; whoever finds the lock taken allocates or frees in the ordinary way.
    """

    def __init__(self, limit: int, enabled: bool) -> None:
        self.limit = limit
        self.enabled = enabled
        self.free: dict[int, list[_Block]] = {}
        self.cached = 0  # bytes in free blocks
        self.hits = 0
        self.misses = 0
        self.lock = threading.Lock()


def _default_limit() -> int:
    if stated := os.environ.get("FLAMBEAU_CPU_CACHE_MB"):
        return int(stated) << 20
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        memory = 8 << 30
    return min(memory // 8, 2048 << 20)


_pool = _Pool(_default_limit(), os.environ.get("FLAMBEAU_CPU_CACHE", "1") != "0")


def _bucket(size: int) -> int:
    # Eight sizes per doubling: at most an eighth of a block is wasted.
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step


def empty(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """An uninitialised C-contiguous array, from the pool if it is large.

    >>> from flambeau_numpy.allocator import empty
    >>> empty((512, 512), "float32").shape
    (512, 512)
    """
    dtype = np.dtype(dtype)
    size = prod(shape) * dtype.itemsize
    pool = _pool
    if size < THRESHOLD or not pool.enabled:
        return _plain(shape, dtype)
    size = _bucket(size)
    block = None
    if pool.lock.acquire(False):
        try:
            if free := pool.free.get(size):
                block = free.pop()
                pool.cached -= size
                pool.hits += 1
            else:
                pool.misses += 1
        finally:
            pool.lock.release()
    if block is None:
        block = _Block(size, np.uint8)
    return _ndarray(shape, dtype, block.view(_Lease))


def zeros(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """An array of zeros, from the pool if it is large."""
    dtype = np.dtype(dtype)
    if prod(shape) * dtype.itemsize < THRESHOLD or not _pool.enabled:
        return np.zeros(shape, dtype)
    made = empty(shape, dtype)
    made.fill(0)
    return made


def _give_back(block: _Block) -> None:
    pool = _pool
    if pool is None or not pool.enabled or not pool.lock.acquire(False):
        return  # at interpreter exit module globals are None
    try:
        size = block.size
        if pool.cached + size <= pool.limit:
            pool.free.setdefault(size, []).append(block)
            pool.cached += size
    finally:
        pool.lock.release()


def is_pooled(array: np.ndarray) -> bool:
    """Whether `array` was made by `empty` from the pool (its base is nobody else's array)."""
    return type(array.base) is _Lease


def empty_cache() -> None:
    """Return all free blocks to the system."""
    with _pool.lock:
        dropped, _pool.free, _pool.cached = _pool.free, {}, 0
    del dropped


def memory_stats() -> dict[str, int]:
    """Bytes in free blocks, their bound, and how often the pool could and could not serve.

    >>> from flambeau_numpy.allocator import memory_stats
    >>> sorted(memory_stats())
    ['cached_bytes', 'hits', 'limit_bytes', 'misses']
    """
    pool = _pool
    return {
        "cached_bytes": pool.cached,
        "limit_bytes": pool.limit,
        "hits": pool.hits,
        "misses": pool.misses,
    }
