"""Kernels in CUDA C compiled by a C++ compiler and run on the host; NVRTC by ctypes."""

from __future__ import annotations

import ctypes as C
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flambeau_cupy.source import FAMILIES, text

COMPILER = shutil.which("g++") or shutil.which("clang++")
HEADER = Path(__file__).parent / "host/cuda_on_host.h"


class Library:
    """The kernels of one family for one element type."""

    def __init__(self, family: str, dtype: str, folder: Path, *, options: Sequence[str] = ()):
        assert COMPILER is not None
        source, built = folder / f"{family}_{dtype}.cpp", folder / f"{family}_{dtype}.so"
        exports = "\n".join(f"EMU_EXPORT({name})" for name in FAMILIES[family])
        source.write_text(f'#include "{HEADER}"\n{text(family, dtype)}\n{exports}\n')
        flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared", *options]
        # A compiler is no subject of the sanitizer that this process may run under.
        environment = {name: v for name, v in os.environ.items() if name != "LD_PRELOAD"}
        command = [COMPILER, *flags, str(source), "-o", str(built)]
        subprocess.run(command, check=True, env=environment)
        self._library = C.CDLL(str(built))
        self._library.emu_message.restype = C.c_char_p

    def __call__(self, name: str, grid: Any, block: int, *args: Any) -> None:
        """Launch; arrays go as pointers, None as a null pointer, scalars as ctypes values."""
        grid = grid if isinstance(grid, tuple) else (grid, 1)
        size = (C.c_uint * 6)(*grid, 1, block, 1, 1)
        keep = [
            C.c_void_p(a if a is None else a.ctypes.data)
            if a is None or isinstance(a, np.ndarray)
            else a
            for a in args
        ]
        values = (C.c_void_p * len(keep))(*(C.addressof(k) for k in keep))
        if getattr(self._library, f"emu_{name}")(size, values):
            raise RuntimeError(self._library.emu_message().decode())


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
