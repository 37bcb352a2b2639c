"""Primitives of convolutions and products: made once per shape, kept, and run on NumPy arrays.

Of a convolution oneDNN chooses the layout of each operand (blocks of 8 or 16 channels, as a rule).
Arrays come and go in C order, so a plan has, beside the convolution, a reorder for each operand
whose chosen layout is another one. The memory between them comes from the caching allocator for
the time of a call, or if it is little stays with the plan.
"""

from __future__ import annotations

from ctypes import byref, c_char_p
from typing import Any, NamedTuple

import numpy as np

from flambeau_numpy.casts import FLOAT32
from flambeau_numpy.extending import empty, offered
from flambeau_onednn.library import DIMS, F32, Library, Unsupported
from flambeau_onednn.runs import (
    BIAS,
    SOURCE,
    SOURCE_GRAD,
    TARGET,
    TARGET_GRAD,
    WEIGHTS,
    WEIGHTS_GRAD,
    Array,
    Listed,
    Owned,
    Step,
    row_major,
)
from flambeau_onednn.threads import limited

TAG_ANY = 1
DIRECT = 1
IMPLEMENTATION = 8  # the query for the name of what a descriptor chose
FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS = 64, 160, 192

_ROLES = {  # operands read, and the one written
    FORWARD: (SOURCE, WEIGHTS, TARGET),
    BACKWARD_DATA: (TARGET_GRAD, WEIGHTS, SOURCE_GRAD),
    BACKWARD_WEIGHTS: (SOURCE, TARGET_GRAD, WEIGHTS_GRAD),
}
_FAST = (b"amx", b"fp16")
"""In the names of implementations of products that outrun those in float32.

AVX-512's instructions for bfloat16 do not; without them oneDNN emulates, and is four times slower.
"""


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
    # Tap j of window w meets pixel w·stride - padding + j·dilation: the first and last such w.
    offsets = [padding - j * dilation for j in range(k)]
    used = [
        j
        for j, offset in enumerate(offsets)
        if max(0, -(-offset // stride)) <= min(out - 1, (n - 1 + offset) // stride)
    ]
    if not used or len(used) == k:
        return everything
    first, number = used[0], used[-1] - used[0] + 1
    before, reach = padding - first * dilation, (number - 1) * dilation + 1
    after = (out - 1) * stride + reach - n - before
    if before < 0 or after < 0:  # pixels that no window meets
        return everything
    return Taps(first, number, before, after)


class Convolution(Listed):
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
        strides = row_major((*features, *weight[1:]))
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
        last: tuple[Step, list[int]] | None = None
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

    def _free(self, shape: tuple[int, ...]) -> Owned:
        """A layout that oneDNN may choose."""
        handle = self._library.made(
            "memory_desc_create_with_tag", len(shape), DIMS(*shape), self._type, TAG_ANY
        )
        return Owned(self._library, "memory_desc", handle)

    def _described(
        self,
        kind: int,
        image: tuple[int, ...],
        filters: tuple[int, ...],
        target: tuple[int, ...],
        shift: Owned | None,
        window: tuple[Any, ...],
    ) -> Owned:
        library = self._library
        source, weights, result = self._free(image), self._free(filters), self._free(target)

        def made(name: str, *arguments: object) -> Owned:
            handle = library.made(f"convolution_{name}_primitive_desc_create", *arguments)
            return Owned(library, "primitive_desc", handle)

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

    def _reorder(self, source: int, target: int) -> Step:
        library = self._library
        engine, ends = library.engine, (self.layouts[source].handle, self.layouts[target].handle)
        handle = library.made(
            "reorder_primitive_desc_create", ends[0], engine, ends[1], engine, None
        )
        description = Owned(library, "primitive_desc", handle)
        return Step(library, description, (SOURCE, TARGET))

    def __call__(self, *given: Array) -> Array:
        """The result for arrays in C order, in the order input, weight, bias (those that it has).

        The gradient with respect to the input takes (grad, weight), that of the weight (input,
        grad).
        """
        out = empty(self.shape, given[0].dtype)
        if self.clears:  # the gradient of taps that met nothing
            out.fill(0)
        if out.dtype is FLOAT32 and (run := offered.primitives) is not None:
            self.run_at_once(run, out, given)
        else:
            with limited(self.threads):
                self.run(out, given)
        return out


class Product(Listed):
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
        shift = self._strided(row, row_major(row), F32) if bias else None
        handle = library.made(
            "matmul_primitive_desc_create",
            *(library.engine, a.handle, b.handle, shift and shift.handle, c.handle),
            library.attributes,
        )
        described = Owned(library, "primitive_desc", handle)
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

    def _matrices(self, shape: tuple[int, ...], turned: bool) -> Owned:
        if not turned:
            return self._rows(shape)
        *batch, rows, columns = shape
        *outer, down, right = row_major((*batch, columns, rows))
        return self._strided(shape, (*outer, right, down))
