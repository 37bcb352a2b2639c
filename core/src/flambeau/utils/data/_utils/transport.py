"""Batches between processes: small ones through the pipe, large ones in one block of shared memory.

The block has no name in the file system; its descriptor travels with the message.  Whatever process
is killed at whatever moment, the system frees it when the last descriptor is closed.
"""

from __future__ import annotations

import io
import math
import pickle
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._storages import shared as _storage_shared

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau._memory.record import Storage

# Larger payloads go through shared memory.  Both ends may be sending at once and must never wait
# for each other: what is under way has to fit into the buffers of a socket.
INLINE = 4096
_ALIGNMENT = 64


class _Pickler(pickle.Pickler):
    """Pickles a batch and leaves its dense tensors of the CPU to the block."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[tuple[int, fb.Tensor]] = []
        self.nbytes = 0
        self._places: dict[int, tuple[Any, ...]] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Where the elements of a tensor will be, None for other objects."""
        if type(obj) is not fb.Tensor or obj.requires_grad or obj.device.type != "cpu":
            return None
        if not obj._be.strided:
            return None
        if (known := self._places.get(id(obj))) is None:
            start = -(-self.nbytes // _ALIGNMENT) * _ALIGNMENT
            self.tensors.append((start, obj))
            self.nbytes = start + obj.nbytes
            known = self._places[id(obj)] = (start, obj.dtype, tuple(obj.shape))
        return known


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, block: Storage | None) -> None:
        super().__init__(file)
        self._block = block
        self._made: dict[int, fb.Tensor] = {}

    def persistent_load(self, pid: Any) -> Tensor:
        """The tensor of these elements; one object for one place."""
        start, dtype, shape = pid
        if self._block is None or not math.prod(shape):
            return fb.empty(shape, dtype=dtype)
        if (known := self._made.get(start)) is None:
            known = self._made[start] = _storage_shared.tensor_at(self._block, start, dtype, shape)
        return known


def send(connection: Connection, pid: int, header: tuple[Any, ...], value: object) -> None:
    """Send a value with a small header to process `pid`.

    Raises:
        RuntimeError: shared memory is used up.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    text = file.getvalue()
    total = pickler.nbytes + len(text)
    if total <= INLINE:
        block = _storage_shared.private(bytearray(max(pickler.nbytes, 1)))
    else:
        block = _storage_shared.create(total)
    for start, tensor in pickler.tensors:
        if tensor.numel():
            _storage_shared.tensor_at(block, start, tensor.dtype, tuple(tensor.shape)).copy_(tensor)
    if total <= INLINE:
        data = block.read(0, pickler.nbytes) if pickler.nbytes else b""
        connection.send_bytes(pickle.dumps((header, bytes(data), text, 0, 0)))
        return
    block.write(pickler.nbytes, text)
    assert block.mapping is not None
    connection.send_bytes(pickle.dumps((header, None, None, pickler.nbytes, total)))
    reduction.send_handle(connection, block.mapping.fd, pid)


def receive(connection: Connection) -> tuple[tuple[Any, ...], Any]:
    """The header and a function that makes the value: an error in it is not one of the pipe.

    Raises:
        EOFError: the other end is gone.
        RuntimeError: the descriptor of the block did not come.
    """
    header, data, text, nbytes, total = pickle.loads(connection.recv_bytes())
    if text is not None:
        block = _storage_shared.private(bytearray(data)) if data else None
        return header, lambda: _Unpickler(io.BytesIO(text), block).load()
    shared = _storage_shared.received(connection, total)

    def load() -> object:
        return _Unpickler(io.BytesIO(shared.read(nbytes, total)), shared).load()

    return header, load
