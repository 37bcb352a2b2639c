"""The shared library of oneDNN: where it is found, and the part of its C API that is used.

In this order: the file that ``FLAMBEAU_ONEDNN_LIBRARY`` names; the one that the wheel brought; the
library that the system knows as ``dnnl``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from ctypes import (
    CDLL,
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_float,
    c_int,
    c_int64,
    c_size_t,
    c_void_p,
    cast,
)
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any

from flambeau_numpy.threads import sleeping_when_idle

VARIABLE = "FLAMBEAU_ONEDNN_LIBRARY"
BUNDLED = Path(__file__).with_name("lib") / "libdnnl.so.3"
MAJOR = 3
"""The version of the C API; that of 2.x made operation descriptors first."""

DIMS = c_int64 * 12
CPU, IN_ORDER, USER_SCRATCHPAD = 1, 1, 1
OUT_OF_MEMORY, INVALID, UNIMPLEMENTED = 1, 2, 3
F32, BF16, F16 = 3, 2, 1


class Argument(Structure):
    """One operand of a primitive: its role and its memory."""

    _fields_ = (("role", c_int), ("memory", c_void_p))


class _Version(Structure):
    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_int),
        ("gpu_runtime", c_int),
    )


_HANDLE = POINTER(c_void_p)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "engine_create": (_HANDLE, c_int, c_size_t),
    "stream_create": (_HANDLE, c_void_p, c_int),
    "stream_destroy": (c_void_p,),
    "set_primitive_cache_capacity": (c_int,),
    "memory_desc_create_with_strides": (_HANDLE, c_int, DIMS, c_int, DIMS),
    "memory_desc_create_with_tag": (_HANDLE, c_int, DIMS, c_int, c_int),
    "memory_desc_clone": (_HANDLE, c_void_p),
    "memory_desc_destroy": (c_void_p,),
    "memory_create": (_HANDLE, c_void_p, c_void_p, c_void_p),
    "memory_set_data_handle": (c_void_p, c_void_p),
    "memory_destroy": (c_void_p,),
    "primitive_attr_create": (_HANDLE,),
    "primitive_attr_set_scratchpad_mode": (c_void_p, c_int),
    "reorder_primitive_desc_create": (_HANDLE, *[c_void_p] * 5),
    "convolution_forward_primitive_desc_create": (
        *(_HANDLE, c_void_p, c_int, c_int),
        *([c_void_p] * 4 + [DIMS] * 4),
        c_void_p,
    ),
    "convolution_backward_data_primitive_desc_create": (
        *(_HANDLE, c_void_p, c_int),
        *([c_void_p] * 3 + [DIMS] * 4),
        *(c_void_p, c_void_p),
    ),
    "convolution_backward_weights_primitive_desc_create": (
        *(_HANDLE, c_void_p, c_int),
        *([c_void_p] * 4 + [DIMS] * 4),
        *(c_void_p, c_void_p),
    ),
    "matmul_primitive_desc_create": (_HANDLE, *[c_void_p] * 6),
    "sgemm": (
        *(c_char, c_char, c_int64, c_int64, c_int64),
        *(c_float, c_void_p, c_int64, c_void_p, c_int64),
        *(c_float, c_void_p, c_int64),
    ),
    "primitive_desc_query": (c_void_p, c_int, c_int, c_void_p),
    "primitive_desc_destroy": (c_void_p,),
    "primitive_create": (_HANDLE, c_void_p),
    "primitive_destroy": (c_void_p,),
    "primitive_execute": (c_void_p, c_void_p, c_int, c_void_p),
}


class Unsupported(Exception):  # noqa: N818 - an answer of the library, not an error of the user
    """oneDNN has no implementation for this operation on this processor."""


class Library:
    """oneDNN, loaded: ``library.call("engine_create", ...)`` calls ``dnnl_engine_create``.

    Attributes:
        path: the file.
        version: such as ``3.2.0``.
        engine, attributes: the handles that all primitives share; kept until the process ends.
        addresses: those of ``dnnl_sgemm`` and of what gets and sets the number of threads, 0 where
            there are none.
        runners: those of what gives a memory its data and runs a primitive, and the same two.
        has_lost_threads: whether OpenMP may wait for threads that only the parent process has.
    """

    def __init__(self, path: str) -> None:
        mapped = files_of_parent()
        with sleeping_when_idle():  # OpenMP comes with it
            loaded = CDLL(path)
        stated = getattr(loaded, "dnnl_version", None)
        if stated is None:
            raise OSError(f"{path} is not oneDNN")
        stated.restype = POINTER(_Version)
        version = stated().contents
        self.path = path
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        if version.major != MAJOR:
            raise OSError(f"{path} is oneDNN {self.version}, and version {MAJOR} is needed")
        self._functions: dict[str, Any] = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(loaded, f"dnnl_{name}")
            function.argtypes, function.restype = arguments, c_int
            self._functions[name] = function
        self.query = loaded.dnnl_primitive_desc_query_md
        self.query.argtypes, self.query.restype = (c_void_p, c_int, c_int), c_void_p
        self.size_of = loaded.dnnl_memory_desc_get_size
        self.size_of.argtypes, self.size_of.restype = (c_void_p,), c_size_t
        self.equal = loaded.dnnl_memory_desc_equal
        self.equal.argtypes, self.equal.restype = (c_void_p, c_void_p), c_int
        self.set_data = self._functions["memory_set_data_handle"]
        self.execute = self._functions["primitive_execute"]
        self.sgemm = self._functions["sgemm"]
        # Symbols of the OpenMP that oneDNN itself uses; a build for another runtime has none.
        self.get_threads = getattr(loaded, "omp_get_max_threads", None)
        self.set_threads = getattr(loaded, "omp_set_num_threads", None)
        self.addresses = tuple(
            0 if function is None else cast(function, c_void_p).value or 0
            for function in (self.sgemm, self.get_threads, self.set_threads)
        )
        self.runners = tuple(
            0 if function is None else cast(function, c_void_p).value or 0
            for function in (self.set_data, self.execute, self.get_threads, self.set_threads)
        )
        self.has_lost_threads = _file_at(self.addresses[1]) in mapped
        self.call("set_primitive_cache_capacity", 0)  # `primitives` keeps them, with their memory
        self.engine = self.made("engine_create", CPU, 0)
        self.attributes = self.made("primitive_attr_create")
        self.call("primitive_attr_set_scratchpad_mode", self.attributes, USER_SCRATCHPAD)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function and raise if it fails.

        Raises:
            Unsupported: there is no implementation for these arguments, or they are beyond it.
            MemoryError: there is no memory for what it makes.
            RuntimeError: any other failure.
        """
        status = self._functions[name](*arguments)
        if status == UNIMPLEMENTED or (status == INVALID and "_desc_create" in name):
            raise Unsupported(name)  # sizes that its integers do not hold are invalid
        self.check(status, f"dnnl_{name}")

    def check(self, status: int, name: str) -> None:
        """Raise if a function failed.

        Raises:
            MemoryError: there was no memory.
            RuntimeError: any other failure.
        """
        if status == OUT_OF_MEMORY:
            raise MemoryError(f"oneDNN {self.version}: no memory for {name}")
        if status:
            raise RuntimeError(f"oneDNN {self.version}: {name} failed with status {status}")

    def destroyer(self, kind: str) -> Callable[[c_void_p], int]:
        """The function that ends the life of an object."""
        return self._functions[f"{kind}_destroy"]

    def made(self, name: str, *arguments: object) -> c_void_p:
        """The object that a function creates, which writes its handle to the first argument."""
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle


_FORKED = 0x40  # PF_FORKNOEXEC in the Linux kernel's <linux/sched.h>


def _mappings() -> Iterator[tuple[int, int, str]]:
    """Beginning, end and file of what is mapped into this process; nothing if it is not Linux."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        place, _, _, _, _, *path = line.split(maxsplit=5)
        begin, end = (int(address, 16) for address in place.split("-"))
        yield begin, end, path[0] if path else ""


def files_of_parent() -> frozenset[str]:
    """In a forked process, the files that are mapped now, most of them by its parent; else none.

    A pool of threads that one of these libraries had there is not here, and the library does not
    know. What this process loaded itself counts as well: nothing tells the two apart.
    """
    try:
        flags = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[6])
    except (OSError, ValueError, IndexError):
        return frozenset()
    return frozenset(path for _, _, path in _mappings()) if flags & _FORKED else frozenset()


def _file_at(address: int) -> str | None:
    """The file whose code is at an address, if the system tells."""
    return next((path for begin, end, path in _mappings() if begin <= address < end), None)


def _candidates() -> Iterator[str]:
    if stated := os.environ.get(VARIABLE):
        yield stated
        return
    if BUNDLED.exists():
        yield str(BUNDLED)
    if known := find_library("dnnl"):
        yield known


@cache
def _load() -> tuple[Library | None, str]:
    reasons: list[str] = []
    for path in _candidates():
        try:
            library = Library(path)
        except (OSError, AttributeError, RuntimeError) as error:
            reasons.append(str(error))
            continue
        return library, f"{library.version} ({path})"
    why = "; ".join(reasons) or (f"no library in the wheel or the system; name one in {VARIABLE}")
    return None, f"not used: {why}"


def onednn() -> Library | None:
    """The library, loaded once; None if there is none that can be used."""
    return _load()[0]


def description() -> str:
    """Version and file of the library, or why it is not used."""
    return _load()[1]
