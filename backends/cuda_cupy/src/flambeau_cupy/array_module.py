"""The array module that kernels are written against: CuPy on a device, NumPy in tests.

Kernels use what both have by one name through `Layer.xp`. What they have by different names, or
what one of them does in another way, is a method here, so that the very functions that run on a
device run on NumPy.
"""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_cupy.dtypes import BFLOAT16, HALVES
from flambeau_cupy.launch import DeviceLauncher, Launch

if TYPE_CHECKING:
    from flambeau_cupy.faults import Faults
    from flambeau_cupy.fusion import Fusion

Array = Any
Kernel = Callable[..., Any]


class Layer:
    """An array module and its peculiarities.

    Attributes:
        xp: the module: ``cupy`` or ``numpy``.
        array: its array class.
        special: its ``scipy.special``.
        launch: runs kernels in CUDA C on its arrays (see `flambeau_cupy.launch`), or None where
            there is nothing to run them on: ops then decompose.
        product: ``product(a, b, bias)`` is ``a @ b + bias`` by a library that plans it, or None
            where `xp.matmul` must serve (see `flambeau_cupy.gemm`).
    """

    xp: Any
    array: type
    special: Any
    launch: Launch | None = None

    def product(self, a: Array, b: Array, bias: Array | None = None) -> Array | None:
        """See `Layer`."""
        return None

    def placed(self, host: np.ndarray) -> Array:
        """A copy of a NumPy array on the current device, for kernels that are recorded, too.

        What they need of single numbers is made there, by ``xp.full``.
        """
        return self.xp.asarray(host)

    def address(self, a: Array) -> int:
        """The address of the first element."""
        raise NotImplementedError

    def window(
        self, a: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Array:
        """A view of the memory of `a`: strides and offset from its first element in bytes.

        Its ``base`` is never None.
        """
        raise NotImplementedError

    def add_at(self, a: Array, key: Any, values: Array) -> None:
        """``a[key] += values``, counting places that come more than once each time."""
        raise NotImplementedError

    def shared_words(self, count: int) -> np.ndarray:
        """Zeros of 64 bits that host and devices write and read."""
        return np.zeros(count, np.int64)

    def quiet(self, kernel: Kernel) -> Kernel:
        """`kernel` without warnings about infinities and NaN."""
        return kernel

    @cached_property
    def fusion(self) -> Fusion | None:
        """What makes kernels of elementwise ops and chains of them; None without launches."""
        from flambeau_cupy.expressions import Elementwise
        from flambeau_cupy.fusion import Fusion

        return None if self.launch is None else Fusion(Elementwise(self))

    @cached_property
    def faults(self) -> Faults | None:
        """What finds wrong arguments without waiting for the device; None without launches."""
        from flambeau_cupy.faults import Faults

        return None if self.launch is None else Faults(self)

    def wide(self, a: Array) -> Array:
        """`a` as kernels compute with it: half precisions as float32."""
        return a.astype(np.float32) if a.dtype in HALVES else a

    def held(self, a: Any) -> Array:
        """What a function of the module returned as an array (NumPy has scalars for 0-d)."""
        return a if type(a) is self.array else self.xp.asarray(a)

    def copy(self, a: Array) -> Array:
        """A row-major copy."""
        return a.copy("C")

    def dense(self, a: Array) -> Array:
        """`a`, or a row-major copy where it is not."""
        return a if a.flags.c_contiguous else a.copy("C")

    def rounded(self, kernel: Kernel) -> Kernel:
        """`kernel` with half precisions computed in float32 and rounded once."""

        def run(a: Array, *rest: Any) -> Any:
            kind = a.dtype
            if kind not in HALVES:
                return self.held(kernel(a, *rest))
            others = [self.wide(r) if type(r) is self.array else r for r in rest]
            return self.held(kernel(a.astype(np.float32), *others)).astype(kind)

        return wraps(kernel)(run)


def channels_last(a: Array) -> bool:
    """Whether the channels, dimension 1, are neighbours in memory, and all else is in order."""
    if a.ndim < 3 or a.flags.c_contiguous:
        return False
    return a.transpose((0, *range(2, a.ndim), 1)).flags.c_contiguous


class CupyLayer(Layer):
    """CuPy."""

    def __init__(self) -> None:
        import cupy
        from cupyx.scipy import special

        self.xp, self.array, self.special = cupy, cupy.ndarray, special
        self.launch = DeviceLauncher()

    def address(self, a: Array) -> int:
        """The address of the first element on the device."""
        return a.data.ptr

    def window(
        self, a: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Array:
        """See `Layer.window`; an array made over a pointer has no base, a view of it has."""
        return self.array(shape, a.dtype, a.data + offset, strides).view()

    def shared_words(self, count: int) -> np.ndarray:
        """See `Layer.shared_words`: page-locked memory, which has one address for all."""
        memory = self.xp.cuda.alloc_pinned_memory(8 * count)
        words = np.frombuffer(memory, np.int64, count)
        words[...] = 0
        return words

    def add_at(self, a: Array, key: Any, values: Array) -> None:
        """See `Layer.add_at`; the hardware adds numbers of 32 and 64 bits only."""
        kind = a.dtype
        if kind == np.int64:  # two's complement: the same addition
            a.view(np.uint64).scatter_add(key, values.astype(np.int64).view(np.uint64))
        elif kind.kind == "c":
            real, imag = a.real.copy(), a.imag.copy()
            real.scatter_add(key, values.real.copy())
            imag.scatter_add(key, values.imag.copy())
            a.real, a.imag = real, imag
        elif kind.itemsize < 4:
            total = a.astype(np.float32 if kind in HALVES else np.int32)
            total.scatter_add(key, values.astype(total.dtype))
            a[...] = total.astype(kind)
        else:
            a.scatter_add(key, values)


class NumpyLayer(Layer):
    """NumPy standing in for CuPy, where kernels are checked without a device.

    Args:
        launch: what runs the kernels in CUDA C on the host, if anything does.
    """

    def __init__(self, launch: Launch | None = None) -> None:
        from scipy import special

        self.xp, self.array, self.special = np, np.ndarray, special
        self.launch = launch

    def address(self, a: Array) -> int:
        """The address of the first element."""
        return a.__array_interface__["data"][0]

    def window(
        self, a: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Array:
        """See `Layer.window`."""
        if not offset:
            return np.lib.stride_tricks.as_strided(a, shape, strides)
        if not all(shape):
            return np.lib.stride_tricks.as_strided(a.reshape(-1)[:0], shape, strides)
        flat = np.lib.stride_tricks.as_strided(a, (offset // a.itemsize + 1,), (a.itemsize,))
        return np.lib.stride_tricks.as_strided(flat[-1:], shape, strides)

    def add_at(self, a: Array, key: Any, values: Array) -> None:
        """See `Layer.add_at`."""
        if a.dtype == BFLOAT16:
            total = a.astype(np.float32)
            np.add.at(total, key, values.astype(np.float32))
            a[...] = total.astype(BFLOAT16)
        else:
            np.add.at(a, key, values)

    def quiet(self, kernel: Kernel) -> Kernel:
        """See `Layer.quiet`; CuPy never warns."""

        @wraps(kernel)
        def run(*args: Any) -> Any:
            with np.errstate(all="ignore"):
                return kernel(*args)

        return run
