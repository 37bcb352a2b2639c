"""Memory behind a file: shared memory that other processes see, and files mapped as storages.

A block of shared memory is a file in the system's memory file system whose name is deleted as soon
as the file is open: nothing is left behind however a process ends.  What travels to another process
is the file descriptor.  Where descriptors are scarce the name stays and travels instead, and a
process of its own removes it when nobody uses it any more (`set_strategy`).
"""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import tempfile
import uuid
import weakref
from typing import TYPE_CHECKING, Any

from flambeau._memory.views import storage_of
from flambeau._storages import descriptors, shared_names
from flambeau._storages.foreign import Memory, tensor_over
from flambeau._storages.memory import tensor_in
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from flambeau._memory.record import Storage
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()

BY_DESCRIPTOR, BY_NAME = "file_descriptor", "file_system"
STRATEGIES = (BY_DESCRIPTOR, BY_NAME) if shared_names.SUPPORTED else (BY_DESCRIPTOR,)

# Blocks of this process by (device, inode): a block that arrives twice is mapped once.
_known: weakref.WeakValueDictionary[tuple[int, int], Storage] = weakref.WeakValueDictionary()


class Mapping:
    """What is behind a mapped storage.

    Attributes:
        fd: descriptor of a block of shared memory that travels by it.
        filename: the file that the user named, None for a block of shared memory.
        shared: whether other processes see writes.
        name: that of a block of shared memory that travels by it.
        key: device and inode of a block of shared memory.
    """

    __slots__ = ("fd", "filename", "key", "name", "shared")

    def __init__(
        self,
        fd: int | None,
        filename: str | None,
        shared: bool,
        name: shared_names.Name | None = None,
        key: tuple[int, int] | None = None,
    ) -> None:
        self.fd = fd
        self.filename = filename
        self.shared = shared
        self.name = name
        self.key = key

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


strategy = BY_DESCRIPTOR


def set_strategy(chosen: str) -> None:
    """Choose how blocks of shared memory travel that are made from now on."""
    global strategy
    if chosen == BY_NAME:
        # Now, so that processes forked later use the one of their parent, who may outlive them.
        shared_names.start(_FOLDER)
    strategy = chosen


def create(nbytes: int, by_name: bool = False) -> Storage:
    """A storage of `nbytes` bytes (at least one) in shared memory, which travels by descriptor.

    Args:
        nbytes: how many.
        by_name: it travels by its name instead.

    Raises:
        RuntimeError: the system has not that much shared memory.
    """
    fd, name = _opened(by_name)
    try:
        # Without it the memory is found to be short at a later write, by a signal that kills.
        os.posix_fallocate(fd, 0, nbytes)
    except OSError as error:
        os.close(fd)
        raise _no_room(nbytes, error) from error
    return _attached_to(fd, nbytes, name)


def filled(source: Storage) -> Storage:
    """A block of shared memory with the bytes of a storage (at least one) of the CPU.

    Raises:
        RuntimeError: the system has not that much shared memory.
    """
    nbytes = source.nbytes()
    fd, name = _opened(by_name=strategy == BY_NAME)
    try:
        _write(fd, source._be.backend.data_ptr(source.buffer), nbytes)
    except OSError as error:
        os.close(fd)
        raise _no_room(nbytes, error) from error
    return _attached_to(fd, nbytes, name)


def adopt(st: Storage, block: Storage) -> None:
    """Note that a storage has taken over the memory of a block of shared memory."""
    _known[block.mapping.key] = st


def _opened(by_name: bool) -> tuple[int, shared_names.Name | None]:
    """The descriptor of a new, empty block, and its name where it has one."""
    if not by_name:
        return _unnamed(), None
    name = shared_names.fresh(_FOLDER)
    return _made(os.path.join(_FOLDER, name.name)), name


def _no_room(nbytes: int, error: OSError) -> RuntimeError:
    free = os.statvfs(_FOLDER)
    return RuntimeError(
        f"cannot allocate {nbytes} bytes of shared memory in {_FOLDER}, where "
        f"{free.f_bavail * free.f_frsize} are free: {error.strerror}. Share less, or make that "
        "file system larger (containers: --shm-size)"
    )


def _made(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


def _unnamed() -> int:
    """The descriptor of a new block without a name."""
    if (unnamed := getattr(os, "O_TMPFILE", None)) is not None:
        try:
            return os.open(_FOLDER, os.O_RDWR | unnamed | os.O_EXCL, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    path = os.path.join(_FOLDER, f"flambeau_{os.getpid()}_{uuid.uuid4().hex}")
    fd = _made(path)
    os.unlink(path)
    return fd


def private(data: bytearray) -> Storage:
    """A storage over bytes of this process alone: what stands for a block too small to share."""
    return storage_of(tensor_over(Memory(memoryview(data), (len(data),), (1,), D.uint8), D.uint8))


def tensor_at(block: Storage, start: int, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """The row-major tensor that begins at byte `start` of a block."""
    return tensor_in(block, dtype, start // dtype.itemsize, shape, contiguous_strides(shape))


def attach(fd: int, nbytes: int) -> Storage:
    """The storage over the block of shared memory of a descriptor, which it closes in the end."""
    return _known_as(fd) or _attached_to(fd, nbytes, None)


def received(connection: Connection, nbytes: int) -> Storage:
    """The storage over the block whose descriptor the other end of a connection sends."""
    return attach(descriptors.receive(connection), nbytes)


def attach_named(home: str, file: str, nbytes: int) -> Storage:
    """The storage over the block of shared memory that was sent by its name.

    Raises:
        RuntimeError: it is gone, since all processes that used it have ended, or is too small.
    """
    name = shared_names.Name(home, file)
    name.arrived()
    try:
        fd = os.open(os.path.join(_FOLDER, file), os.O_RDWR)
    except FileNotFoundError as error:
        raise shared_names.gone(file) from error
    if (known := _known_as(fd)) is None:
        return _attached_to(fd, nbytes, name)
    if (mapping := known.mapping) is not None and not (mapping.name and mapping.name.held()):
        mapping.name = name
    return known


def _known_as(fd: int) -> Storage | None:
    facts = os.fstat(fd)
    if (found := _known.get((facts.st_dev, facts.st_ino))) is not None:
        os.close(fd)
    return found


def _attached_to(fd: int, nbytes: int, name: shared_names.Name | None) -> Storage:
    facts = os.fstat(fd)
    key = facts.st_dev, facts.st_ino
    mapping = Mapping(fd, None, True, name, key)  # closes the descriptor, whatever happens
    if facts.st_size < nbytes:  # touching what is not there kills the process
        raise RuntimeError(
            f"shared memory of {nbytes} bytes is expected, and has but {facts.st_size}"
        )
    address = _mapped(fd, nbytes)
    release = functools.partial(_munmap, address, nbytes)
    memory = Memory((address, False), (nbytes,), (1,), D.uint8, release=release)
    if name is not None:
        os.close(fd)
        mapping.fd = None
    st = storage_of(tensor_over(memory, D.uint8))
    st.mapping = mapping
    _known[key] = st
    return st


# `mmap.mmap` keeps a descriptor of its own, which would double the number of those in use.
_libc = ctypes.CDLL(None, use_errno=True)
_mmap, _munmap, _pwrite = _libc.mmap, _libc.munmap, _libc.pwrite
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
    ctypes.c_long,
)
_munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_pwrite.restype = ctypes.c_ssize_t
_pwrite.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long


def _mapped(fd: int, nbytes: int) -> int:
    access = mmap.PROT_READ | mmap.PROT_WRITE
    address = _mmap(None, nbytes, access, mmap.MAP_SHARED, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        error = os.strerror(ctypes.get_errno())
        raise RuntimeError(f"cannot map {nbytes} bytes of shared memory: {error}")
    return int(address)


def _write(fd: int, address: int, nbytes: int) -> None:
    """Put memory into a file from its first byte on: one pass over pages that a map would fault."""
    done = 0
    while done < nbytes:
        count = _pwrite(fd, address + done, nbytes - done, done)
        if count > 0:
            done += count
            continue
        code = ctypes.get_errno() if count else errno.ENOSPC
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


def map_file(filename: Any, shared: bool, nbytes: int) -> Storage:
    """The storage over a file; `nbytes` 0 means all of it.

    Raises:
        RuntimeError: the file cannot be opened, or is too small and not `shared`.
    """
    path = os.fspath(filename)
    # A pipe that nobody writes to would be waited for.
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from error
    try:
        held = os.fstat(fd).st_size
        if held < nbytes:
            if not shared:
                raise RuntimeError(
                    f"file <{path}> size <{held}> is smaller than the required mapping size "
                    f"<{nbytes}>"
                )
            os.ftruncate(fd, nbytes)
        nbytes = nbytes or held
        if not nbytes:
            raise RuntimeError(f"file <{path}> is empty: there is nothing to map; give a size")
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        try:
            block = mmap.mmap(fd, nbytes, access=access)
        except OSError as error:
            raise RuntimeError(
                f"unable to mmap {nbytes} bytes from file <{path}>: {error.strerror} "
                f"({error.errno})"
            ) from error
        return _over(block, Mapping(None, path, shared))
    finally:
        os.close(fd)


def _over(block: mmap.mmap, mapping: Mapping) -> Storage:
    memory = Memory(memoryview(block), (len(block),), (1,), D.uint8)
    st = storage_of(tensor_over(memory, D.uint8))
    st.mapping = mapping
    return st
