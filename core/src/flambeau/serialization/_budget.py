"""What one load may spend, and how what a file says is printed.

Each instruction of a file costs a constant.  What costs more (values that are copied, hashed,
compared or read again) is charged here, against limits that are proportional to the file's size, so
that no file takes the time or the memory of a much larger one.  What `save` writes spells out every
value that it copies, so that it stays far below the limits.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import FunctionType
from typing import Any

from flambeau._types.size import Size

STEPS_PER_BYTE = 32
STEPS = 1 << 24  # for any file: a quarter of a second of hashing
COPIES_PER_BYTE = 64
COPIES = 1 << 26
DEPTH = 1000  # of tuples in tuples: hashing them recurses in C, without a check
TEXT = 80  # characters of one value in an error
DIMENSIONS = 64
LARGEST = 1 << 62  # of a size, stride or offset

_PRIME = (1 << 61) - 1  # smaller integers have hashes of their own
_NESTING = (tuple, frozenset)
_ENDLESS = 1 << 62


class BudgetError(ValueError):
    """A file asks for more than its size justifies."""


class Budget:
    """What one load may still spend.

    Args:
        size: bytes of the file; None for no limits.
    """

    __slots__ = ("_chains", "_copies", "_steps", "_weights", "positions", "unchecked")

    def __init__(self, size: int | None) -> None:
        self._steps = _ENDLESS if size is None else STEPS + STEPS_PER_BYTE * size
        self._copies = _ENDLESS if size is None else COPIES + COPIES_PER_BYTE * size
        # Of tuples that hold tuples: depth, elements at all depths, and the tuple, to keep its id.
        self._weights: dict[int, tuple[int, int, Any]] = {}
        self._chains: dict[tuple[int, int], int] = {}
        # Sparse tensors that wait for their positions, and what is known of positions.
        self.unchecked: list[Any] = []
        self.positions: dict[Any, Any] = {}

    def step(self, count: int) -> None:
        """Charge for elementary steps: an element that is hashed, compared or read.

        Raises:
            BudgetError: there have been too many.
        """
        self._steps -= count
        if self._steps < 0:
            raise BudgetError("the file asks for more work than its size justifies")

    def copy(self, nbytes: int) -> None:
        """Charge for memory of values that the file does not spell out.

        Raises:
            BudgetError: there has been too much.
        """
        self._copies -= nbytes
        if self._copies < 0:
            raise BudgetError("the file asks for more memory than its size justifies")

    def weigh(self, value: Any) -> None:
        """Remember depth and weight of a new tuple or frozenset, which its parts have told.

        Raises:
            BudgetError: it is nested too deeply.
        """
        depth, weight = 0, len(value) + 1
        for part in value:
            if type(part) in _NESTING:
                known = self._weights.get(id(part))
                below, more = (1, len(part) + 1) if known is None else known[:2]
                depth, weight = max(depth, below), weight + more
        if depth >= DEPTH:
            raise BudgetError(f"tuples are nested more than {DEPTH} deep")
        if depth:
            self._weights[id(value)] = depth + 1, min(weight, _ENDLESS), value

    def key(self, container: object, key: Any) -> None:
        """Charge for `key` before it is hashed and looked up in a dict or set.

        Raises:
            BudgetError: there is too much to hash, or too many keys have the same hash.
        """
        kind = type(key)
        if kind is str or kind is bytes:  # their hashes are unpredictable
            if len(key) > 64:
                self.step(len(key) >> 6)
            return
        if kind in _NESTING or kind is Size:
            known = self._weights.get(id(key))
            weight = len(key) + 1 if known is None else known[1]
        elif kind is complex or (kind is int and not -_PRIME < key < _PRIME):
            weight = 1
        else:
            return
        self.step(weight)
        place = id(container), hash(key)
        before = self._chains.get(place, 0)
        self._chains[place] = before + 1
        if before:
            self.step(weight * before)


current: ContextVar[Budget] = ContextVar("flambeau_load_budget")


def shown(value: Any) -> str:
    """A value of a file in an error: short, and without following what it holds."""
    kind = type(value)
    if kind is str or kind is bytes:
        return repr(value) if len(value) <= TEXT else f"{value[:TEXT]!r}…"
    if kind is int:
        bits = value.bit_length()
        return str(value) if bits < 256 else f"an integer of {bits} bits"
    if value is None or kind in (bool, float, complex):
        return repr(value)
    if kind in (tuple, list, Size):
        parts = [shown(v) if type(v) not in (tuple, list, Size) else "…" for v in value[:8]]
        return f"({', '.join(parts)}{', …' if len(value) > 8 else ''})"
    if isinstance(value, (type, FunctionType)):
        return f"{value.__module__}.{value.__qualname__}"[:TEXT]
    return f"a {kind.__name__}"


def told(error: BaseException) -> str:
    """Class and arguments of an error whose arguments may be values of a file."""
    words = [a[:300] if type(a) is str else shown(a) for a in error.args]
    return f"{type(error).__name__}: {', '.join(words)}"
