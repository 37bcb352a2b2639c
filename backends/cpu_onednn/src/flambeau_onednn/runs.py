"""Lists of primitives: made once, kept, and run on the memory of NumPy arrays.

With flambeau-native a whole list is run by one call (`flambeau_numpy.extending.offered`), else each
of its primitives by one of `ctypes`.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Sequence
from ctypes import c_int64, c_void_p
from itertools import chain
from typing import Any

import numpy as np

from flambeau.plugin import make_lock
from flambeau_numpy.extending import BFLOAT16, empty
from flambeau_onednn.library import BF16, DIMS, F16, F32, IN_ORDER, Argument, Library, Unsupported
from flambeau_onednn.threads import get_num_threads

Array = np.ndarray[Any, Any]

# Roles of operands in a primitive, and the queries for the layouts that a descriptor chose.
SOURCE, WEIGHTS, BIAS, TARGET, SCRATCHPAD = 1, 33, 41, 17, 80
SOURCE_GRAD, WEIGHTS_GRAD, TARGET_GRAD = 129, 161, 145
_QUERY = {
    SOURCE: 129,
    SOURCE_GRAD: 130,
    WEIGHTS: 131,
    WEIGHTS_GRAD: 132,
    TARGET: 133,
    TARGET_GRAD: 134,
    SCRATCHPAD: 136,
}

LIMIT = 512
"""Plans kept. A network has a few for each of its layers and batch sizes."""

LITTLE = 1 << 15
"""Bytes that a plan keeps between its calls: making arrays of them takes longer than the work."""

_LINE = 64  # bytes: memories that share an array begin at multiples of it
_UINT8 = np.dtype(np.uint8)

_BYTES = {F32: 4, F16: 2, BF16: 2}
_TYPES = {np.dtype(np.float32): F32, np.dtype(np.float16): F16, BFLOAT16: BF16}


class Owned:
    """A handle of the library that is destroyed with this object."""

    __slots__ = ("_destroy", "handle")

    def __init__(self, library: Library, kind: str, handle: c_void_p) -> None:
        self.handle = handle
        self._destroy = library.destroyer(kind)

    def __del__(self) -> None:
        self._destroy(self.handle)


class Layout(Owned):
    """A layout with strides of ours.

    Attributes:
        reach: bytes from the first element that it has to the end of the last.
    """

    __slots__ = ("reach",)

    def __init__(self, library: Library, handle: c_void_p, reach: int) -> None:
        super().__init__(library, "memory_desc", handle)
        self.reach = reach


class Step:
    """A primitive with the layouts of its operands in the order in which they are given."""

    def __init__(self, library: Library, description: Owned, roles: Sequence[int]) -> None:
        self.roles = roles
        handle = library.made("primitive_create", description.handle)
        self.primitive = Owned(library, "primitive", handle)


class _Call:
    """What one thread at a time needs to run a plan: a stream, memories, and lists of operands."""

    def __init__(self, library: Library, plan: Listed) -> None:
        self.stream = Owned(
            library, "stream", library.made("stream_create", library.engine, IN_ORDER)
        )
        self.memories = [
            Owned(library, "memory", library.made("memory_create", d.handle, library.engine, None))
            for d in plan.layouts
        ]
        self.runs: list[tuple[c_void_p, c_void_p, int, Any]] = []
        for step, operands in plan.steps:
            listed = (Argument * len(operands))()
            for place, role, which in zip(listed, step.roles, operands, strict=True):
                place.role, place.memory = role, self.memories[which].handle.value
            run = (step.primitive.handle, self.stream.handle, len(operands), listed)
            self.runs.append(run)
        self.handles = [memory.handle for memory in self.memories]
        self.list = self._listed(library, plan)
        self.address = ctypes.addressof(self.list)
        self.kept: list[Array] = []
        if plan.is_little:
            for which, size in plan.between:
                self.kept.append(np.empty(size, np.uint8))
                library.set_data(self.handles[which], address(self.kept[-1]))

    def _listed(self, library: Library, plan: Listed) -> Any:
        """The numbers that `offered.primitives` of flambeau-numpy finds at an address."""
        arrays = [(self.handles[which].value, skipped) for which, skipped in plan.places]
        arrays += [(0, 0)] * (4 - len(arrays))
        between = [] if plan.is_little else plan.between
        places, start = [], 0
        for which, size in between:
            places.append((self.handles[which].value, start))
            start += -(-size // _LINE) * _LINE
        runs = [
            (primitive.value, stream.value, count, ctypes.addressof(listed))
            for primitive, stream, count, listed in self.runs
        ]
        counts = len(places), len(runs)
        numbers = [*library.runners, plan.threads, *chain(*arrays, counts, *places, *runs)]
        return (c_int64 * len(numbers))(*numbers)


class Listed:
    """Primitives that run one after the other, and the layouts of the memories they see.

    A subclass says which memories are the caller's, those `given` and the one `written`, and of
    each how many bytes lie before the first element that is used.
    """

    given: list[tuple[int, int]]
    written: tuple[int, int]

    def __init__(self, library: Library, dtype: np.dtype) -> None:
        self._library, self._type = library, _TYPES[dtype]
        self.threads = get_num_threads()
        self.layouts: list[Owned] = []  # one for each memory of a call
        self.between: list[tuple[int, int]] = []  # memories that are not the caller's: index, bytes
        self.steps: list[tuple[Step, list[int]]] = []
        self._spare: list[_Call] = []
        self._reaches: list[int] | None = None
        self._sizes: tuple[int, ...] | None = None  # bytes that a call's arrays must have

    def _strided(
        self, shape: tuple[int, ...], strides: Sequence[int], kind: int | None = None
    ) -> Layout:
        kind = kind or self._type
        handle = self._library.made(
            "memory_desc_create_with_strides", len(shape), DIMS(*shape), kind, DIMS(*strides)
        )
        last = sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
        return Layout(self._library, handle, (last + 1) * _BYTES[kind] if 0 not in shape else 0)

    def _rows(self, shape: tuple[int, ...]) -> Layout:
        """The layout of an array in C order."""
        return self._strided(shape, row_major(shape))

    def _chosen(self, described: Owned, role: int) -> Owned:
        handle = c_void_p(self._library.query(described.handle, _QUERY[role], 0))
        return Owned(self._library, "memory_desc", self._library.made("memory_desc_clone", handle))

    def _added(self, layout: Owned) -> int:
        self.layouts.append(layout)
        return len(self.layouts) - 1

    def _temporary(self, layout: Owned) -> int:
        which = self._added(layout)
        self.between.append((which, self._library.size_of(layout.handle)))
        return which

    def _step(self, described: Owned, roles: list[int], operands: list[int]) -> None:
        """Add the primitive of a descriptor, and the scratchpad that it needs."""
        scratchpad = self._chosen(described, SCRATCHPAD)
        if self._library.size_of(scratchpad.handle):
            operands.append(self._temporary(scratchpad))
            roles.append(SCRATCHPAD)
        self.steps.append((Step(self._library, described, roles), operands))

    @property
    def places(self) -> list[tuple[int, int]]:
        """The memories of the caller's arrays, the written one first."""
        return [self.written, *self.given]

    def _needed(self) -> list[int]:
        """How many bytes each of the caller's arrays must have, the written one first."""
        if self._reaches is None:
            held = [(self.layouts[which], skipped) for which, skipped in self.places]
            self._reaches = [s + made.reach for made, s in held if isinstance(made, Layout)]
        return self._reaches

    @property
    def is_little(self) -> bool:
        """Whether the memories between are kept from one call to the next."""
        return sum(size for _, size in self.between) <= LITTLE

    def _call(self) -> _Call:
        try:
            return self._spare.pop()
        except IndexError:  # the first call, or others run at this time
            return _Call(self._library, self)

    def run_at_once(self, run: Callable[..., object], out: Array, given: Sequence[Array]) -> None:
        """`run` by `offered.primitives` of `flambeau_numpy.extending`."""
        if (sizes := self._sizes) is None:
            between = 0 if self.is_little else sum(-(-n // _LINE) * _LINE for _, n in self.between)
            held = self._needed()
            sizes = self._sizes = (*held, *[0] * (4 - len(held)), between)
        call = self._call()
        scratch = empty((sizes[4],), _UINT8) if sizes[4] else None
        third = given[2] if len(given) > 2 else None
        run(out, given[0], given[1], third, scratch, call.address, *sizes)
        self._spare.append(call)

    def run(self, out: Array, given: Sequence[Array]) -> None:
        """Run the primitives on arrays of the layouts that the plan was made for."""
        library = self._library
        for array, needed in zip((out, *given), self._needed(), strict=True):
            # The library is told addresses alone.
            if array.nbytes < needed:
                raise RuntimeError(
                    f"a plan of oneDNN reaches {needed} bytes, and was given an array of shape "
                    f"{array.shape} with {array.nbytes}"
                )
        call = self._call()
        set_data, handles = library.set_data, call.handles
        which, skipped = self.written
        set_data(handles[which], address(out) + skipped)
        for (which, skipped), array in zip(self.given, given, strict=True):
            set_data(handles[which], address(array) + skipped)
        # Named, so that the memory lives until the last step has ended.
        held: list[Array] = []
        if not call.kept:
            for which, size in self.between:
                held.append(empty((size,), np.uint8))
                set_data(handles[which], address(held[-1]))
        for run in call.runs:
            if status := library.execute(*run):
                library.check(status, "dnnl_primitive_execute")
        del held
        self._spare.append(call)


def row_major(shape: tuple[int, ...]) -> list[int]:
    """The strides of an array in C order, in elements.

    >>> row_major((2, 3, 5))
    [15, 5, 1]
    """
    strides, step = [0] * len(shape), 1
    for i in range(len(shape) - 1, -1, -1):
        strides[i], step = step, step * shape[i]
    return strides


def address(array: Array) -> int:
    """Where the elements of an array begin."""
    return array.__array_interface__["data"][0]


class Plans:
    """The least recently used plans are dropped beyond `limit`.

    >>> plans = Plans(2)
    >>> [plans.find(key, lambda key=key: key.upper()) for key in "aba"], list(plans.kept)
    (['A', 'B', 'A'], ['b', 'a'])
    >>> plans.find("c", lambda: "C"), list(plans.kept)
    ('C', ['a', 'c'])
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: OrderedDict[Any, Any] = OrderedDict()
        self.lock = make_lock()

    def find(self, key: object, make: Callable[[], Any]) -> Any:
        """What `make` returned for `key`; None where it raised `Unsupported`."""
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key]
        try:
            made = make()
        except Unsupported:
            made = None
        with self.lock:
            self.kept[key] = made
            # Dropped ones are destroyed outside of the lock, and by whoever still runs them.
            dropped = [self.kept.popitem(last=False) for _ in range(len(self.kept) - self.limit)]
        del dropped
        return made
