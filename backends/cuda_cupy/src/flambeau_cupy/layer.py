"""The array module that kernels are written against: CuPy on a device, NumPy in tests.

The very functions that run on a device run on NumPy.
"""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial, wraps
from typing import Any

import numpy as np

from flambeau_cupy.device.array_module import Array, ArrayModule, Kernel
from flambeau_cupy.device.faults import Faults
from flambeau_cupy.device.launch import DeviceLauncher, Launch
from flambeau_cupy.dtypes import BFLOAT16, HALVES
from flambeau_cupy.fusion.chains import Fusion
from flambeau_cupy.fusion.elementwise import Elementwise


class Layer(ArrayModule):
    """An array module, and what is made of its launches.

    Attributes:
        product: ``product(a, b, bias)`` is ``a @ b + bias`` by a library that plans it, or None
            where `xp.matmul` must serve (see `flambeau_cupy.libraries.gemm`).
    """

    def product(self, a: Array, b: Array, bias: Array | None = None) -> Array | None:
        """See `Layer`."""
        return None

    def bound(self, functions: Mapping[str, Kernel]) -> dict[str, Kernel]:
        """Kernels of functions that take the layer before what kernels take."""
        return {name: self.quiet(partial(f, self)) for name, f in functions.items()}

    @cached_property
    def fusion(self) -> Fusion | None:
        """What makes kernels of elementwise ops and chains of them; None without launches."""
        return None if self.launch is None else Fusion(Elementwise(self))

    @cached_property
    def faults(self) -> Faults | None:
        """What finds wrong arguments without waiting for the device; None without launches."""
        return None if self.launch is None else Faults(self)


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
        """See `ArrayModule.window`; an array made over a pointer has no base, a view of it has."""
        return self.array(shape, a.dtype, a.data + offset, strides).view()

    def shared_words(self, count: int) -> np.ndarray:
        """See `ArrayModule.shared_words`: page-locked memory, which has one address for all."""
        memory = self.xp.cuda.alloc_pinned_memory(8 * count)
        words = np.frombuffer(memory, np.int64, count)
        words[...] = 0
        return words

    def add_at(self, a: Array, key: object, values: Array) -> None:
        """See `ArrayModule.add_at`; the hardware adds numbers of 32 and 64 bits only."""
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
        """See `ArrayModule.window`."""
        if not offset:
            return np.lib.stride_tricks.as_strided(a, shape, strides)
        if not all(shape):
            return np.lib.stride_tricks.as_strided(a.reshape(-1)[:0], shape, strides)
        flat = np.lib.stride_tricks.as_strided(a, (offset // a.itemsize + 1,), (a.itemsize,))
        return np.lib.stride_tricks.as_strided(flat[-1:], shape, strides)

    def add_at(self, a: Array, key: Any, values: Array) -> None:
        """See `ArrayModule.add_at`."""
        if a.dtype == BFLOAT16:
            total = a.astype(np.float32)
            np.add.at(total, key, values.astype(np.float32))
            a[...] = total.astype(BFLOAT16)
        else:
            np.add.at(a, key, values)

    def quiet(self, kernel: Kernel) -> Kernel:
        """See `ArrayModule.quiet`; CuPy never warns."""

        @wraps(kernel)
        def run(*args: object) -> Any:
            with np.errstate(all="ignore"):
                return kernel(*args)

        return run
