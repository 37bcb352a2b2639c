"""Memory behind a file: shared memory that other processes see, and files mapped as storages.

A block of shared memory is a file in the system's memory file system whose name is deleted as soon
as the file is open: nothing is left behind however a process ends.  What travels to another process
is the file descriptor.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import uuid
import weakref
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import TensorBase
from flambeau._memory.views import storage_of
from flambeau._storages.foreign import Memory, tensor_over
from flambeau._storages.memory import tensor_in
from flambeau._storages.typed import LEGACY, TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides

if TYPE_CHECKING:
    from flambeau._memory.record import Storage
    from flambeau._tensor.tensor import Tensor

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()

# Blocks of this process by (device, inode): a block that arrives twice is mapped once.
_known: weakref.WeakValueDictionary[tuple[int, int], Storage] = weakref.WeakValueDictionary()


class Mapping:
    """What is behind a mapped storage.

    Attributes:
        fd: descriptor of a block of shared memory, None for a file that the user named.
        filename: that file, None for a block of shared memory.
        shared: whether other processes see writes.
    """

    __slots__ = ("fd", "filename", "shared")

    def __init__(self, fd: int | None, filename: str | None, shared: bool) -> None:
        self.fd = fd
        self.filename = filename
        self.shared = shared

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


def create(nbytes: int) -> Storage:
    """A storage of `nbytes` bytes (at least one) in shared memory.

    Raises:
        RuntimeError: the system has not that much shared memory.
    """
    path = os.path.join(_FOLDER, f"flambeau_{os.getpid()}_{uuid.uuid4().hex}")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.unlink(path)
        # Without it the memory is found to be short at a later write, by a signal that kills.
        os.posix_fallocate(fd, 0, nbytes)
    except OSError as error:
        os.close(fd)
        free = os.statvfs(_FOLDER)
        raise RuntimeError(
            f"cannot allocate {nbytes} bytes of shared memory in {_FOLDER}, where "
            f"{free.f_bavail * free.f_frsize} are free: {error.strerror}. Share less, or make that "
            "file system larger (containers: --shm-size)"
        ) from error
    return attach(fd, nbytes)


def private(data: bytearray) -> Storage:
    """A storage over bytes of this process alone: what stands for a block too small to share."""
    return storage_of(tensor_over(Memory(memoryview(data), (len(data),), (1,), D.uint8), D.uint8))


def tensor_at(block: Storage, start: int, dtype: Any, shape: tuple[int, ...]) -> Tensor:
    """The row-major tensor that begins at byte `start` of a block."""
    return tensor_in(block, dtype, start // dtype.itemsize, shape, contiguous_strides(shape))


def attach(fd: int, nbytes: int) -> Storage:
    """The storage over the block of shared memory of a descriptor, which it closes in the end."""
    facts = os.fstat(fd)
    key = facts.st_dev, facts.st_ino
    if (found := _known.get(key)) is not None:
        os.close(fd)
        return found
    st = _over(mmap.mmap(fd, nbytes), Mapping(fd, None, True))
    _known[key] = st
    return st


def adopt(st: Storage, block: Storage) -> None:
    """Note that a storage has taken over the memory of a block of shared memory."""
    facts = os.fstat(block.mapping.fd)
    _known[facts.st_dev, facts.st_ino] = st


def map_file(filename: Any, shared: bool, nbytes: int) -> Storage:
    """The storage over a file; `nbytes` 0 means all of it.

    Raises:
        RuntimeError: the file cannot be opened, or is too small and not `shared`.
    """
    path = os.fspath(filename)
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
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
        return _over(mmap.mmap(fd, nbytes, access=access), Mapping(None, path, shared))
    finally:
        os.close(fd)


def _over(block: mmap.mmap, mapping: Mapping) -> Storage:
    memory = Memory(memoryview(block), (len(block),), (1,), D.uint8)
    st = storage_of(tensor_over(memory, D.uint8))
    st.mapping = mapping
    return st


_moves = False


def register(*, move: bool = False) -> None:
    """Let the pickler of `multiprocessing` send shared memory by its descriptor.

    Memory that is not shared yet is copied; once somebody has asked to `move` it, it is moved to
    shared memory by being sent, as ``torch.multiprocessing`` does.
    """
    global _moves
    _moves = _moves or move

    def handed_over(storage: Any) -> bool:
        if storage.device.type == "cpu" and storage.nbytes() and _moves:
            storage.share_memory_()
        return storage.is_shared() and storage._st.mapping.fd is not None

    def reduce_untyped(storage: UntypedStorage) -> Any:
        if not handed_over(storage):
            return storage.__reduce_ex__(2)
        return _attached, (reduction.DupFd(storage._st.mapping.fd), storage.nbytes())

    def reduce_typed(storage: TypedStorage) -> Any:
        return _retyped, (storage.untyped(), storage.dtype)

    def reduce_tensor(t: Tensor) -> Any:
        if t.requires_grad and not t.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
                "autograd does not support crossing process boundaries. If you just want to "
                "transfer the data, call detach() on the tensor before serializing (e.g., putting "
                "it on the queue)."
            )
        if t.is_sparse or not t._be.strided or not handed_over(t.untyped_storage()):
            return t.__reduce_ex__(2)
        place = t.storage_offset(), tuple(t.shape), t.stride()
        return _received, (type(t), t.untyped_storage(), t.dtype, place, t.requires_grad)

    pickler = reduction.ForkingPickler
    pickler.register(UntypedStorage, reduce_untyped)
    for kind in (TypedStorage, *LEGACY.values()):
        pickler.register(kind, reduce_typed)
    kinds: list[type] = [TensorBase]
    while kinds:
        kind = kinds.pop()
        pickler.register(kind, reduce_tensor)
        kinds += kind.__subclasses__()


def _attached(handle: Any, nbytes: int) -> Any:
    return UntypedStorage._of(attach(handle.detach(), nbytes))


def _retyped(storage: Any, dtype: Any) -> Any:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def _received(cls: type, storage: Any, dtype: Any, place: Any, requires_grad: bool) -> Any:
    t = tensor_in(storage._st, dtype, *place)
    return t._make_subclass(cls, t, requires_grad)
