"""The caching host allocator: memory of large results, kept for the next result of about that size.

The C library returns large blocks to the system when they are freed, and the system hands out
zeroed pages one fault at a time: a chain of operations on 1 MB arrays spends ten times as long on
page faults as on arithmetic. Blocks therefore go to a pool when the last array that sees them
dies, and beyond its bound to the system when memory is next asked for. All kernels of the device
share it, those of other packages too; programs see it as ``flambeau.cpu.memory_stats()``.

``FLAMBEAU_CPU_CACHE=0`` in the environment, or `set_enabled`, switches the pool off.
``FLAMBEAU_CPU_CACHE_MB`` bounds what it keeps (default: an eighth of the memory that the process
may use, at most 2048). Where the bound is reached, the sizes unused for longest go first.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flambeau.plugin import MemoryStatistics, OutOfMemoryError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

THRESHOLD = 1 << 17
"""Results of fewer bytes are small: one thread computes them, and this file has no pool of them."""

ALIGNMENT = 4096
"""Blocks begin at multiples of this, a page of memory.

Processors take a load for one that waits for a store whose address ends in the same twelve bits.
A result that lies a few cache lines further in its page than an operand costs up to 30 % of the
sum of both; where all begin with a page, none does.
"""

_MOST = (1 << 62) - 1  # bytes: more than any address tells apart, and NumPy still counts them

SWITCH, LIMIT_MB = "FLAMBEAU_CPU_CACHE", "FLAMBEAU_CPU_CACHE_MB"

_ndarray = np.ndarray
_plain = np.empty


class _Block(np.ndarray):
    """Memory of the pool; a type of its own, lest NumPy skips the lease when it sets a base."""

    __slots__ = ()


class _Lease(np.ndarray):
    """A block on loan, base of the arrays that use it.  Its end returns the block to the pool."""

    __slots__ = ()


class _Return(weakref.ref):  # type: ignore[type-arg]
    """What a lease leaves behind: its block, on its way back.

    A reference and no ``__del__``: an interrupt would be raised in there, where it is printed and
    forgotten.  What is called at the end of the lease is no code of Python's.
    """

    __slots__ = ("block",)
    __hash__ = object.__hash__  # arrays have none
    __eq__ = object.__eq__

    block: _Block | None


class Pool(Protocol):
    """What lends memory.  Its figures are bytes, but for the numbers of hits and misses."""

    limit: int
    least: int  # of fewer, arrays come from the C library, which is faster for them
    enabled: bool
    living: int
    cached: int
    most_living: int
    most_reserved: int
    hits: int
    misses: int

    def lease(self, size: int, /) -> Any:
        """The buffer of a block of at least `size` bytes, which comes back when it is let go."""
        ...

    def array(self, shape: tuple[int, ...], dtype: np.dtype, /) -> np.ndarray | None:
        """A row-major array of such a block, if that can be had sooner than by the buffer."""
        ...

    def settled(self) -> None:
        """Let the figures be those of now."""
        ...

    def empty(self) -> None:
        """Return all free blocks to the system."""
        ...

    def after_fork(self) -> None:
        """Begin anew in a child."""
        ...


class _Pool:
    """Free blocks by size, and figures of what is lent.

    Whoever has the turn may change it.  The turn is never waited for.  A lease may end anywhere,
    inside this code too, and in any thread: it leaves a note, which the next one who asks for
    memory settles, as does whoever finds the turn taken: what came back, or the number of bytes of
    a block that was made, negative if it was lost.

    An interrupt is raised between any call and what follows, so that what belongs together is done
    without a call in between.  A lock whose ``acquire`` is interrupted stays locked, and from then
    on nothing comes back: the turn is therefore the one element of a list, which ``del`` takes.
    """

    def __init__(self, limit: int, enabled: bool) -> None:
        self.limit = limit
        self.least = THRESHOLD
        self.enabled = enabled
        self.hits = self.misses = 0
        self.living = self.most_living = self.most_reserved = 0
        self.notes: deque[int | _Return] = deque()
        self.returned = self.notes.append
        self.lent: dict[_Return, None] = {}
        self._begin()

    def _begin(self) -> None:
        self.turn: list[None] = [None]
        # In the order in which sizes were last returned.
        self.free: OrderedDict[int, list[_Block]] = OrderedDict()
        self.cached = 0  # bytes in free blocks

    def lease(self, size: int) -> object:
        """A block of at least `size` bytes on loan."""
        size = _bucket(size)
        block = self.block(size)
        try:
            lease = block.view(_Lease)
            back = _Return(lease, self.returned)
        except BaseException:
            self.notes += (-size,)
            raise
        back.block = block
        self.lent[back] = None
        return lease

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """None: an array is made of the buffer."""

    def block(self, size: int) -> _Block:
        """A block of exactly `size` bytes, a free one if there is one."""
        try:
            del self.turn[0]
        except IndexError:
            pass
        else:
            dropped = None  # its memory goes back to the system after the turn
            try:
                if self.notes:
                    dropped = self._settle()
                if free := self.free.get(size):
                    self.cached -= size
                    self.hits += 1
                    self.living = living = self.living + size
                    if living > self.most_living:
                        self.most_living = living
                    found = free[-1]
                    del free[-1]
                    return found
            finally:
                self.turn = [None]
                del dropped
        made = _new_block(size)
        self.notes += (size,)
        return made

    def settled(self) -> None:
        """Let the figures include what happened while somebody had the turn."""
        try:
            del self.turn[0]
        except IndexError:
            return
        dropped = None
        try:
            dropped = self._settle()
        finally:
            self.turn = [None]
            del dropped

    def empty(self) -> None:
        """Return all free blocks to the system."""
        self.settled()
        # A finalizer that runs while this very thread has the turn must not wait forever.
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            made: OrderedDict[int, list[_Block]] = OrderedDict()
            try:
                del self.turn[0]
            except IndexError:
                time.sleep(0.001)
                continue
            freed, self.free, self.cached = self.free, made, 0
            self.turn = [None]
            del freed
            return

    def after_fork(self) -> None:
        """Begin anew: another thread of the parent may have had the turn, half-way through.

        Free blocks would be copied page by page as they are written, so that keeping them gains
        nothing.
        """
        self._begin()

    def _settle(self) -> list[_Block]:
        """Write the notes down; returns what is to be freed after the turn."""
        notes, free = self.notes, self.free
        while notes:
            note = notes[0]
            if not isinstance(note, _Return):
                if note > 0:
                    self.misses += 1
                self.living = living = self.living + note
                if living > self.most_living:
                    self.most_living = living
                if living + self.cached > self.most_reserved:
                    self.most_reserved = living + self.cached
                del notes[0]
                continue
            block = note.block
            if block is None:
                del notes[0]
                continue
            size = block.size
            if self.enabled:
                if size not in free:
                    free[size] = []
                free.move_to_end(size)  # this size is in use
                free[size] += [block]
                self.cached += size
            self.living -= size
            note.block = None
            del self.lent[note], notes[0]
        return self._excess()

    def _excess(self) -> list[_Block]:
        """The blocks beyond the limit, of the sizes unused for longest."""
        dropped = []
        while self.cached > self.limit:
            oldest = next(iter(self.free))
            if self.free[oldest]:
                self.cached -= oldest
                dropped.append(self.free[oldest].pop())
            else:
                del self.free[oldest]
        return dropped


def _new_block(size: int) -> _Block:
    try:
        raw = _plain(min(size, _MOST) + ALIGNMENT, np.uint8)
    except MemoryError:
        empty_cache()
        try:
            raw = _plain(min(size, _MOST) + ALIGNMENT, np.uint8)
        except MemoryError as error:
            full = OutOfMemoryError(f"cpu out of memory. Tried to allocate {size} bytes")
            full.size = size
            raise full from error
    begin = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[begin : begin + size].view(_Block)


def _default_limit() -> int:
    if stated := os.environ.get(LIMIT_MB):
        try:
            return int(stated) << 20
        except ValueError:
            raise ValueError(f"{LIMIT_MB} must be a number of megabytes, got {stated!r}") from None
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        memory = 8 << 30
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # a container's, versions 2 and 1
        try:
            memory = min(memory, int(Path("/sys/fs/cgroup", file).read_text()))
        except (OSError, ValueError):  # no container, or "max"
            continue
    return min(memory // 8, 2048 << 20)


_pool: Pool = _Pool(_default_limit(), os.environ.get(SWITCH, "1") != "0")
_leases: set[type] = {_Lease}


def offer_pool(
    pool: Callable[[int, bool, Callable[[int], _Block]], Pool], lease: type
) -> Pool | None:
    """Let a package lend the memory: by ``pool(limit, enabled, make)``, whose leases are `lease`.

    ``make(size)`` makes a block.  The first that offers lends for good, unless something was lent
    before: what is lent comes back to where it was taken from.

    Returns:
        the pool; None if it does not lend.
    """
    global _pool
    _pool.settled()
    if type(_pool) is _Pool and not _pool.misses:
        _leases.add(lease)
        _pool = pool(_pool.limit, _pool.enabled, _new_block)
        return _pool
    return None


def _after_fork() -> None:
    _pool.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
    if size < pool.least or not pool.enabled:
        return _plain(shape, dtype)
    made = pool.array(tuple(shape), dtype)
    return _ndarray(shape, dtype, pool.lease(size)) if made is None else made


def empty_like(a: np.ndarray) -> np.ndarray:
    """`empty` of the shape and dtype of `a`, which is found sooner."""
    size, pool = a.nbytes, _pool
    if size < pool.least or not pool.enabled:
        return _plain(a.shape, a.dtype)
    made = pool.array(a.shape, a.dtype)
    return _ndarray(a.shape, a.dtype, pool.lease(size)) if made is None else made


def zeros(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """An array of zeros, from the pool if it is large."""
    dtype = np.dtype(dtype)
    if prod(shape) * dtype.itemsize < THRESHOLD or not _pool.enabled:
        return np.zeros(shape, dtype)
    made = empty(shape, dtype)
    made.fill(0)
    return made


def is_pooled(array: np.ndarray) -> bool:
    """Whether `array` was made by `empty` from the pool (its base is nobody else's array)."""
    return type(array.base) in _leases


def empty_cache() -> None:
    """Return all free blocks to the system."""
    _pool.empty()


def is_enabled() -> bool:
    """Whether blocks are kept."""
    return _pool.enabled


def set_enabled(enabled: bool) -> None:
    """Keep blocks from now on, or return all of them to the system, now and when they come back."""
    _pool.enabled = enabled
    if not enabled:
        _pool.empty()


def statistics() -> MemoryStatistics:
    """Bytes in arrays of the pool and in free blocks, the most of both, and how often it served.

    >>> from flambeau_numpy.allocator import empty, statistics
    >>> before = statistics().allocated
    >>> kept = empty((1 << 20,), "uint8")
    >>> statistics().allocated - before
    1048576
    """
    pool = _pool
    pool.settled()
    return MemoryStatistics(
        allocated=pool.living,
        reserved=pool.living + pool.cached,
        max_allocated=pool.most_living,
        max_reserved=pool.most_reserved,
        limit=pool.limit if pool.enabled else 0,
        hits=pool.hits,
        misses=pool.misses,
    )


def reset_peak(*, allocated: bool, reserved: bool) -> None:
    """Let the largest figures start again from the present ones."""
    pool = _pool
    pool.settled()
    if allocated:
        pool.most_living = pool.living
    if reserved:
        pool.most_reserved = pool.living + pool.cached
