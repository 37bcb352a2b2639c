"""Stacks of recurrent layers by cuDNN's functions for them, which its frontend does not have.

They are called through ctypes: a pass over a sequence is one call or two.  cuDNN wants all weights
in one memory, in an order of its own: they are copied there for each pass.  What the forward pass
keeps for the gradient is the last result of the op ``recurrent_layers``.

Dropout between layers is the core's, which then asks for one layer at a time: cuDNN's would draw
from a generator of its own.
"""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np

from flambeau.plugin import numerics
from flambeau_cupy.device.array_module import Array
from flambeau_cupy.dtypes import BFLOAT16, FLOAT16, FLOATS
from flambeau_cupy.layer import Layer
from flambeau_cupy.libraries.planning import Library, Sizes

# Numbers of cudnn_graph.h and cudnn_adv.h.
FLOAT, DOUBLE, HALF, BFLOAT = 0, 1, 2, 9
DATA_TYPES = {
    np.dtype(np.float32): FLOAT,
    np.dtype(np.float64): DOUBLE,
    FLOAT16: HALF,
    BFLOAT16: BFLOAT,
}
DEFAULT_MATH, TENSOR_OP_MATH, FMA_MATH = 0, 1, 3
ALGO_STANDARD, LINEAR_INPUT = 0, 0
INFERENCE, TRAINING = 0, 1
MODES = {"relu": 0, "tanh": 1, "lstm": 2, "gru": 3}
NO_BIAS, DOUBLE_BIAS = 0, 2
UNPACKED, PACKED = 0, 1
PADDED_IO = 1
ADD = 0
NOT_SUPPORTED = 3000
PROJECTION = 8  # the number of an LSTM's projection among its matrices
BFLOAT16_SINCE = 91300
REPEATABLE = (":16:8", ":4096:2")  # of CUBLAS_WORKSPACE_CONFIG
GATES = {"relu": 1, "tanh": 1, "lstm": 4, "gru": 3}

_HANDLE, _POINTER, _OUT = c.c_void_p, c.c_void_p, c.c_void_p
_TEMPORARY = (c.c_size_t, _POINTER, c.c_size_t, _POINTER)  # workspace and what is kept
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cudnnCreateRNNDescriptor": (_OUT,),
    "cudnnDestroyRNNDescriptor": (_HANDLE,),
    "cudnnSetRNNDescriptor_v8": (
        *(_HANDLE, *(c.c_int,) * 8),
        *(*(c.c_int32,) * 4, _HANDLE, c.c_uint32),
    ),
    "cudnnCreateRNNDataDescriptor": (_OUT,),
    "cudnnDestroyRNNDataDescriptor": (_HANDLE,),
    "cudnnSetRNNDataDescriptor": (_HANDLE, *(c.c_int,) * 5, _POINTER, _POINTER),
    "cudnnCreateTensorDescriptor": (_OUT,),
    "cudnnDestroyTensorDescriptor": (_HANDLE,),
    "cudnnSetTensorNdDescriptor": (_HANDLE, c.c_int, c.c_int, _POINTER, _POINTER),
    "cudnnGetTensorNdDescriptor": (_HANDLE, c.c_int, _OUT, _OUT, _OUT, _OUT),
    "cudnnCreateDropoutDescriptor": (_OUT,),
    "cudnnDestroyDropoutDescriptor": (_HANDLE,),
    "cudnnSetDropoutDescriptor": (
        *(_HANDLE, _HANDLE, c.c_float),
        *(_POINTER, c.c_size_t, c.c_ulonglong),
    ),
    "cudnnGetRNNWeightSpaceSize": (_HANDLE, _HANDLE, _OUT),
    "cudnnGetRNNWeightParams": (
        *(_HANDLE, _HANDLE, c.c_int32, c.c_size_t, _POINTER, c.c_int32),
        *(_HANDLE, _OUT, _HANDLE, _OUT),
    ),
    "cudnnGetRNNTempSpaceSizes": (_HANDLE, _HANDLE, c.c_int, _HANDLE, _OUT, _OUT),
    "cudnnRNNForward": (
        *(_HANDLE, _HANDLE, c.c_int, _POINTER, _HANDLE, _POINTER, _HANDLE, _POINTER),
        *(_HANDLE, _POINTER, _POINTER, _HANDLE, _POINTER, _POINTER),
        *(c.c_size_t, _POINTER, *_TEMPORARY),
    ),
    "cudnnRNNBackwardData_v8": (
        *(_HANDLE, _HANDLE, _POINTER, _HANDLE, _POINTER, _POINTER, _HANDLE, _POINTER),
        *(_HANDLE, *(_POINTER,) * 3, _HANDLE, *(_POINTER,) * 3),
        *(c.c_size_t, _POINTER, *_TEMPORARY),
    ),
    "cudnnRNNBackwardWeights_v8": (
        *(_HANDLE, _HANDLE, c.c_int, _POINTER, _HANDLE, _POINTER, _HANDLE, _POINTER),
        *(_HANDLE, _POINTER, c.c_size_t, _POINTER, *_TEMPORARY),
    ),
}
"""The functions of cuDNN that are called here, and the types of their arguments."""


class Runtime(Protocol):
    """What stacks run on.

    Attributes:
        library: the functions of `FUNCTIONS`, which return a status.
        version: of cuDNN, as it counts.
    """

    library: Any
    version: int

    def handle(self) -> int:
        """The handle of the current device, set to the current stream."""
        ...

    def device(self) -> int:
        """The current device."""
        ...

    def capability(self) -> int:
        """The major number of the current device's generation."""
        ...


def declared(library: c.CDLL) -> c.CDLL:
    """A library of cuDNN whose functions check their arguments."""
    for name, kinds in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = kinds, c.c_int
    return library


class RefusedError(RuntimeError):
    """cuDNN does not support what it was asked for."""


def _ask(runtime: Runtime, name: str, *args: object) -> None:
    status = getattr(runtime.library, name)(*args)
    if status:
        kind = RefusedError if status == NOT_SUPPORTED else RuntimeError
        raise kind(f"{name} of cuDNN {runtime.version} failed with status {status}")


class _Descriptor:
    """A descriptor of cuDNN, which lives as long as this."""

    def __init__(self, runtime: Runtime, kind: str) -> None:
        made = c.c_void_p()
        _ask(runtime, f"cudnnCreate{kind}Descriptor", c.byref(made))
        self._destroy = getattr(runtime.library, f"cudnnDestroy{kind}Descriptor")
        self.handle = made.value

    def __del__(self) -> None:
        if (destroy := getattr(self, "_destroy", None)) is not None:
            destroy(self.handle)


def _numbers(values: Any) -> Any:
    return (c.c_int * len(values))(*values)


def _tensor(runtime: Runtime, kind: int, shape: Sizes) -> _Descriptor:
    made = _Descriptor(runtime, "Tensor")
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * n)
    sizes = _numbers(shape), _numbers(steps[::-1])
    _ask(runtime, "cudnnSetTensorNdDescriptor", made.handle, kind, len(shape), *sizes)
    return made


@dataclass(frozen=True)
class Signature:
    """What a stack of layers is.

    Attributes:
        mode: a key of `MODES`.
        input: numbers of a row of the input.
        hidden: numbers of a cell.
        output: numbers of a state, fewer than `hidden` if it is projected.
        padded: whether all sequences are of one length; others are packed.
    """

    mode: str
    input: int
    hidden: int
    output: int
    layers: int
    bidirectional: bool
    biased: bool
    dtype: np.dtype
    padded: bool
    tf32: bool
    device: int

    @property
    def directions(self) -> int:
        """1 or 2."""
        return 2 if self.bidirectional else 1

    @property
    def projected(self) -> bool:
        """Whether states are projected."""
        return self.output < self.hidden

    def shapes(self) -> list[Sizes]:
        """The shapes of the parameters, in the order of the op."""
        found: list[Sizes] = []
        rows = GATES[self.mode] * self.hidden
        for i in range(self.layers * self.directions):
            width = self.input if i < self.directions else self.output * self.directions
            found += [(rows, width), (rows, self.output)]
            found += [(rows,)] * 2 if self.biased else []
            found += [(self.output, self.hidden)] if self.projected else []
        return found


@dataclass(frozen=True)
class Piece:
    """Rows of a parameter and where they lie among cuDNN's weights, in elements."""

    param: int
    start: int
    stop: int
    offset: int


class Stack:
    """Layers as cuDNN knows them.

    Args:
        runtime: what they run on.
        layer: the array module.
        signature: what they are.

    Attributes:
        weights: bytes of the memory with all weights.
        pieces: where the parameters lie in it.

    Raises:
        RefusedError: cuDNN does not support it.
    """

    def __init__(self, runtime: Runtime, layer: Layer, signature: Signature) -> None:
        self.runtime, self.signature = runtime, signature
        s, kind = signature, DATA_TYPES[signature.dtype]
        halves = kind in (HALF, BFLOAT)
        exact = kind == FLOAT and not s.tf32
        self._dropout = _Descriptor(runtime, "Dropout")
        _ask(
            runtime,
            "cudnnSetDropoutDescriptor",
            *(self._dropout.handle, runtime.handle(), 0.0, None, 0, 0),
        )
        self._rnn = _Descriptor(runtime, "RNN")
        _ask(
            runtime,
            "cudnnSetRNNDescriptor_v8",
            *(self._rnn.handle, ALGO_STANDARD, MODES[s.mode]),
            *(DOUBLE_BIAS if s.biased else NO_BIAS, int(s.bidirectional), LINEAR_INPUT),
            *(kind, FLOAT if halves else kind),
            TENSOR_OP_MATH if halves else FMA_MATH if exact else DEFAULT_MATH,
            *(s.input, s.hidden, s.output, s.layers),
            *(self._dropout.handle, PADDED_IO if s.padded else 0),
        )
        size = c.c_size_t()
        _ask(
            runtime,
            "cudnnGetRNNWeightSpaceSize",
            *(runtime.handle(), self._rnn.handle, c.byref(size)),
        )
        self.weights = size.value
        room = layer.xp.empty((self.weights,), np.uint8)
        self.pieces = self._found(layer.address(room))

    @property
    def rnn(self) -> int | None:
        """The descriptor."""
        return self._rnn.handle

    def _found(self, base: int) -> list[Piece]:
        """Where the parameters lie, neighbours as one piece."""
        s, gates, size = self.signature, GATES[self.signature.mode], self.signature.hidden
        shapes, found = s.shapes(), []
        each = len(shapes) // (s.layers * s.directions)
        for layer in range(s.layers * s.directions):
            for matrix in range(2 * gates):
                first = layer * each + matrix // gates
                start = matrix % gates * size
                m, b = self._place(layer, matrix, base)
                found.append(self._piece(first, start, start + size, m, shapes))
                if s.biased:
                    found.append(self._piece(first + 2, start, start + size, b, shapes))
            if s.projected:
                m, _ = self._place(layer, PROJECTION, base)
                found.append(self._piece((layer + 1) * each - 1, 0, s.output, m, shapes))
        found.sort(key=lambda p: (p.param, p.start))
        merged: list[Piece] = []
        for piece in found:
            if merged and (last := merged[-1]).param == piece.param:
                row = shapes[piece.param][1] if len(shapes[piece.param]) > 1 else 1
                if last.offset + (last.stop - last.start) * row == piece.offset:
                    merged[-1] = Piece(last.param, last.start, piece.stop, last.offset)
                    continue
            merged.append(piece)
        return merged

    def _place(self, layer: int, matrix: int, base: int) -> tuple[Any, Any]:
        """Offset and number of elements of a matrix, and of its bias."""
        runtime, found = self.runtime, []
        descriptors = [_Descriptor(runtime, "Tensor") for _ in range(2)]
        at = c.c_void_p(), c.c_void_p()
        _ask(
            runtime,
            "cudnnGetRNNWeightParams",
            *(runtime.handle(), self.rnn, layer, self.weights, base, matrix),
            *(descriptors[0].handle, c.byref(at[0]), descriptors[1].handle, c.byref(at[1])),
        )
        for descriptor, address in zip(descriptors, at, strict=True):
            if address.value is None:
                found.append(None)
                continue
            kind, rank, sizes, steps = c.c_int(), c.c_int(), (c.c_int * 3)(), (c.c_int * 3)()
            _ask(
                runtime,
                "cudnnGetTensorNdDescriptor",
                *(descriptor.handle, 3, c.byref(kind), c.byref(rank), sizes, steps),
            )
            offset = (address.value - base) // self.signature.dtype.itemsize
            found.append((offset, sizes[0] * sizes[1] * sizes[2]))
        return found[0], found[1]

    def _piece(self, param: int, start: int, stop: int, place: Any, shapes: list[Sizes]) -> Piece:
        row = shapes[param][1] if len(shapes[param]) > 1 else 1
        if place is None or place[1] != (stop - start) * row:
            raise RefusedError(
                f"cuDNN {self.runtime.version} keeps weights of {self.signature} in another form: "
                f"{place} for {stop - start} rows of {row}"
            )
        return Piece(param, start, stop, place[0])


class Batch:
    """The lengths of sequences that a stack runs over, and the descriptors for them.

    Attributes:
        workspace: bytes that a pass needs beside its arrays.
        reserve: bytes that the forward pass keeps for the gradient.
    """

    def __init__(self, stack: Stack, sizes: Sizes, saves: bool) -> None:
        runtime, s = stack.runtime, stack.signature
        kind, self.mode = DATA_TYPES[s.dtype], TRAINING if saves else INFERENCE
        lengths = [0] * sizes[0]
        for size in sizes:
            for i in range(size):
                lengths[i] += 1
        self._data = []
        for width in (s.input, s.output * s.directions):
            made = _Descriptor(runtime, "RNNData")
            _ask(
                runtime,
                "cudnnSetRNNDataDescriptor",
                *(made.handle, kind, UNPACKED if s.padded else PACKED),
                *(len(sizes), sizes[0], width, _numbers(lengths), None),
            )
            self._data.append(made)
        states = s.layers * s.directions, sizes[0]
        self._states = [_tensor(runtime, kind, (*states, n)) for n in (s.output, s.hidden)]
        self.input, self.output = (d.handle for d in self._data)
        self.hidden, self.cell = (d.handle for d in self._states)
        workspace, reserve = c.c_size_t(), c.c_size_t()
        _ask(
            runtime,
            "cudnnGetRNNTempSpaceSizes",
            *(runtime.handle(), stack.rnn, self.mode, self.input),
            *(c.byref(workspace), c.byref(reserve)),
        )
        self.workspace, self.reserve = workspace.value, reserve.value if saves else 0


class Recurrences(Library[Runtime]):
    """The stacks of recurrent layers of a device type.

    Attributes:
        stacks: by signature; None where cuDNN has none.
    """

    ops: ClassVar = {"recurrent_layers": "forward", "recurrent_layers_backward": "backward"}

    def __init__(self, layer: Layer, load: Callable[[], Runtime]) -> None:
        super().__init__(layer, load)
        self.stacks: dict[Signature, Stack | None] = {}
        self._batch = lru_cache(256)(self._made_batch)

    def takes(
        self,
        x: Array,
        hx: Array,
        cx: Array | None,
        params: tuple[Array, ...],
        mode: str,
        layers: int,
        bidirectional: bool,
        sizes: Sizes,
        saves: bool,
    ) -> bool:
        """Whether cuDNN has these layers for these arrays."""
        settings = mode, layers, bidirectional, sizes
        return self._stack(x, hx, cx, params, *settings) is not None

    def forward(
        self,
        x: Array,
        hx: Array,
        cx: Array | None,
        params: tuple[Array, ...],
        mode: str,
        layers: int,
        bidirectional: bool,
        sizes: Sizes,
        saves: bool,
    ) -> tuple[Array, Array, Array, Array] | None:
        """The results of ``recurrent_layers``, or None where it must decompose."""
        stack = self._stack(x, hx, cx, params, mode, layers, bidirectional, sizes)
        if stack is None:
            return None
        batch = self._batch(stack, sizes, saves)
        return self._run(stack, batch, x, hx, cx, self._packed(stack, params))

    def _run(
        self,
        stack: Stack,
        batch: Batch,
        x: Array,
        hx: Array,
        cx: Array | None,
        weights: Array,
    ) -> tuple[Array, Array, Array, Array]:
        xp, at, s, runtime = self.layer.xp, self.layer.address, stack.signature, stack.runtime
        output = xp.empty((x.shape[0], s.output * s.directions), s.dtype)
        hy, cy = xp.empty(hx.shape, s.dtype), xp.empty(() if cx is None else cx.shape, s.dtype)
        kept = xp.empty((batch.reserve,), np.uint8)
        _room, workspace = self.room(batch.workspace)
        x, hx, cx = (None if a is None else self.layer.dense(a) for a in (x, hx, cx))
        cells = (None, None, None) if cx is None else (batch.cell, at(cx), at(cy))
        _ask(
            runtime,
            "cudnnRNNForward",
            *(runtime.handle(), stack.rnn, batch.mode, None),
            *(batch.input, at(x), batch.output, at(output)),
            *(batch.hidden, at(hx), at(hy), *cells),
            *(stack.weights, at(weights), batch.workspace, workspace),
            *(batch.reserve, at(kept) if batch.reserve else None),
        )
        return output, hy, xp.empty((0,), s.dtype) if cx is None else cy, kept

    def backward(
        self,
        over_output: Array | None,
        over_hidden: Array | None,
        over_cell: Array | None,
        x: Array,
        hx: Array,
        cx: Array | None,
        params: tuple[Array, ...],
        output: Array,
        reserve: Array,
        mode: str,
        layers: int,
        bidirectional: bool,
        sizes: Sizes,
    ) -> tuple[Array, Array, Array, Array] | None:
        """The gradients of ``recurrent_layers``, or None where it must decompose."""
        stack = self._stack(x, hx, cx, tuple(params), mode, layers, bidirectional, sizes)
        if stack is None:
            return None
        batch = self._batch(stack, sizes, True)
        if reserve.size not in (0, batch.reserve):  # another device's, or another version's
            return None
        xp, at, s, runtime = self.layer.xp, self.layer.address, stack.signature, stack.runtime
        weights = self._packed(stack, params)
        if reserve.size:
            kept = reserve.copy()  # the pass writes to it, and there may be another one
        else:  # the forward pass did not know that a gradient would be wanted
            output, _, _, kept = self._run(stack, batch, x, hx, cx, weights)
        _room, workspace = self.room(batch.workspace)
        dense = self.layer.dense
        if over_output is None:
            over_output = xp.zeros(output.shape, s.dtype)
        given = [
            None if a is None else dense(a)
            for a in (output, over_output, x, hx, over_hidden, cx, over_cell)
        ]
        y, dy, x, hx, dhy, cx, dcy = given
        dx, dhx = xp.empty(x.shape, s.dtype), xp.empty(hx.shape, s.dtype)
        dcx = xp.empty((0,) if cx is None else cx.shape, s.dtype)
        none = (None,) * 4
        cells = (
            none if cx is None else (batch.cell, at(cx), None if dcy is None else at(dcy), at(dcx))
        )
        temporary = batch.workspace, workspace, batch.reserve, at(kept)
        _ask(
            runtime,
            "cudnnRNNBackwardData_v8",
            *(runtime.handle(), stack.rnn, None, batch.output, at(y), at(dy)),
            *(batch.input, at(dx)),
            *(batch.hidden, at(hx), None if dhy is None else at(dhy), at(dhx), *cells),
            *(stack.weights, at(weights), *temporary),
        )
        over = xp.zeros((stack.weights // s.dtype.itemsize,), s.dtype)
        _ask(
            runtime,
            "cudnnRNNBackwardWeights_v8",
            *(runtime.handle(), stack.rnn, ADD, None, batch.input, at(x)),
            *(batch.hidden, at(hx), batch.output, at(y)),
            *(stack.weights, at(over), *temporary),
        )
        return dx, dhx, dcx, self._unpacked(stack, over, params)

    def _packed(self, stack: Stack, params: tuple[Array, ...]) -> Array:
        """All weights in cuDNN's order."""
        kind = stack.signature.dtype
        space = self.layer.xp.zeros((stack.weights // kind.itemsize,), kind)
        for piece in stack.pieces:
            rows = params[piece.param][piece.start : piece.stop]
            space[piece.offset : piece.offset + rows.size].reshape(rows.shape)[...] = rows
        return space

    def _unpacked(self, stack: Stack, space: Array, params: tuple[Array, ...]) -> Array:
        """The parameters one after another, from cuDNN's order."""
        starts = np.concatenate([[0], np.cumsum([p.size for p in params])]).tolist()
        flat = self.layer.xp.empty((starts[-1],), space.dtype)
        for piece in stack.pieces:
            shape = params[piece.param].shape
            row = shape[1] if len(shape) > 1 else 1
            n = (piece.stop - piece.start) * row
            start = starts[piece.param] + piece.start * row
            flat[start : start + n] = space[piece.offset : piece.offset + n]
        return flat

    def _stack(
        self,
        x: Array,
        hx: Array,
        cx: Array | None,
        params: tuple[Array, ...],
        mode: str,
        layers: int,
        bidirectional: bool,
        sizes: Sizes,
    ) -> Stack | None:
        """The stack for these arguments; None where cuDNN has none."""
        runtime = self.runtime() if numerics.enabled else None
        if runtime is None or x.dtype not in FLOATS:
            return None
        if numerics.deterministic and os.environ.get("CUBLAS_WORKSPACE_CONFIG") not in REPEATABLE:
            return None
        if x.dtype == BFLOAT16 and (runtime.version < BFLOAT16_SINCE or runtime.capability() < 8):
            return None
        each = len(params) // (layers * (2 if bidirectional else 1))
        if x.ndim != 2 or hx.ndim != 3 or each not in (2, 3, 4, 5):
            return None
        signature = Signature(
            mode=mode,
            input=x.shape[1],
            hidden=hx.shape[2] if cx is None else cx.shape[-1],
            output=hx.shape[2],
            layers=layers,
            bidirectional=bidirectional,
            biased=each >= 4,
            dtype=x.dtype,
            padded=sizes[:1] == sizes[-1:],
            tf32=x.dtype == np.float32 and numerics.convolution_tf32,
            device=runtime.device(),
        )
        if not _fits(signature, x, hx, cx, params, sizes, each % 2 == 1):
            return None
        try:
            return self.stacks[signature]
        except KeyError:
            try:
                stack = Stack(runtime, self.layer, signature)
            except RefusedError:
                stack = None
            self.stacks[signature] = stack
            return stack

    def _made_batch(self, stack: Stack, sizes: Sizes, saves: bool) -> Batch:
        return Batch(stack, sizes, saves)


def _fits(
    s: Signature,
    x: Array,
    hx: Array,
    cx: Array | None,
    params: tuple[Array, ...],
    sizes: Sizes,
    projected: bool,
) -> bool:
    """Whether arrays are those of the op, and nothing is empty."""
    if not sizes or not sizes[-1] or not s.input or not s.output or sum(sizes) != x.shape[0]:
        return False
    if s.projected != projected or (projected and s.mode != "lstm"):
        return False
    if (cx is None) == (s.mode == "lstm"):
        return False
    states = s.layers * s.directions, sizes[0]
    shapes = [(hx, (*states, s.output)), *zip(params, s.shapes(), strict=False)]
    if cx is not None:
        shapes.append((cx, (*states, s.hidden)))
    if len(params) != len(s.shapes()):
        return False
    return all(a.shape == shape and a.dtype == s.dtype for a, shape in shapes)
