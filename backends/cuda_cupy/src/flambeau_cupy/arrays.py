"""What a runtime says about arrays, in terms of a `Layer`; `backend` adds the devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any
from weakref import WeakSet

import numpy as np

from flambeau import plugin
from flambeau_cupy.device.array_module import Array
from flambeau_cupy.device.philox import Philox
from flambeau_cupy.dtypes import BFLOAT16, FROM_NUMPY, TO_NUMPY
from flambeau_cupy.fusion.chains import Deferred
from flambeau_cupy.layer import Layer

Scalar = bool | int | float | complex


@dataclass
class Recording:
    """A graph, while it is recorded and afterwards.

    Attributes:
        index: its device.
        pool: where its memory comes from.
        stream: the stream that is recorded.
        native: what the runtime launches.
        places: per source of random numbers, the memory that says where its draws begin, and
            how many words a launch of the graph draws.
        kept: arrays that the graph reads and that nothing else may keep.
    """

    index: int
    pool: Any
    stream: Any
    native: Any = None
    places: list[tuple[Philox, Array, int]] = field(default_factory=list)
    kept: list[Array] = field(default_factory=list)


class ArrayBackend(plugin.Accelerator):
    """Arrays of one layer as native arrays; views alias.

    Args:
        layer: the array module.
    """

    strided = True
    stand_in = Deferred

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.array = layer.array
        self._engines: dict[int, WeakSet[Philox]] = {}
        self._recordings: dict[int, Recording] = {}

    def dtype_of(self, array: Array) -> plugin.dtype:
        """The flambeau dtype of `array`."""
        return FROM_NUMPY[array.dtype]

    def to_array(self, value: object) -> Array:
        """What a kernel returned in place of an array, as an array."""
        return value if type(value) is Deferred else self.layer.xp.asarray(value)

    def compile(self, op: str, decomposition: Callable[..., Any]) -> Callable[..., Any] | None:
        """A composite of elementwise ops is one kernel."""
        fusion = self.layer.fusion
        return None if fusion is None else fusion.compiled(op, decomposition)

    def deferred(
        self, index: int, ops: Mapping[str, Callable[..., Any]]
    ) -> tuple[Mapping[str, Callable[..., Any]], Callable[..., Any]] | None:
        """Elementwise ops of a gradient formula are one kernel."""
        fusion = self.layer.fusion
        return None if fusion is None else (fusion.formulas(ops), fusion.settle)

    def generator(self, index: int) -> Philox:
        """The source of random bits of a device."""
        made = Philox()
        self._engines.setdefault(index, WeakSet()).add(made)
        if (recording := self._recordings.get(index)) is not None:
            self._record_draws(recording, made)
        return made

    def _record_draws(self, recording: Recording, engine: Philox) -> None:
        base = self.layer.xp.empty((2,), np.uint64)
        recording.places.append((engine, base, 0))
        engine.begin_recording(base)

    def _begin(self, recording: Recording) -> None:
        """Let the kernels of a device be recorded, but for what the runtime does.

        Raises:
            RuntimeError: another thread or stream records on the device.
        """
        if recording.index in self._recordings:
            raise RuntimeError(
                f"another graph is being recorded on {self.device_type}:{recording.index}; a "
                "device records one at a time"
            )
        for engine in self._engines.get(recording.index, ()):
            self._record_draws(recording, engine)
        self._recordings[recording.index] = recording

    def _end(self, recording: Recording) -> None:
        """The end of `_begin`."""
        del self._recordings[recording.index]
        drawn = [(e, base, e.end_recording()) for e, base, _ in recording.places]
        recording.places = [place for place in drawn if place[2]]

    def _place_draws(self, recording: Recording) -> None:
        """Before each launch of a graph: its draws go on from where the generators are."""
        launch = self.layer.launch
        assert launch is not None
        for engine, base, words in recording.places:
            seed, offset, _ = engine.place(words)
            launch(np.dtype(np.float32), "philox_place", 1, 32, base, seed, offset)

    def checked_index(
        self,
        index: Array,
        size: int,
        wrap: bool,
        allowed: int | None,
        error: type[Exception],
        text: str,
    ) -> Array | None:
        """See `plugin.Accelerator.checked_index`."""
        faults = self.layer.faults
        return None if faults is None else faults.index(index, size, wrap, allowed, (error, text))

    def check_values(
        self, values: Array, low: float, high: float, error: type[Exception], text: str
    ) -> bool:
        """See `plugin.Accelerator.check_values`."""
        faults = self.layer.faults
        return faults is not None and faults.values(values, low, high, (error, text))

    def synchronize(self, index: int) -> None:
        """Nothing to wait for, but perhaps something to say."""
        self.look()

    def look(self) -> None:
        """After a wait: raise what the device found wrong."""
        if (faults := self.layer.faults) is not None:
            faults.look()

    def from_host(
        self, data: Any, shape: tuple[int, ...], dtype: plugin.dtype, index: int
    ) -> Array:
        """A copy of C-contiguous little-endian elements."""
        kind = TO_NUMPY[dtype]
        host = np.frombuffer(data, np.uint8, prod(shape) * kind.itemsize).view(kind).reshape(shape)
        return self.on_device(host)

    def on_device(self, host: np.ndarray) -> Array:
        """A copy of a NumPy array as native array."""
        return host.copy()

    def on_host(self, array: Array) -> np.ndarray:
        """A row-major NumPy array of the elements."""
        return np.ascontiguousarray(array)

    def to_host(self, array: Array) -> bytes:
        """The elements as C-contiguous little-endian bytes."""
        host = self.on_host(array)
        self.look()
        return host.tobytes()

    def scalar(self, value: Scalar, dtype: plugin.dtype) -> Array:
        """A 0-d array holding `value`."""
        return self.on_device(host_scalar(value, dtype))

    def item(self, array: Array) -> Scalar:
        """The only element as a Python number.

        Raises:
            ValueError: there is not exactly one element.
        """
        if array.size != 1:
            raise ValueError(f"item() needs one element, got {array.size} (shape {array.shape})")
        found = self.tolist(array.reshape(1))
        return found[0]

    def tolist(self, array: Array) -> Any:
        """The elements as nested lists of Python numbers."""
        host = self.on_host(array).reshape(array.shape)
        self.look()
        return (host.astype(np.float32) if host.dtype == BFLOAT16 else host).tolist()

    def strides(self, array: Array) -> tuple[int, ...]:
        """Steps between neighbours along each dimension, in elements."""
        size = array.itemsize
        return tuple([s // size for s in array.strides])

    def data_ptr(self, array: Array) -> int:
        """The address of the first element; 0 if there is none."""
        return self.layer.address(array) if array.size else 0

    def offset(self, array: Array, root: Array) -> int:
        """Where the first element of `array` lies in `root`, in elements from its first."""
        if array is root:
            return 0
        return (self.layer.address(array) - self.layer.address(root)) // array.itemsize

    def owns(self, array: Array) -> bool:
        """Whether no other array shares the memory of `array`."""
        return array.base is None

    def as_strided(
        self, root: Array, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
    ) -> Array:
        """A view of the memory of `root`; `stride` and `offset` in elements.

        Raises:
            ValueError: the view would reach beyond the memory of `root`.
        """
        size, last = root.itemsize, _last(root)
        reach = offset + sum(s * (n - 1) for s, n in zip(stride, shape, strict=True) if n)
        if prod(shape) and not 0 <= offset <= reach <= last:
            raise ValueError(
                f"as_strided: sizes {shape}, strides {stride} and offset {offset} reach beyond the "
                f"memory of an array of shape {root.shape}"
            )
        steps = tuple([s * size for s in stride])
        return self.layer.window(root, shape, steps, offset * size if prod(shape) else 0)

    def reinterpret(self, root: Array, dtype: plugin.dtype) -> Array:
        """The memory of `root`, from its first to its last element, as a vector of `dtype`."""
        kind = TO_NUMPY[dtype]
        flat = self.layer.window(root, (_last(root) + 1,), (root.itemsize,), 0)
        whole = flat.nbytes // kind.itemsize * kind.itemsize
        return flat.view(np.uint8)[:whole].view(kind)


def host_scalar(value: Scalar, dtype: plugin.dtype) -> np.ndarray:
    """A 0-d NumPy array of `value`, converted as C does: integers wrap, floats overflow."""
    kind = TO_NUMPY[dtype]
    if isinstance(value, complex) and kind.kind != "c":
        value = value.real
    if kind.kind in "iu":
        bits = 8 * kind.itemsize
        low = 0 if kind.kind == "u" else -(1 << (bits - 1))
        return np.array(((int(value) - low) & ((1 << bits) - 1)) + low, kind)  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        return np.array(value, np.complex128 if kind.kind == "c" else np.float64).astype(kind)


def _last(root: Array) -> int:
    """The last element of the memory of `root`, counted from its first; -1 if there is none."""
    if not root.size:
        return -1
    steps = zip(root.strides, root.shape, strict=True)
    return sum(s * (n - 1) for s, n in steps) // root.itemsize
