"""What CuPy and NumPy are asked for: the ground that launches, fusion and kernels stand on.

What both have by one name is used through `ArrayModule.xp`. What they have by different names, or
what one of them does in another way, is a method here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from flambeau_cupy.device.launch import Launch
from flambeau_cupy.dtypes import HALVES

Array = Any
Kernel = Callable[..., Any]


class ArrayModule:
    """An array module and its peculiarities.

    Attributes:
        xp: the module: ``cupy`` or ``numpy``.
        array: its array class.
        special: its ``scipy.special``.
        launch: runs kernels in CUDA C on its arrays (see `flambeau_cupy.device.launch`), or None
            where there is nothing to run them on: ops then decompose.
    """

    xp: Any
    array: type
    special: Any
    launch: Launch | None = None

    @property
    def launched(self) -> Launch:
        """`launch`, where it is known to be there."""
        assert self.launch is not None
        return self.launch

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

    def add_at(self, a: Array, key: object, values: Array) -> None:
        """``a[key] += values``, counting places that come more than once each time."""
        raise NotImplementedError

    def shared_words(self, count: int) -> np.ndarray:
        """Zeros of 64 bits that host and devices write and read."""
        return np.zeros(count, np.int64)

    def quiet(self, kernel: Kernel) -> Kernel:
        """`kernel` without warnings about infinities and NaN."""
        return kernel

    def wide(self, a: Array) -> Array:
        """`a` as kernels compute with it: half precisions as float32."""
        return a.astype(np.float32) if a.dtype in HALVES else a

    def held(self, a: object) -> Array:
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

        def run(a: Array, *rest: object) -> Any:
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
