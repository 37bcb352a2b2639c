"""A `cupy` for tests: two devices whose memory is the host's, and which compute at once.

It serves what the package asks of CuPy, so that the runtime of device type ``cuda`` runs where
there is no driver.  Values are there at once; streams note how much they were asked and how much of
it they have been waited for.  While one is recorded, calls are noted and made again by the graph.
What CUDA or CuPy would not bear is an error: arrays of another device than the current one in a
call, or in NumPy's hands, and a wait or a product by cuBLAS in a recording.  Memory that went back
to the pool is overwritten.
"""

from __future__ import annotations

import ctypes
import operator
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import on_host
from scipy import special

from flambeau_cupy.device.launch import Struct
from flambeau_cupy.source import FAMILIES, TYPES, families, text

COUNT, UNIT = 2, 512
local = threading.local()
log: list[tuple[Any, ...]] = []


class CUDARuntimeError(RuntimeError):
    NAMES: ClassVar[dict[int, str]] = {
        2: "cudaErrorMemoryAllocation: out of memory",
        900: "cudaErrorStreamCaptureUnsupported",
    }

    def __init__(self, status: int) -> None:
        super().__init__(self.NAMES.get(status, f"cudaError {status}"))
        self.status = status


class OutOfMemoryError(MemoryError):
    pass


def current() -> int:
    return getattr(local, "device", 0)


def set_device(index: int) -> None:
    assert 0 <= index < COUNT
    local.device = index


class Device:
    def __init__(self, index: int | None = None) -> None:
        self.id = current() if index is None else index
        self.compute_capability = "90"

    def __enter__(self) -> Device:
        local.stack = [*getattr(local, "stack", []), current()]
        set_device(self.id)
        return self

    def __exit__(self, *exc: object) -> None:
        *local.stack, before = local.stack
        set_device(before)

    def use(self) -> None:
        set_device(self.id)

    def synchronize(self) -> None:
        for (index, _), work in [*BaseStream.works.items()]:
            if index == self.id:
                if work.recorded is not None:
                    raise CUDARuntimeError(900)
                work.finished = work.asked


class Work:
    """What a stream was asked, and how much of it was waited for; of one address, one."""

    def __init__(self) -> None:
        self.asked = self.finished = 0
        self.recorded: list[Any] | None = None
        self.runs = False  # on its own, as what other processes take part in does

    def reached(self, place: int) -> bool:
        if self.runs:
            self.finished = self.asked
        return self.finished >= place


class BaseStream:
    works: ClassVar[dict[tuple[int, int], Work]] = defaultdict(Work)
    priority = 0

    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id = ptr, device_id

    @property
    def work(self) -> Work:
        return self.works[self.device_id, self.ptr]

    def use(self) -> BaseStream:
        assert self.device_id in (-1, current())
        streams()[current()] = self
        return self

    def __enter__(self) -> BaseStream:
        local.entered = [*getattr(local, "entered", []), get_current_stream()]
        return self.use()

    def __exit__(self, *exc: object) -> None:
        *local.entered, before = local.entered
        streams()[current()] = before

    @property
    def done(self) -> bool:
        return self.work.finished == self.work.asked

    def synchronize(self) -> None:
        if self.is_capturing():
            raise CUDARuntimeError(900)
        self.work.finished = self.work.asked

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        assert event.place is not None
        log.append(("wait", self.device_id, self.ptr, event))
        self.work.asked += 1

    def begin_capture(self, mode: Any = None) -> None:
        assert self.ptr and self.work.recorded is None
        self.work.recorded = []

    def is_capturing(self) -> bool:
        return self.work.recorded is not None

    def end_capture(self) -> Graph:
        assert self.work.recorded is not None
        made, self.work.recorded = Graph(self.work.recorded), None
        return made


class Stream(BaseStream):
    addresses: ClassVar[Iterator[int]] = count(4096)

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: int | None = None,
    ) -> None:
        assert not null and not ptds
        super().__init__(next(self.addresses), current())
        self.priority = max(-5, min(priority or 0, 0))


class ExternalStream(BaseStream):
    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__(ptr, device_id)


def streams() -> dict[int, Any]:
    if not hasattr(local, "streams"):
        local.streams = {}
    return local.streams


def get_current_stream(device_id: int = -1) -> Any:
    index = current() if device_id == -1 else device_id
    found = streams().get(index)
    return ExternalStream(0, -1) if found is None else found


def here() -> Work:
    """The work of the current stream."""
    return BaseStream.works[current(), get_current_stream().ptr]


class Graph:
    def __init__(self, calls: list[Any]) -> None:
        self.calls = calls

    def launch(self, stream: Any = None) -> None:
        for call in self.calls:
            call()


class Event:
    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        assert not interprocess or disable_timing
        self.timing, self.place = not disable_timing, None
        self.device_id, self.ptr = current(), 0

    place: tuple[Work, int] | None
    time = 0

    def record(self, stream: Any = None) -> None:
        stream = get_current_stream() if stream is None else stream
        index = current() if stream.device_id == -1 else stream.device_id
        assert index == self.device_id == current(), "an event of another device"
        work = BaseStream.works[index, stream.ptr]
        work.asked += 1
        self.place, self.time = (work, work.asked), len(log)
        log.append(("record", index, stream.ptr, self))

    @property
    def done(self) -> bool:
        return self.place is None or self.place[0].reached(self.place[1])

    def synchronize(self) -> None:
        if self.place is not None:
            self.place[0].finished = max(self.place[0].finished, self.place[1])


def get_elapsed_time(first: Event, last: Event) -> float:
    assert first.timing and last.timing and first.done and last.done
    return float(last.time - first.time)


class Memory:
    ptr = size = 0

    def __init__(self) -> None:
        self.device_id = current()


class Chunk(Memory):
    """Memory of a pool; it goes back when nothing refers to it."""

    def __init__(self, pool: Any, buffer: Any, size: int, stream: int) -> None:
        self.pool, self.buffer, self.stream = pool, buffer, stream
        self.ptr, self.size, self.device_id = ctypes.addressof(buffer), size, current()

    def __del__(self) -> None:
        ctypes.memset(self.ptr, 0xCB, self.size)  # what is read of it later is nothing
        self.pool.used -= self.size
        self.pool.free[self.stream].append(self.buffer)


class UnownedMemory(Memory):
    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        assert device_id >= 0
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        assert current() == self.device_id
        log.append(("copy", src.device_id, self.device_id))
        memcpy(self.ptr, src.ptr, size, 3, get_current_stream().ptr)


class Pool:
    """The blocks of one device."""

    def __init__(self) -> None:
        self.used = self.total = 0
        self.free: dict[int, list[Any]] = defaultdict(list)


class MemoryPool:
    limit = 1 << 40

    def __init__(self) -> None:
        self._pools: dict[int, Pool] = defaultdict(Pool)

    def malloc(self, size: int) -> MemoryPointer:
        if not size:
            return MemoryPointer(Memory(), 0)
        size, pool, stream = (
            -(-size // UNIT) * UNIT,
            self._pools[current()],
            get_current_stream().ptr,
        )
        free = pool.free[stream]
        found = next((b for b in reversed(free) if len(b) == size), None)
        if found is None:
            if pool.total + size > self.limit:
                raise OutOfMemoryError(size)
            pool.total += size
            found = (ctypes.c_char * size)()
        else:
            free.remove(found)
        pool.used += size
        if here().recorded is not None:  # what nothing is written to yet
            ctypes.memset(found, 0, size)
        return MemoryPointer(Chunk(pool, found, size, stream), 0)

    def used_bytes(self) -> int:
        return self._pools[current()].used

    def total_bytes(self) -> int:
        return self._pools[current()].total

    def free_all_blocks(self, stream: Any = None) -> None:
        pool = self._pools[current()]
        pool.total -= sum(len(b) for blocks in pool.free.values() for b in blocks)
        pool.free.clear()


allocator = MemoryPool().malloc


def set_allocator(function: Any) -> None:
    global allocator
    allocator = function


def alloc(size: int) -> MemoryPointer:
    return allocator(size)


pinned: list[weakref.ref[Any]] = []
"""Page-locked memory of the host, while somebody keeps it."""


def alloc_pinned_memory(size: int) -> Any:
    made = (ctypes.c_char * size)()
    pinned.append(weakref.ref(made))
    return made


def memcpy(target: int, source: int, size: int, kind: int, stream: int) -> None:
    def copy() -> None:
        ctypes.memmove(target, source, size)

    do(copy)


def do(work: Any) -> None:
    """Ask the current stream."""
    now = here()
    if now.recorded is not None:
        now.recorded.append(work)
        return
    now.asked += 1
    work()


def pointer_attributes(address: int) -> Any:
    for buffer in filter(None, [reference() for reference in pinned]):
        start = ctypes.addressof(buffer)
        if start <= address < start + len(buffer):
            return SimpleNamespace(type=1, device=0)
    return SimpleNamespace(type=0, device=-2)


def open_event(handle: bytes) -> int:
    return int.from_bytes(handle, "little")


class ndarray:  # noqa: N801 (CuPy's name)
    """An array on a device: NumPy's over the memory of a pool."""

    __array_ufunc__ = None

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None
    ) -> None:
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        self.data = alloc(size) if memptr is None else memptr
        raw = (ctypes.c_char * max(self.data.mem.size, size, 1)).from_address(
            self.data.mem.ptr or ctypes.addressof(_NOTHING)
        )
        offset = self.data.ptr - self.data.mem.ptr
        self._a: np.ndarray = np.ndarray(shape, kind, raw, offset, strides)
        self.base: ndarray | None = None

    @property
    def device(self) -> Device:
        return Device(self.data.device_id)

    def get(self, stream: Any = None, order: str = "C", out: Any = None) -> np.ndarray:
        get_current_stream(self.data.device_id).synchronize()
        return np.array(self._a, order=order)  # type: ignore[call-overload] - a str

    def scatter_add(self, key: Any, values: Any) -> None:
        call(np.add.at, self, key, values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._a, name)
        if isinstance(found, np.ndarray):
            return wrapped(found, [self])
        if callable(found):
            return lambda *args, **kwargs: call(getattr(np.ndarray, name), self, *args, **kwargs)
        return found

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __setitem__(self, key: Any, value: Any) -> None:
        call(operator.setitem, self, key, value)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.get())

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    __hash__ = None  # type: ignore[assignment] - as CuPy has it


ARITHMETIC = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
_NOTHING = (ctypes.c_char * 1)()


def _operators() -> None:
    def binary(function: Any, swapped: bool) -> Any:
        def run(self: Any, other: Any) -> Any:
            return call(function, other, self) if swapped else call(function, self, other)

        return run

    def inplace(function: Any) -> Any:
        def run(self: Any, other: Any) -> Any:
            call(function, self, other)
            return self

        return run

    for name in ARITHMETIC:
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(ndarray, f"__{name}__", binary(function, False))
        setattr(ndarray, f"__r{name}__", binary(function, True))
        if name != "matmul":
            setattr(ndarray, f"__i{name}__", inplace(getattr(operator, f"i{name}")))
    for name in "lt le eq ne gt ge getitem".split():
        setattr(ndarray, f"__{name}__", binary(getattr(operator, name), False))
    for name in "neg pos abs invert".split():
        function = getattr(operator, name)
        setattr(ndarray, f"__{name}__", lambda self, function=function: call(function, self))


_operators()


def wrapped(value: Any, operands: list[ndarray]) -> Any:
    """What NumPy returned: a view of an operand, or a new array of the current device."""
    if isinstance(value, (tuple, list)):
        return type(value)(wrapped(v, operands) for v in value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    if isinstance(value, np.ndarray) and value.size:
        address = value.__array_interface__["data"][0]
        for o in operands:
            memory = o.data.mem
            if memory.ptr <= address < memory.ptr + memory.size:
                if value is o._a:
                    return o
                pointer = MemoryPointer(memory, address - memory.ptr)
                view = ndarray(value.shape, value.dtype, pointer, value.strides)
                view.base = o if o.base is None else o.base
                return view
    return placed(np.asarray(value))


def placed(host: np.ndarray) -> ndarray:
    kept = np.array(host, order="K")  # without gaps, in the same order of memory
    made = ndarray(host.shape, host.dtype, alloc(kept.nbytes), kept.strides)
    made._a[...] = host
    return made


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of NumPy on arrays of the current device."""
    operands: list[ndarray] = []
    given = _plain(args, operands)
    named = {key: _plain(value, operands) for key, value in kwargs.items()}
    name = getattr(function, "__name__", "")
    looks = name in VIEWING or (name == "getitem" and len(operands) == 1)  # no array as index
    if not looks:
        assert all(o.data.device_id == current() for o in operands), "an array of another device"
    if name in WAITING and any(o._a.dtype == bool for o in operands[name == "getitem" :]):
        get_current_stream().synchronize()  # the size of the result is a value
    if name in PRODUCTS and here().recorded is not None:
        raise NotImplementedError("calling cuBLAS API during stream capture is unsupported")
    if name == "copy":
        log.append(("dense", current()))
    if name in WRITING:
        do(lambda: _quiet(function, given, named))
        return operands[0]
    made = wrapped(_quiet(function, given, named), operands)
    if here().recorded is not None and not name.startswith("empty"):
        for k, array in enumerate(made if isinstance(made, tuple) else (made,)):
            new = isinstance(array, ndarray) and array.base is None
            if new and not any(array is o for o in operands):
                here().recorded.append(partial(_again, array._a, k, function, given, named))  # type: ignore[union-attr]
    return made


WRITING = {*"setitem fill at copyto".split(), *(f"i{name}" for name in ARITHMETIC)}
VIEWING = {"reshape", "view", "transpose"}
PRODUCTS = {"matmul", "dot", "tensordot", "einsum"}
WAITING = {"nonzero", "getitem", "unique"}


def _quiet(function: Any, given: Any, named: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*given, **named)


def _again(out: np.ndarray, k: int, function: Any, given: Any, named: Any) -> None:
    """What a graph makes of the arrays of the recording."""
    made = _quiet(function, given, named)
    out[...] = made[k] if isinstance(made, tuple) else made


def _plain(value: Any, operands: list[ndarray]) -> Any:
    """NumPy's arrays in the place of ours, which are noted."""
    if isinstance(value, ndarray):
        operands.append(value)
        return value._a
    if isinstance(value, (tuple, list)):
        return type(value)([_plain(v, operands) for v in value])
    return value


def asarray(a: Any, dtype: Any = None, **kwargs: Any) -> ndarray:
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    if isinstance(a, np.ndarray) and here().recorded is not None:
        raise CUDARuntimeError(900)
    return placed(np.asarray(a, dtype))


def asnumpy(a: ndarray, order: str = "C", **kwargs: Any) -> np.ndarray:
    return a.get(order=order)


class RawModule:
    """A source of this package, run by the library for the host."""

    def __init__(self, code: str, options: Any = ()) -> None:
        self.code = code

    def get_function(self, name: str) -> Any:
        kind = _kinds().get(self.code)

        def launch(grid: Any, block: Any, args: Any) -> None:
            given = [_given(a) for a in args]
            grid = grid if len(grid) == 2 else grid[0]
            if kind is None:
                do(lambda: _program(name, self.code)(name, grid, block[0], *given))
            else:
                do(lambda: on_host.library(kind)(name, grid, block[0], *given))

        return launch


def _given(a: Any) -> Any:
    if isinstance(a, ndarray):
        assert a.data.device_id == current(), "an array of another device"
        return a._a
    return Struct(a) if isinstance(a, np.ndarray) else a


_made: dict[str, Any] = {}


def _kinds() -> dict[str, str]:
    """The dtype of each source."""
    if not _made:
        _made.update(
            {text(f, kind): kind for kind in TYPES for f in families(kind) if f in FAMILIES}
        )
    return _made  # type: ignore[return-value] - filled above


def _program(name: str, code: str) -> Any:
    key = f"program {name}"
    if key not in _made:
        kind = on_host._standard().get(name)
        _made[key] = (
            on_host.Library(code, [name], options=["-O0"])
            if kind is None
            else on_host._programs(kind, None)
        )
    return _made[key]


class Functions(ModuleType):
    """A module of functions on arrays, and of what has another name in NumPy."""

    def __init__(self, name: str, source: Any, **members: Any) -> None:
        super().__init__(name)
        self.__dict__.update(members)
        self.__path__: list[str] = []
        self._source = source

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._source, name)
        if isinstance(found, (type, np.dtype)) or not callable(found):
            return found
        return lambda *args, **kwargs: call(found, *args, **kwargs)


def modules() -> dict[str, ModuleType]:
    """What stands in ``sys.modules``."""
    runtime = ModuleType("cupy.cuda.runtime")
    runtime.__dict__.update(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: COUNT,
        getDevice=current,
        setDevice=set_device,
        getDeviceProperties=lambda index: {
            "name": f"Fake {index}".encode(),
            "totalGlobalMem": 1 << 30,
            "major": 9,
            "minor": 0,
            "multiProcessorCount": 4,
        },
        memGetInfo=lambda: (1 << 20, 1 << 30),
        memcpyAsync=memcpy,
        memcpyHostToDevice=1,
        memcpyDeviceToHost=2,
        memoryTypeHost=1,
        pointerGetAttributes=pointer_attributes,
        ipcGetEventHandle=lambda ptr: ptr.to_bytes(8, "little"),
        ipcOpenEventHandle=open_event,
        runtimeGetVersion=lambda: 12090,
        driverGetVersion=lambda: 12090,
    )
    memory = ModuleType("cupy.cuda.memory")
    memory.OutOfMemoryError = OutOfMemoryError  # type: ignore[attr-defined] - of a module made here
    ranges: list[str] = []
    nvtx = SimpleNamespace(Mark=log.append, RangePush=ranges.append, RangePop=lambda: ranges[:-1])
    cuda = ModuleType("cupy.cuda")
    cuda.__path__ = []
    cuda.__dict__.update(
        runtime=runtime, memory=memory, nvtx=nvtx, Device=Device, Stream=Stream, Event=Event,
        ExternalStream=ExternalStream, MemoryPool=MemoryPool, MemoryPointer=MemoryPointer,
        UnownedMemory=UnownedMemory, alloc=alloc, alloc_pinned_memory=alloc_pinned_memory,
        set_allocator=set_allocator, get_current_stream=get_current_stream,
        get_elapsed_time=get_elapsed_time,
    )  # fmt: skip
    cupy = Functions(
        "cupy",
        np,
        ndarray=ndarray,
        cuda=cuda,
        asarray=asarray,
        asnumpy=asnumpy,
        RawModule=RawModule,
    )
    functions = Functions("cupyx.scipy.special", special)
    scipy = ModuleType("cupyx.scipy")
    scipy.special = functions  # type: ignore[attr-defined] - the same
    return {
        "cupy": cupy,
        "cupy.cuda": cuda,
        "cupy.cuda.runtime": runtime,
        "cupy.cuda.memory": memory,
        "cupyx": ModuleType("cupyx"),
        "cupyx.scipy": scipy,
        "cupyx.scipy.special": functions,
    }


@contextmanager
def installed() -> Any:
    """A block in which this is CuPy, and the runtime of the package is made anew."""
    made_anew = "flambeau_cupy.backend", "flambeau_cupy.libraries.runtimes"
    ours = {**modules(), **dict.fromkeys(made_anew)}
    before = {name: sys.modules.pop(name, None) for name in ours}
    sys.modules.update({name: module for name, module in ours.items() if module is not None})
    log.clear()
    try:
        yield sys.modules["cupy"]
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
        local.__dict__.clear()
        pinned.clear()
        BaseStream.works.clear()
