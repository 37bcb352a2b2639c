"""Kernels in CUDA C compiled by a C++ compiler and run on the host; NVRTC by ctypes."""

from __future__ import annotations

import ctypes as C
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from flambeau_cupy.device.launch import Grid, Program, Struct
from flambeau_cupy.fusion.expressions import standard
from flambeau_cupy.fusion.steps import C_TYPES
from flambeau_cupy.source import FAMILIES, families, whole

COMPILER = shutil.which("g++") or shutil.which("clang++")
HEADER = Path(__file__).parent / "host/cuda_on_host.h"


class Library:
    """Kernels of one source, built once per machine for each text.

    Args:
        source: the text.
        names: its kernels.
        folder: where the library is kept; by default one that all processes of the user share.
        options: more flags of the compiler.
    """

    def __init__(
        self,
        source: str,
        names: Sequence[str],
        folder: Path | None = None,
        *,
        options: Sequence[str] = (),
    ):
        assert COMPILER is not None
        exports = "\n".join(f"EMU_EXPORT({name})" for name in names)
        program = f"{HEADER.read_text()}\n{source}\n{exports}\n"
        flags = ["-std=c++17", "-O1", "-fno-strict-aliasing", "-w", "-fPIC", "-shared", *options]
        key = hashlib.sha256("\0".join([COMPILER, *flags, program]).encode()).hexdigest()[:24]
        folder = folder or Path(tempfile.gettempdir()) / f"flambeau-kernels-{os.getuid()}"
        built = folder / f"{key}.so"
        if not built.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as own:
                text, library = Path(own) / "kernels.cpp", Path(own) / "kernels.so"
                text.write_text(program)
                # A compiler is no subject of the sanitizer that this process may run under.
                environment = {name: v for name, v in os.environ.items() if name != "LD_PRELOAD"}
                command = [COMPILER, *flags, str(text), "-o", str(library)]
                subprocess.run(command, check=True, env=environment)
                library.replace(built)  # another process may have been faster: the same file
        self._library = C.CDLL(str(built))
        self._library.emu_message.restype = C.c_char_p
        self._lock = threading.RLock()  # one scheduler for all fibers

    def __call__(self, name: str, grid: Grid, block: int, *arguments: Any) -> None:
        """Launch; see `flambeau_cupy.device.launch`."""
        x, y = grid if isinstance(grid, tuple) else (grid, 1)
        size = (C.c_uint * 6)(x, y, 1, block, 1, 1)
        keep = [_passed(a) for a in arguments]
        values = (C.c_void_p * len(keep))(*[a.ctypes.data for a in keep])
        with self._lock:
            if getattr(self._library, f"emu_{name}")(size, values):
                raise RuntimeError(f"{name}: {self._library.emu_message().decode()}")


def _passed(argument: Any) -> np.ndarray:
    """What the kernel reads, in memory of its own: an address, or a value."""
    if type(argument) is Struct:
        return argument.data
    if argument is None or type(argument) is np.ndarray:
        address = 0 if argument is None else argument.__array_interface__["data"][0]
        return np.array(address, np.uintp)
    assert isinstance(argument, np.generic), f"no exact type: {argument!r}"
    return np.asarray(argument)


@cache
def library(dtype: str) -> Library:
    """All kernels for one element type."""
    names = [name for family in families(dtype) for name in FAMILIES[family]]
    return Library(whole(dtype), names, options=os.environ.get("FLAMBEAU_HOST_FLAGS", "").split())


class HostLauncher:
    """Runs kernels on NumPy arrays (see `flambeau_cupy.device.launch`).

    Attributes:
        launched: element type and name of each kernel that was run.
        recorded: where launches are noted, and not made, while a graph is recorded.
        at_once: make them nevertheless; for what goes on from their results by NumPy.
    """

    at_once = False

    def __init__(self) -> None:
        self.launched: list[tuple[str, str]] = []
        self.recorded: list[tuple[Any, ...]] | None = None

    def __call__(
        self, kind: np.dtype, kernel: str, grid: Grid, block: int, *arguments: Any
    ) -> None:
        """Run a kernel, and check what a device would not bear."""
        for a in arguments:
            assert type(a) is not np.ndarray or a.flags.c_contiguous, f"{kernel}: a view"
        self.launched.append((kind.name, kernel))
        if self.recorded is not None:
            self.recorded.append((kind, kernel, grid, block, *arguments))
            if not self.at_once:
                return
        library(kind.name)(kernel, grid, block, *arguments)

    def program(self, program: Program, grid: int, block: int, *arguments: Any) -> None:
        """Run a kernel that was made at run time."""
        self.launched.append(("", "elementwise"))
        if self.recorded is not None:
            self.recorded.append((program, grid, block, *arguments))
            if not self.at_once:
                return
        kind = _standard().get(program.name, "")
        made = _programs(kind, None if kind else program)
        made(program.name, grid, block, *arguments)


@cache
def _standard() -> dict[str, str]:
    """The dtype whose library has a kernel of a single step, by the kernel's name."""
    return {e.program.name: kind for kind in C_TYPES for e in standard(kind)}


@cache
def _programs(kind: str, program: Program | None) -> Library:
    """A kernel made at run time, or all those of single steps on a dtype: quickly built."""
    found = [e.program for e in standard(kind)] if program is None else [program]
    made = list({p.name: p for p in found}.values())  # some steps are the same for integers
    source = "\n".join([made[0].prelude, *(p.body for p in made)])
    flags = os.environ.get("FLAMBEAU_HOST_FLAGS", "").split()
    return Library(source, [p.name for p in made], options=["-O0", *flags])


def nvrtc() -> C.CDLL | None:
    """The compiler for devices, from its wheel; None where that is not installed."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    folders = [] if spec is None else [Path(p) for p in spec.submodule_search_locations or ()]
    found = [
        p for f in folders for p in (f / "lib").glob("libnvrtc.so.*") if "builtins" not in p.name
    ]
    return C.CDLL(str(found[0])) if found else None


def compiled(library: C.CDLL, source: str, architecture: str) -> bytes:
    """The machine code (or, for ``compute_``, the PTX) of a source.

    Raises:
        RuntimeError: it does not compile; the message is the log.
    """
    program = C.c_void_p()
    assert not library.nvrtcCreateProgram(
        C.byref(program), source.encode(), b"kernels.cu", 0, None, None
    )
    flags = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
    failed = library.nvrtcCompileProgram(program, len(flags), (C.c_char_p * len(flags))(*flags))
    size = C.c_size_t()
    kind = "PTX" if architecture.startswith("compute") else "CUBIN"
    if failed:
        library.nvrtcGetProgramLogSize(program, C.byref(size))
        log = C.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.value.decode())
    getattr(library, f"nvrtcGet{kind}Size")(program, C.byref(size))
    out = C.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{kind}")(program, out)
    return out.raw
