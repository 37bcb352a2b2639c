"""The runtime of device type ``cpu``: arrays are `numpy.ndarray`, memory is the host's."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from flambeau import plugin
from flambeau_numpy import allocator, indices
from flambeau_numpy.casts import recast
from flambeau_numpy.dtypes import FLOAT8, FOREIGN, FROM_NUMPY, TO_NUMPY, to_float8
from flambeau_numpy.generator import MT19937
from flambeau_numpy.kernels.creation import fill

Array = np.ndarray[Any, Any]

_SWAPPED = sys.byteorder == "big"  # the contract's host bytes are little-endian
_NUMBERS = (bool, int, float, complex)
Scalar = bool | int | float | complex


class NumpyBackend(plugin.Backend):
    """Arrays of the CPU as NumPy arrays; views alias, and kernels may write in place.

    >>> from flambeau_numpy.backend import NumpyBackend
    >>> cpu = NumpyBackend()
    >>> cpu.tolist(cpu.from_numpy(__import__("numpy").arange(3)))
    [0, 1, 2]
    """

    device_type = "cpu"
    array = np.ndarray
    strided = True
    indexed = False

    # Called after every kernel that returned a number: no Python frame.
    to_array: Callable[[Any], Array] = staticmethod(np.asarray)  # type: ignore[assignment]

    def dtype_of(self, array: Array) -> plugin.dtype:
        """The flambeau dtype of `array`."""
        return FROM_NUMPY[array.dtype]

    def from_host(
        self, data: Any, shape: tuple[int, ...], dtype: plugin.dtype, index: int
    ) -> Array:
        """An array with a copy of `data`: C-contiguous, little-endian elements."""
        kind = TO_NUMPY[dtype]
        if (small := prod(shape)) and small * kind.itemsize < allocator.THRESHOLD and not _SWAPPED:
            flat = np.frombuffer(data, kind, small)
            return (flat if len(shape) == 1 else flat.reshape(shape)).copy()
        made = allocator.empty(shape, kind)
        made.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8, made.nbytes)
        return made.byteswap() if _SWAPPED else made

    def to_host(self, array: Array) -> bytes:
        """The elements of `array` as C-contiguous little-endian bytes."""
        return (array.byteswap() if _SWAPPED else array).tobytes()

    def generator(self, index: int) -> MT19937:
        """The source of random bits, which draws whole arrays at once."""
        return MT19937()

    def memory_statistics(self, index: int) -> plugin.MemoryStatistics:
        """The figures of the allocator, which all kernels of the device share."""
        return allocator.statistics()

    def reset_peak(self, index: int, *, allocated: bool, reserved: bool) -> None:
        """Let the largest figures start again from the present ones."""
        allocator.reset_peak(allocated=allocated, reserved=reserved)

    def empty_cache(self) -> None:
        """Return memory that no array uses to the system."""
        allocator.empty_cache()

    def caches_memory(self, enabled: bool | None = None) -> bool:
        """Whether memory of dead arrays is kept for later ones; `enabled` switches it first."""
        if enabled is not None:
            allocator.set_enabled(enabled)
        return allocator.is_enabled()

    def compile_plan(self, plan: object) -> Callable[..., tuple[Any, ...]] | None:
        """What a package that accelerates this device makes of a plan."""
        from flambeau_numpy.plans import compile_plan

        return compile_plan(plan)

    def lies_within(self, index: Array, size: int) -> bool | None:
        """Whether all of an int64 array are in [0, size); None where no package looks."""
        look = indices.lies_within
        return None if look is None else look(index, size)

    def get_num_threads(self) -> int:
        """How many threads kernels use at most."""
        from flambeau_numpy.threads import get_num_threads

        return get_num_threads()

    def set_num_threads(self, count: int) -> None:
        """Let kernels of all providers use at most `count` threads."""
        from flambeau_numpy.threads import set_num_threads

        set_num_threads(count)

    def scalar(self, value: Scalar, dtype: plugin.dtype) -> Array:
        """A 0-d array holding `value`."""
        made = np.empty((), TO_NUMPY[dtype])
        fill(made, value)
        return made

    def item(self, array: Array) -> Scalar:
        """The only element of `array` as a Python number.

        Raises:
            ValueError: `array` does not have exactly one element.
        """
        if array.size != 1:
            raise ValueError(f"item() needs one element, got {array.size} (shape {array.shape})")
        value = array.item()
        return value if type(value) in _NUMBERS else float(value)

    def tolist(self, array: Array) -> Any:
        """The elements of `array` as nested lists of Python numbers; a number if it is 0-d."""
        return (array.astype(np.float32) if array.dtype in FOREIGN else array).tolist()

    def strides(self, array: Array) -> tuple[int, ...]:
        """Steps between neighbours along each dimension, in elements."""
        size = array.itemsize
        strides = tuple([s // size for s in array.strides])
        if not array.size and not any(strides):  # new arrays without elements have none in NumPy
            lengths = [max(n, 1) for n in array.shape]
            return tuple([prod(lengths[d:]) for d in range(1, array.ndim + 1)])
        return strides

    def is_contiguous(self, array: Array) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return array.flags.c_contiguous

    def data_ptr(self, array: Array) -> int:
        """The address of the first element; 0 if there is none."""
        return array.__array_interface__["data"][0] if array.size else 0

    def offset(self, array: Array, root: Array) -> int:
        """Where the first element of `array` lies in `root`, in elements from its first."""
        if array is root:
            return 0
        start, origin = (a.__array_interface__["data"][0] for a in (array, root))
        return (start - origin) // array.itemsize

    def owns(self, array: Array) -> bool:
        """Whether no other array shares the memory of `array`."""
        return array.base is None or allocator.is_pooled(array)

    def as_strided(
        self, root: Array, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
    ) -> Array:
        """A view of the memory of `root`; `stride` and `offset` in elements.

        Raises:
            ValueError: the view would reach beyond the memory of `root`.
        """
        size = root.itemsize
        first, last = (0, root.size - 1) if root.flags.c_contiguous else _extent(root)
        reach = offset + sum([s * (n - 1) for s, n in zip(stride, shape, strict=True) if n])
        if prod(shape) and not first <= offset <= reach <= last:
            raise ValueError(
                f"as_strided: sizes {shape}, strides {stride} and offset {offset} reach beyond the "
                f"memory of an array of shape {root.shape}"
            )
        # A step that no address can have is one that nothing takes: of one element, or of none.
        steps = [s * size if s * size < 2**63 else 0 for s in stride]
        if root.flags.c_contiguous and root.size:
            return np.ndarray(shape, root.dtype, root, offset * size if prod(shape) else 0, steps)
        flat = as_strided(root, (last + 1 if root.size else 0,), (size,))
        return as_strided(flat[offset if prod(shape) else 0 :], shape, steps)

    def reinterpret(self, root: Array, dtype: plugin.dtype) -> Array:
        """The memory of `root`, from its first to its last element, as a vector of `dtype`."""
        kind = TO_NUMPY[dtype]
        flat = root.reshape(-1) if root.flags.c_contiguous else _spread(root)
        whole = flat.nbytes // kind.itemsize * kind.itemsize
        return flat.view(np.uint8)[:whole].view(kind)

    def from_numpy(self, array: object, copy: bool = False) -> Array:
        """`array` itself as a native array, or a copy of it.

        Raises:
            TypeError: it is no NumPy array, or no dtype of flambeau has its element type.
            ValueError: it has a negative stride, one that is no multiple of the element size, or
                foreign byte order.
        """
        if isinstance(array, np.generic):
            array = np.asarray(array)
        if not isinstance(array, np.ndarray):
            raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
        if array.dtype not in FROM_NUMPY:
            array = _supported(array)
        if copy:
            return np.array(array, copy=True, order="K", subok=False)
        if array.size and any(s < 0 for s in array.strides):
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported (strides "
                f"{array.strides}). Make a copy of the array: array.copy()"
            )
        if any(s % array.itemsize for s in array.strides):
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size: strides "
                f"{array.strides}, element size {array.itemsize}. Copy the array: array.copy()"
            )
        if not array.flags.writeable:
            warnings.warn(
                "The given NumPy array is not writable, and tensors do not know this: writing to "
                "the tensor fails or is undefined. Copy the array, or make it writable, before "
                "converting it to a tensor.",
                UserWarning,
                stacklevel=3,
            )
        return array.view(np.ndarray) if type(array) is not np.ndarray else array

    def numpy(self, array: Array) -> Array:
        """`array` for the user, over the same memory."""
        return array.view()

    def from_nested(
        self, data: object, dtype: plugin.dtype | None
    ) -> tuple[Array, plugin.dtype] | None:
        """Nested lists of numbers as an array, with its dtype; None for what needs more care.

        The element type of floats is left to the caller unless `dtype` says it.
        """
        probe = data
        while isinstance(probe, (list, tuple)):
            if not probe:
                return None
            probe = probe[0]
        if type(probe) not in _NUMBERS:
            return None
        try:
            array = np.array(data)
        except (ValueError, TypeError, OverflowError, RuntimeError):
            return None  # ragged, or objects among the numbers: the core words the error
        kind = array.dtype
        if dtype is None:
            found = FROM_NUMPY.get(kind)
            return (array, found) if found in (plugin.bool_, plugin.int64) else None
        target = TO_NUMPY[dtype]
        if target == kind:
            return array, dtype
        exact = kind == np.bool_ or (kind == np.int64 and (target.kind in "fcV" or dtype in FLOAT8))
        if not (exact or (kind == np.float64 and (target.kind in "fcV" or dtype in FLOAT8))):
            return None
        return to_float8(array, target) if dtype in FLOAT8 else recast(array, target), dtype


def _supported(array: Array) -> Array:
    dtype = array.dtype
    if not dtype.isnative and (native := dtype.newbyteorder("=")) in FROM_NUMPY:
        raise ValueError(
            "given numpy array has byte order different from the native byte order, which is not "
            f"supported: dtype {dtype.str!r}; use array.astype({native.name!r})"
        )
    raise TypeError(
        f"can't convert np.ndarray of type {dtype}. The only supported types are: "
        + ", ".join(d.name for d in FROM_NUMPY)
        + "."
    )


def _spread(root: Array) -> Array:
    return as_strided(root, (_extent(root)[1] + 1,), (root.itemsize,))


def _extent(root: Array) -> tuple[int, int]:
    """First and last element of the memory of `root`, counted from its first element."""
    if not root.size:
        return 0, -1
    return 0, sum(
        s * (n - 1) for s, n in zip(root.strides, root.shape, strict=True)
    ) // root.itemsize
