"""Launches of the kernels in CUDA C.

A launcher is called as ``launch(kind, kernel, grid, block, *arguments)``: the element type as a
NumPy dtype, the kernel's name, blocks of the grid (a number, or one for each of two directions),
threads of a block, and the arguments. Those are native arrays, whose first element's address is
passed; None, a null pointer; NumPy scalars of the parameter's exact type; and a `Struct`.
"""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flambeau.plugin.accelerator import DeviceError
from flambeau_cupy.source import FAMILY_OF, text

if TYPE_CHECKING:
    from collections.abc import Callable


Grid = int | tuple[int, int]


@dataclass(frozen=True)
class Struct:
    """A structure that is passed by value.

    Attributes:
        data: its bytes, a NumPy array; the kernel's compiler sees the same layout.
    """

    data: np.ndarray


@dataclass(frozen=True)
class Program:
    """A kernel that was made at run time.

    Attributes:
        name: of the kernel; of equal texts equal.
        body: its text.
        prelude: what its text needs before it.
    """

    name: str
    body: str
    prelude: str


class Launch(Protocol):
    """What runs kernels; see the module for the arguments of a launch."""

    def __call__(
        self, kind: np.dtype, kernel: str, grid: Grid, block: int, *arguments: Any
    ) -> None:
        """Launch a kernel of `flambeau_cupy.source`."""

    def program(self, program: Program, grid: int, block: int, *arguments: object) -> None:
        """Launch a kernel that was made at run time; arrays are given by their addresses."""


class DeviceLauncher:
    """Launches on the current stream of the current device, by CuPy and NVRTC.

    A family is compiled for an element type when one of its kernels is launched first; CuPy keeps
    the machine code on disk.
    """

    def __init__(self) -> None:
        self._modules: dict[tuple[int, str, np.dtype], Any] = {}
        self._functions: dict[tuple[int, str, np.dtype], Any] = {}
        self._programs: dict[tuple[int, str], Any] = {}

    def __call__(
        self, kind: np.dtype, kernel: str, grid: Grid, block: int, *arguments: object
    ) -> None:
        """See the module."""
        from cupy.cuda import runtime

        key = (runtime.getDevice(), kernel, kind)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self._module(key[0], kernel, kind).get_function(
                kernel
            )
        blocks = grid if isinstance(grid, tuple) else (grid,)
        self._launch(function, blocks, block, arguments)

    def program(self, program: Program, grid: int, block: int, *arguments: object) -> None:
        """See `Launch.program`; a text is compiled when it is first launched."""
        from cupy.cuda import runtime

        key = (runtime.getDevice(), program.name)
        function = self._programs.get(key)
        if function is None:
            import cupy

            code = f"{program.prelude}\n{program.body}"
            module = cupy.RawModule(code=code, options=("--std=c++17",))
            function = self._programs[key] = module.get_function(program.name)
        self._launch(function, (grid,), block, arguments)

    def _launch(
        self, function: Callable[..., Any], grid: object, block: int, arguments: Sequence[Any]
    ) -> None:
        try:
            function(grid, (block,), tuple([_passed(a) for a in arguments]))
        except RuntimeError as error:
            raise told(error) from error

    def _module(self, device: int, kernel: str, kind: np.dtype) -> Any:
        import cupy

        key = (device, FAMILY_OF[kernel], kind)
        if key not in self._modules:
            self._modules[key] = cupy.RawModule(
                code=text(key[1], kind.name), options=("--std=c++17",)
            )
        return self._modules[key]


def told(error: Exception) -> Exception:
    """What CuPy raised, by the class that programs know if it is an error of CUDA."""
    code = getattr(error, "status", 0)
    return DeviceError(code, str(error)) if code else error


def _passed(argument: object) -> Any:
    if argument is None:
        return np.uintp(0)
    return argument.data if type(argument) is Struct else argument


def blocks_for(n: int, per_thread: int = 4, block: int = 256) -> tuple[int, int]:
    """Grid and block for `n` elements that all threads share."""
    return max(1, min(-(-n // (per_thread * block)), 1 << 16)), block


def rows_for(rows: int, columns: int) -> tuple[int, int]:
    """Grid and block for rows that get a block each."""
    block = 32
    while block < 1024 and 4 * block < columns:
        block *= 2
    return max(1, min(rows, 1 << 16)), block


def columns_for(columns: int) -> tuple[int, int]:
    """Grid and block for columns of which 32 get a block."""
    return max(1, min(-(-columns // 32), 1 << 16)), 256
