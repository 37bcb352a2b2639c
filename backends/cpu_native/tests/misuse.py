"""Calls every compiled function with integers that no kernel passes.

A process of its own: a read or a write beyond an array ends it, as does a call that takes long.
Each array is as long as the function demands, to the byte, between two pages without access, and
lies at the end of its memory or at its beginning.  What is called is told before the call, in the
file that is the first argument; the second is how many calls a function gets, and others are names
of functions.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
import re
import signal
import sys
from collections.abc import Iterator
from functools import cache

import numpy as np

from flambeau_native.extension import native

Array = np.ndarray
SMALL = (0, 1, 2, 3)
HOSTILE = (-1, 0, 1, 1 << 31, 1 << 62, -(1 << 31), (1 << 63) - 1, -(1 << 63))
CONTENTS = (0, 1, -1)
"""Numbers that arrays are filled with: as floats they are tiny or NaN, as places -1 is none."""
PAGE = mmap.PAGESIZE
MOST = 16 * PAGE
"""Bytes of an array; whatever demands more is refused, as nobody gives it."""
SECONDS = 5.0
REFUSALS = RuntimeError, IndexError
ADDRESSES = {"sgemm", "primitives"}
"""What takes almost nothing but addresses, and calls what lies there."""
DEMAND = re.compile(r"array (\d+) has \d+ bytes, where (\d+) are")


def guarded() -> Array:
    """Memory whose neighbours on both sides end the process that touches them."""
    memory = mmap.mmap(-1, MOST + 2 * PAGE)
    bytes_of = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for offset in (0, MOST + PAGE):
        if protect(ctypes.c_void_p(bytes_of.ctypes.data + offset), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return bytes_of[PAGE : PAGE + MOST]


def integers(kinds: str, count: int, choose: random.Random) -> Iterator[tuple[int, ...]]:
    """Each hostile number at each place beside small ones, all of few, and a choice of more."""
    places = kinds.count("i")
    every = sorted({*SMALL, *HOSTILE})
    if len(every) ** places <= count:
        yield from itertools.product(every, repeat=places)
        return
    for place, value, others in itertools.product(range(places), HOSTILE, (1, 2)):
        yield tuple(value if i == place else others for i in range(places))
    for _ in range(count - places * len(HOSTILE) * 2):
        share = choose.random() ** 2
        yield tuple(
            choose.choice(HOSTILE if choose.random() < share else SMALL) for _ in range(places)
        )


@cache
def functions() -> dict[str, str]:
    """The letters of the arguments by the names of functions."""
    texts = {name: getattr(native, name).__doc__ or "" for name in dir(native)}
    return {n: t for n, t in texts.items() if t and set(t) <= set("rwoWiaf") and n not in ADDRESSES}


class Caller:
    """Gives a function what it demands, and no byte more."""

    def __init__(self, journal: mmap.mmap):
        self.journal = journal
        self.memory = [guarded() for _ in range(12)]
        words, used = np.random.default_rng(0).integers(1 << 32, size=624, dtype=np.uint32), 624
        self.state = np.append(words, np.uint32(used))  # as MT19937 has it

    def call(self, name: str, numbers: tuple[int, ...], left: bool, fill: int, none: bool) -> str:
        """Call with arrays at one end of their memory; how it ended."""
        function, kinds = getattr(native, name), functions()[name]
        sizes = [0] * len(kinds)
        text = f"{name}{numbers} left={left} fill={fill} none={none}"
        while True:
            state = self.state.copy()
            values: list[object] = []
            arrays = iter(range(12))
            left_numbers = iter(numbers)
            for kind in kinds:
                if kind == "i":
                    values.append(next(left_numbers))
                elif kind == "a":
                    values.append(state.ctypes.data)
                elif kind == "f":
                    values.append(0.5)
                elif kind in "oW" and none:
                    next(arrays)
                    values.append(None)
                else:
                    values.append(self._array(i := next(arrays), sizes[i], left, fill))
            said = f"{text} sizes={sizes}\0".encode()
            self.journal[: len(said)] = said
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                function(*values)
            except REFUSALS as error:
                demand = DEMAND.search(str(error))
                if demand is not None and sizes[int(demand[1])] < int(demand[2]) <= MOST:
                    sizes[int(demand[1])] = int(demand[2])
                    continue
                if "must have one shape" in str(error) and len(set(sizes)) > 1:
                    sizes = [max(sizes)] * len(sizes)
                    continue
                return "refused"
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            return "done"

    def _array(self, number: int, size: int, left: bool, fill: int) -> Array:
        memory = self.memory[number]
        array = memory[:size] if left else memory[MOST - size :]
        whole = array[: size // 8 * 8]
        array[:] = 0
        whole.view(np.int64)[:] = fill
        return array


def main() -> None:
    """Make the calls, and print how many ended how."""
    with open(sys.argv[1], "r+b") as file:
        journal = mmap.mmap(file.fileno(), 0)
    count, chosen = int(sys.argv[2]), sys.argv[3:]
    caller, ends = Caller(journal), {"refused": 0, "done": 0}
    for name, kinds in functions().items():
        if chosen and name not in chosen:
            continue
        choose = random.Random(name)
        for numbers in integers(kinds, count, choose):
            left, none = choose.random() < 0.5, choose.random() < 0.5
            ends[caller.call(name, numbers, left, choose.choice(CONTENTS), none)] += 1
    print(ends["refused"], "refused,", ends["done"], "done")


if __name__ == "__main__":
    main()
