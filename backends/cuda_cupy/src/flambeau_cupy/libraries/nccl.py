"""Communication by NCCL, through CuPy's bindings of it.

NCCL makes kernels that wait for those of other processes, in the order of a stream. Three things
follow. A communicator has a stream of its own, which waits for what makes the arrays, so that what
the program computes meanwhile goes on. Calls are made by a thread of the communicator, since the
first ones wait on the host until the others have come; who waits for an operation only asks for its
event. And messages are held back until somebody asks how they get on, or a collective follows:
those that were begun together leave as one group, in which none has to wait for another.
"""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cupy
import numpy as np
from cupy.cuda import nccl, runtime

from flambeau.plugin import Communicator, Compared, Done, Job, Request, make_lock
from flambeau_cupy.dtypes import BFLOAT16

Array = Any
Call = Callable[[int], None]
"""A call of NCCL, given the address of a stream."""

_BYTES = nccl.NCCL_UINT8
_TYPES = {
    np.dtype("i1"): nccl.NCCL_INT8,
    np.dtype("u1"): nccl.NCCL_UINT8,
    np.dtype("i4"): nccl.NCCL_INT32,
    np.dtype("u4"): nccl.NCCL_UINT32,
    np.dtype("i8"): nccl.NCCL_INT64,
    np.dtype("u8"): nccl.NCCL_UINT64,
    np.dtype("f2"): nccl.NCCL_FLOAT16,
    np.dtype("f4"): nccl.NCCL_FLOAT32,
    np.dtype("f8"): nccl.NCCL_FLOAT64,
    BFLOAT16: nccl.NCCL_BFLOAT16,
}
_OPS = {
    "sum": nccl.NCCL_SUM,
    "product": nccl.NCCL_PROD,
    "min": nccl.NCCL_MIN,
    "max": nccl.NCCL_MAX,
}
# Truth values are bytes of 0 and 1.
_OF_TRUTH = {
    "sum": nccl.NCCL_MAX,
    "bor": nccl.NCCL_MAX,
    "max": nccl.NCCL_MAX,
    "product": nccl.NCCL_MIN,
    "band": nccl.NCCL_MIN,
    "min": nccl.NCCL_MIN,
}
_TOP = (1 << 32) - 1


def joined(job: Job) -> NcclCommunicator:
    """The communicator of all processes of a job.

    Raises:
        NcclError: NCCL refuses, for instance two processes with one device.
    """
    if job.rank == 0:
        job.set("id", nccl.get_unique_id())
    number, made = job.get("id"), list[Any]()

    def join() -> None:
        try:
            with cupy.cuda.Device(job.device):
                made.append(nccl.NcclCommunicator(job.size, number, job.rank))
        except Exception as error:  # of NCCL or CUDA: raised by who waits
            made.append(error)

    # It waits for all, which may have died: in a thread, so that a death is heard of.
    threading.Thread(target=join, daemon=True).start()
    job.wait(lambda: bool(made), "start of NCCL")
    if isinstance(made[0], Exception):
        raise made[0]
    return NcclCommunicator(made[0], job)


def _kind(array: Array, op: str) -> tuple[int, int, int] | None:
    """How NCCL combines such arrays: count, type and operation; None if it does not."""
    dtype, count = array.dtype, array.shape[0]
    if dtype == np.bool_:
        return None if op not in _OF_TRUTH else (count, _BYTES, _OF_TRUTH[op])
    if dtype.kind == "c" and op == "sum":
        dtype, count = np.dtype(f"f{dtype.itemsize // 2}"), 2 * count
    if dtype not in _TYPES or op not in _OPS:
        return None
    return count, _TYPES[dtype], _OPS[op]


def _address(array: Array) -> int:
    return array.data.ptr


def _whole(arrays: Sequence[Array]) -> bool:
    """Whether vectors of one size lie one after the other, as the parts of one do."""
    first, size = _address(arrays[0]), arrays[0].nbytes
    return all(_address(a) == first + i * size for i, a in enumerate(arrays))


class _Launched(Request):
    """Calls of NCCL, and the event at their end.

    Attributes:
        ready: events that their stream waits for first.
        kept: arrays that they use.
    """

    def __init__(
        self, comm: Any, calls: Sequence[Call], ready: Sequence[object], kept: object
    ) -> None:
        self.ready = ready
        self.kept = kept
        self._comm = comm
        self._calls = calls
        self._done: Any = None
        self._failure: Exception | None = None

    def run(self, stream: Any) -> None:
        """Make the calls; in the thread of the communicator."""
        try:
            for event in self.ready:
                stream.wait_event(event)
            for call in self._calls:
                call(stream.ptr)
            done = cupy.cuda.Event(disable_timing=True)
            done.record(stream)
            self._done = done
        except Exception as error:  # of NCCL or CUDA: who asks for the operation has to hear of it
            self._failure = error

    def test(self) -> bool:
        """Whether the device has done them."""
        if self._failure is not None:
            raise self._failure
        if self._done is None:
            return False
        if self._done.done:
            return True
        self._comm.check_async_error()  # of the network, by which the event would never come
        return False


class _Message(Request):
    """A message, which leaves with others: `launched` is theirs, once they have left."""

    def __init__(self, comm: NcclCommunicator, call: Call, array: Array, ready: object) -> None:
        self.call = call
        self.array = array
        self.ready = ready
        self.launched: _Launched | None = None
        self._comm = comm

    def test(self) -> bool:
        """Whether it has arrived."""
        if self.launched is None:
            self._comm.progress()
        return self.launched is not None and self.launched.test()


class _OfHost(Request):
    """A received message that belongs into host memory."""

    def __init__(self, message: Request, array: Array, target: bytearray) -> None:
        self._message = message
        self._array = array
        self._target = target

    def test(self) -> bool:
        """Whether it is there."""
        if not self._message.test():
            return False
        self._target[:] = cupy.asnumpy(self._array).tobytes()
        return True


class _Same(Compared):
    """The largest of a number and of its complement: equal exactly if all numbers are."""

    def __init__(self, launched: Request, sent: list[int], heard: np.ndarray) -> None:
        self._launched = launched
        self._sent = sent
        self._heard = heard

    def test(self) -> bool:
        """Whether all have said theirs."""
        if not self._launched.test():
            return False
        self.same = self._heard.tolist() == self._sent
        return True


class NcclCommunicator(Communicator):
    """The members of an NCCL communicator.

    Messages have no tags: those between two members are received in the order of their sending,
    and their sizes have to agree.
    """

    def __init__(self, comm: Any, job: Job) -> None:
        self.rank = job.rank
        self.size = job.size
        self.arithmetic = job.arithmetic
        self._comm = comm
        self._job = job
        self._messages: list[_Message] = []
        self._order = make_lock()
        self._asked: queue.SimpleQueue[_Launched | None] = queue.SimpleQueue()
        with cupy.cuda.Device(job.device):
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._words = cupy.empty(2, np.int64)
        threading.Thread(target=self._launch, daemon=True).start()

    def _launch(self) -> None:
        with cupy.cuda.Device(self._job.device):
            while (launched := self._asked.get()) is not None:
                launched.run(self._stream)

    def _ready(self) -> object:
        """An event at the end of what the program has asked its device for."""
        with cupy.cuda.Device(self._job.device):
            event = cupy.cuda.Event(disable_timing=True)
            event.record()
        return event

    def _checked(self, *arrays: Array) -> None:
        for array in arrays:
            if array.device.id != self._job.device:
                raise ValueError(
                    f"this process takes part with cuda:{self._job.device}, but a tensor is on "
                    f"cuda:{array.device.id}; cuda.set_device comes before the first operation"
                )

    def _ask(self, calls: Sequence[Call], *arrays: Array) -> Request:
        """Calls of one collective, which all messages that were begun before precede."""
        self._checked(*arrays)
        launched = _Launched(self._comm, calls, [self._ready()], arrays)
        with self._order:
            self._leave()
            self._asked.put(launched)
        return launched

    def _leave(self) -> None:
        """Let messages leave; by who holds the order."""
        if not self._messages:
            return
        group, self._messages = self._messages, []
        calls = [message.call for message in group]
        together = [lambda _: nccl.groupStart(), *calls, lambda _: nccl.groupEnd()]
        ready, arrays = [message.ready for message in group], [message.array for message in group]
        launched = _Launched(self._comm, together, ready, arrays)
        self._asked.put(launched)
        for message in group:
            message.launched = launched

    def progress(self) -> None:
        """Let messages leave that were begun."""
        with self._order:
            self._leave()

    def _message(self, call: Callable[..., None], array: Array, peer: int) -> Request:
        if not array.nbytes:
            return Done()
        self._checked(array)
        given = partial(call, _address(array), array.nbytes, _BYTES, peer)
        message = _Message(self, given, array, self._ready())
        with self._order:
            self._messages.append(message)
        return message

    def isend(self, array: Any, to: int, tag: int) -> Request:
        """ncclSend of the bytes; the tag means nothing."""
        if isinstance(array, bytes | bytearray):
            with cupy.cuda.Device(self._job.device):
                array = cupy.asarray(np.frombuffer(array, np.uint8))
        return self._message(self._comm.send, array, to)

    def irecv(self, array: Any, source: int | None, tag: int) -> Request:
        """ncclRecv of the bytes; the tag means nothing.

        Raises:
            RuntimeError: no source is named.
        """
        if source is None:
            raise RuntimeError("NCCL receives from a rank that is named: src is needed")
        if not isinstance(array, bytearray):
            return self._message(self._comm.recv, array, source)
        with cupy.cuda.Device(self._job.device):
            room = cupy.empty(len(array), np.uint8)
        return _OfHost(self._message(self._comm.recv, room, source), room, array)

    def compare(self, number: int) -> Compared:
        """ncclAllReduce of two integers, on their way from page-locked memory and back."""
        sent = [number, _TOP - number]
        memory = cupy.cuda.alloc_pinned_memory(16)
        words = np.frombuffer(memory, np.int64, 2)
        words[:] = sent
        host, device = words.ctypes.data, _address(self._words)
        into, back = runtime.memcpyHostToDevice, runtime.memcpyDeviceToHost
        calls: list[Call] = [
            lambda stream: runtime.memcpyAsync(device, host, 16, into, stream),
            partial(self._comm.allReduce, device, device, 2, nccl.NCCL_INT64, nccl.NCCL_MAX),
            lambda stream: runtime.memcpyAsync(host, device, 16, back, stream),
        ]
        # It reads nothing of the program's, so it waits for nothing that the program has asked.
        launched = _Launched(self._comm, calls, [], memory)
        with self._order:
            self._leave()
            self._asked.put(launched)
        return _Same(launched, sent, words)

    def broadcast(self, array: Any, root: int) -> Request:
        """ncclBroadcast of the bytes."""
        if not array.nbytes:
            return Done()
        place = _address(array)
        call = partial(self._comm.broadcast, place, place, array.nbytes, _BYTES, root)
        return self._ask([call], array)

    def all_reduce(self, array: Any, op: str) -> Request:
        """ncclAllReduce where NCCL knows dtype and operation; messages and kernels elsewhere."""
        if (kind := _kind(array, op)) is None:
            return super().all_reduce(array, op)
        if not array.nbytes:
            return Done()
        place = _address(array)
        return self._ask([partial(self._comm.allReduce, place, place, *kind)], array)

    def reduce(self, array: Any, root: int, op: str) -> Request:
        """ncclReduce, likewise."""
        if (kind := _kind(array, op)) is None:
            return super().reduce(array, root, op)
        if not array.nbytes:
            return Done()
        place = _address(array)
        return self._ask([partial(self._comm.reduce, place, place, *kind, root)], array)

    def all_gather(self, outputs: Sequence[Any], array: Any) -> Request:
        """ncclAllGather into what is one vector; messages into several."""
        if not array.nbytes or not _whole(outputs):
            return super().all_gather(outputs, array)
        places = _address(array), _address(outputs[0])
        call = partial(self._comm.allGather, *places, array.nbytes, _BYTES)
        return self._ask([call], array, *outputs)

    def reduce_scatter(self, output: Any, arrays: Sequence[Any], op: str) -> Request:
        """ncclReduceScatter of what is one vector; messages and kernels elsewhere."""
        if (kind := _kind(output, op)) is None or not _whole(arrays):
            return super().reduce_scatter(output, arrays, op)
        if not output.nbytes:
            return Done()
        places = _address(arrays[0]), _address(output)
        return self._ask([partial(self._comm.reduceScatter, *places, *kind)], output, *arrays)

    def close(self) -> None:
        """ncclCommAbort: what others wait for is over by now, and it waits for nobody."""
        with self._order:
            self._messages.clear()
            self._asked.put(None)
        self._comm.abort()
