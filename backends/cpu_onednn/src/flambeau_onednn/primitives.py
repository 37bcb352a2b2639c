"""Primitives of convolutions and products: made once per shape, kept, and run on NumPy arrays.

Of a convolution oneDNN chooses the layout of each operand (blocks of 8 or 16 channels, as a rule).
Arrays come and go in C order, so a plan has, beside the convolution, a reorder for each operand
whose chosen layout is another one. The memory between them comes from the caching allocator for
the time of a call, or if it is little stays with the plan.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_void_p
from typing import Any, NamedTuple

import numpy as np

from flambeau.plugin import make_lock
from flambeau_numpy.extending import BFLOAT16, empty
from flambeau_onednn.library import BF16, DIMS, F16, F32, IN_ORDER, Argument, Library, Unsupported

Array = np.ndarray[Any, Any]

LIMIT = 512
"""Plans kept. A network has a few for each of its layers and batch sizes."""

LITTLE = 1 << 15
"""Bytes that a plan keeps between its calls: making arrays of them takes longer than the work."""

TAG_ANY = 1
DIRECT = 1
IMPLEMENTATION = 8  # the query for the name of what a descriptor chose
FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS = 64, 160, 192

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
_ROLES = {  # operands read, and the one written
    FORWARD: (SOURCE, WEIGHTS, TARGET),
    BACKWARD_DATA: (TARGET_GRAD, WEIGHTS, SOURCE_GRAD),
    BACKWARD_WEIGHTS: (SOURCE, TARGET_GRAD, WEIGHTS_GRAD),
}
_TYPES = {np.dtype(np.float32): F32, np.dtype(np.float16): F16, BFLOAT16: BF16}

_FAST = (b"amx", b"fp16")
"""In the names of implementations of products that outrun those in float32.

AVX-512's instructions for bfloat16 do not; without them oneDNN emulates, and is four times slower.
"""


class _Owned:
    """A handle of the library that is destroyed with this object."""

    __slots__ = ("_destroy", "handle")

    def __init__(self, library: Library, kind: str, handle: c_void_p) -> None:
        self.handle = handle
        self._destroy = library.destroyer(kind)

    def __del__(self) -> None:
        self._destroy(self.handle)


class _Step:
    """A primitive with the layouts of its operands in the order in which they are given."""

    def __init__(self, library: Library, description: _Owned, roles: Sequence[int]) -> None:
        self.roles = roles
        handle = library.made("primitive_create", description.handle)
        self.primitive = _Owned(library, "primitive", handle)


class _Call:
    """What one thread at a time needs to run a plan: a stream, memories, and lists of operands."""

    def __init__(self, library: Library, plan: _Plan) -> None:
        self.stream = _Owned(
            library, "stream", library.made("stream_create", library.engine, IN_ORDER)
        )
        self.memories = [
            _Owned(library, "memory", library.made("memory_create", d.handle, library.engine, None))
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
        self.kept: list[Array] = []
        if sum(size for _, size in plan.between) <= LITTLE:
            for which, size in plan.between:
                self.kept.append(np.empty(size, np.uint8))
                library.set_data(self.handles[which], address(self.kept[-1]))


class _Plan:
    """Primitives that run one after the other, and the layouts of the memories they see.

    A subclass says which memories are the caller's, those `given` and the one `written`, and of
    each how many bytes lie before the first element that is used.
    """

    given: list[tuple[int, int]]
    written: tuple[int, int]

    def __init__(self, library: Library, dtype: np.dtype) -> None:
        self._library, self._type = library, _TYPES[dtype]
        self.layouts: list[_Owned] = []  # one for each memory of a call
        self.between: list[tuple[int, int]] = []  # memories that are not the caller's: index, bytes
        self.steps: list[tuple[_Step, list[int]]] = []
        self._spare: list[_Call] = []

    def _strided(
        self, shape: tuple[int, ...], strides: Sequence[int], kind: int | None = None
    ) -> _Owned:
        handle = self._library.made(
            "memory_desc_create_with_strides",
            *(len(shape), DIMS(*shape), kind or self._type, DIMS(*strides)),
        )
        return _Owned(self._library, "memory_desc", handle)

    def _rows(self, shape: tuple[int, ...]) -> _Owned:
        """The layout of an array in C order."""
        return self._strided(shape, _row_major(shape))

    def _chosen(self, described: _Owned, role: int) -> _Owned:
        handle = c_void_p(self._library.query(described.handle, _QUERY[role], 0))
        return _Owned(self._library, "memory_desc", self._library.made("memory_desc_clone", handle))

    def _added(self, layout: _Owned) -> int:
        self.layouts.append(layout)
        return len(self.layouts) - 1

    def _temporary(self, layout: _Owned) -> int:
        which = self._added(layout)
        self.between.append((which, self._library.size_of(layout.handle)))
        return which

    def _step(self, described: _Owned, roles: list[int], operands: list[int]) -> None:
        """Add the primitive of a descriptor, and the scratchpad that it needs."""
        scratchpad = self._chosen(described, SCRATCHPAD)
        if self._library.size_of(scratchpad.handle):
            operands.append(self._temporary(scratchpad))
            roles.append(SCRATCHPAD)
        self.steps.append((_Step(self._library, described, roles), operands))

    def run(self, out: Array, given: Sequence[Array]) -> None:
        """Run the primitives on arrays of the layouts that the plan was made for."""
        library = self._library
        try:
            call = self._spare.pop()
        except IndexError:  # the first call, or others run at this time
            call = _Call(library, self)
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
                raise RuntimeError(f"oneDNN {library.version}: execution failed, status {status}")
        del held
        self._spare.append(call)


class Taps(NamedTuple):
    """Of a window along one dimension the taps that are used, and the padding that they need."""

    first: int
    number: int
    before: int
    after: int


def used_taps(n: int, k: int, out: int, stride: int, padding: int, dilation: int) -> Taps:
    """The taps of `k` that meet one of `n` pixels in one of `out` windows; all, where none does.

    >>> used_taps(1, 3, 1, 1, 1, 1), used_taps(2, 3, 1, 2, 1, 1)
    (Taps(first=1, number=1, before=0, after=0), Taps(first=1, number=2, before=0, after=0))
    """
    everything = Taps(0, k, padding, padding)
    starts = range(-padding, (out - 1) * stride - padding + 1, stride)
    used = [j for j in range(k) if any(0 <= start + j * dilation < n for start in starts)]
    if not used or len(used) == k:
        return everything
    first, number = used[0], used[-1] - used[0] + 1
    before, reach = padding - first * dilation, (number - 1) * dilation + 1
    after = (out - 1) * stride + reach - n - before
    if before < 0 or after < 0:  # pixels that no window meets
        return everything
    return Taps(first, number, before, after)


class Convolution(_Plan):
    """A convolution of one kind for one geometry, or one of its gradients.

    Taps of the weight that meet nothing but padding, as all but one do over an image of one
    pixel, are left out: the primitive sees the others where they lie within the weight.

    Args:
        library: oneDNN.
        kind: ``FORWARD``, ``BACKWARD_DATA`` or ``BACKWARD_WEIGHTS``.
        image, weight: shapes of the input and the weight, of two or three spatial dimensions.
        bias: whether a bias is added.
        geometry: stride, padding and dilation per dimension, and groups.
        dtype: float32 or bfloat16.

    Raises:
        Unsupported: oneDNN has no implementation of it on this processor.
    """

    def __init__(
        self,
        library: Library,
        kind: int,
        image: tuple[int, ...],
        weight: tuple[int, ...],
        bias: bool,
        geometry: tuple[Any, ...],
        dtype: np.dtype,
    ) -> None:
        super().__init__(library, dtype)
        stride, padding, dilation, groups = geometry
        out = tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(image[2:], weight[2:], stride, padding, dilation, strict=True)
        )
        taps = [
            used_taps(*one)
            for one in zip(image[2:], weight[2:], out, stride, padding, dilation, strict=True)
        ]
        used = tuple([tap.number for tap in taps])
        self.clears = kind == BACKWARD_WEIGHTS and used != tuple(weight[2:])
        features = (groups, weight[0] // groups) if groups > 1 else weight[:1]
        filters = (*features, weight[1], *used)
        strides = _row_major((*features, *weight[1:]))
        skipped = sum(tap.first * n for tap, n in zip(taps, strides[-len(taps) :], strict=True))
        target = (image[0], weight[0], *out)
        shapes = {
            SOURCE: image,
            SOURCE_GRAD: image,
            WEIGHTS: filters,
            WEIGHTS_GRAD: filters,
            TARGET: target,
            TARGET_GRAD: target,
        }
        *read, written = _ROLES[kind]
        self.shape = {FORWARD: target, BACKWARD_DATA: image, BACKWARD_WEIGHTS: weight}[kind]
        self.takes = {
            FORWARD: (image, weight, *[(weight[0],)] * bias),
            BACKWARD_DATA: (target, weight),
            BACKWARD_WEIGHTS: (image, target),
        }[kind]

        shift = self._rows((weight[0],)) if bias else None
        window = (
            DIMS(*stride),
            DIMS(*(d - 1 for d in dilation)),  # oneDNN counts the pixels left out between taps
            DIMS(*(tap.before for tap in taps)),
            DIMS(*(tap.after for tap in taps)),
        )
        described = self._described(kind, image, filters, target, shift, window)
        given, places = [], []
        for role in (*read, written):
            if role in (WEIGHTS, WEIGHTS_GRAD):
                given.append(self._added(self._strided(filters, strides)))
                places.append((given[-1], skipped * dtype.itemsize))
            else:
                given.append(self._added(self._rows(shapes[role])))
                places.append((given[-1], 0))
        *self.given, self.written = places
        operands, roles = [], []
        last: tuple[_Step, list[int]] | None = None
        for role, which in zip((*read, written), given, strict=True):
            chosen = self._chosen(described, role)
            used = which
            if not library.equal(chosen.handle, self.layouts[which].handle):
                used = self._temporary(chosen)
                pair = (used, which) if role == written else (which, used)
                step = self._reorder(*pair), list(pair)
                if role == written:
                    last = step
                else:
                    self.steps.append(step)
            operands.append(used)
            roles.append(role)
        if shift is not None:
            operands.append(self._added(shift))
            self.given.append((operands[-1], 0))
            roles.append(BIAS)
        self._step(described, roles, operands)
        if last is not None:
            self.steps.append(last)

    def _free(self, shape: tuple[int, ...]) -> _Owned:
        """A layout that oneDNN may choose."""
        handle = self._library.made(
            "memory_desc_create_with_tag", len(shape), DIMS(*shape), self._type, TAG_ANY
        )
        return _Owned(self._library, "memory_desc", handle)

    def _described(
        self,
        kind: int,
        image: tuple[int, ...],
        filters: tuple[int, ...],
        target: tuple[int, ...],
        shift: _Owned | None,
        window: tuple[Any, ...],
    ) -> _Owned:
        library = self._library
        source, weights, result = self._free(image), self._free(filters), self._free(target)

        def made(name: str, *arguments: Any) -> _Owned:
            handle = library.made(f"convolution_{name}_primitive_desc_create", *arguments)
            return _Owned(library, "primitive_desc", handle)

        ends = source.handle, weights.handle
        forward = made(
            *("forward", library.engine, FORWARD, DIRECT, *ends),
            *(None if shift is None else shift.handle, result.handle, *window, library.attributes),
        )
        if kind == FORWARD:
            return forward
        name, inner = "backward_data", (*ends, result.handle)
        if kind == BACKWARD_WEIGHTS:
            name, inner = "backward_weights", (*ends, None, result.handle)
        hint = forward.handle
        return made(name, library.engine, DIRECT, *inner, *window, hint, library.attributes)

    def _reorder(self, source: int, target: int) -> _Step:
        library = self._library
        engine, ends = library.engine, (self.layouts[source].handle, self.layouts[target].handle)
        handle = library.made(
            "reorder_primitive_desc_create", ends[0], engine, ends[1], engine, None
        )
        description = _Owned(library, "primitive_desc", handle)
        return _Step(library, description, (SOURCE, TARGET))

    def __call__(self, *given: Array) -> Array:
        """The result for arrays in C order, in the order input, weight, bias (those that it has).

        The gradient with respect to the input takes (grad, weight), that of the weight (input,
        grad).
        """
        out = empty(self.shape, given[0].dtype)
        if self.clears:  # the gradient of taps that met nothing
            out.fill(0)
        self.run(out, given)
        return out


class Product(_Plan):
    """A product of matrices, or of batches of them; sums are float32, and rounded once.

    Args:
        library: oneDNN.
        left, right: shapes of as many dimensions; leading ones of 1 are broadcast.
        turned: of each, whether its matrices are stored column by column.
        bias: whether one is added, in float32, with an element for each column.
        dtype: bfloat16 or float16.

    Raises:
        Unsupported: this processor has no instructions that make it faster than float32.
    """

    def __init__(
        self,
        library: Library,
        left: tuple[int, ...],
        right: tuple[int, ...],
        turned: tuple[bool, bool],
        bias: bool,
        dtype: np.dtype,
    ) -> None:
        super().__init__(library, dtype)
        batch = (max(pair) for pair in zip(left[:-2], right[:-2], strict=True))
        a, b = self._matrices(left, turned[0]), self._matrices(right, turned[1])
        c = self._rows((*batch, left[-2], right[-1]))
        row = (1,) * (len(left) - 1) + right[-1:]
        shift = self._strided(row, _row_major(row), F32) if bias else None
        handle = library.made(
            "matmul_primitive_desc_create",
            *(library.engine, a.handle, b.handle, shift and shift.handle, c.handle),
            library.attributes,
        )
        described = _Owned(library, "primitive_desc", handle)
        name = c_char_p()
        library.call("primitive_desc_query", handle, IMPLEMENTATION, 0, byref(name))
        if not any(word in (name.value or b"") for word in _FAST):
            raise Unsupported("matmul")
        roles, layouts = [SOURCE, WEIGHTS], [a, b]
        if shift is not None:
            roles.append(BIAS)
            layouts.append(shift)
        operands = [self._added(layout) for layout in (*layouts, c)]
        *self.given, self.written = [(which, 0) for which in operands]
        self._step(described, [*roles, TARGET], operands)

    def _matrices(self, shape: tuple[int, ...], turned: bool) -> _Owned:
        if not turned:
            return self._rows(shape)
        *batch, rows, columns = shape
        *outer, down, right = _row_major((*batch, columns, rows))
        return self._strided(shape, (*outer, right, down))


def _row_major(shape: tuple[int, ...]) -> list[int]:
    """The strides of an array in C order, in elements.

    >>> _row_major((2, 3, 5))
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

    def find(self, key: Any, make: Callable[[], Any]) -> Any:
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
