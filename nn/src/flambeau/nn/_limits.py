"""Requests that no memory can hold, refused before the work begins."""

from __future__ import annotations

import flambeau as fb

_MANY = 1 << 14
_LEAST = 4096  # bytes that a module takes without its parameters


def need_room(count: int, size: int) -> None:
    """Raise unless there is memory for `count` modules of `size` bytes of parameters each.

    Raises:
        RuntimeError: there is not; a MemoryError too.
    """
    if count > _MANY:
        fb.empty((count, max(size, _LEAST)), dtype=fb.uint8, device="cpu")
