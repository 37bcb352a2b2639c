"""``flambeau.<device type>``: what a program may ask of one type of devices."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from flambeau._tensor.legacy import LegacyTensorType
from flambeau._types import dtype as D
from flambeau.accelerator._comm import Communication
from flambeau.accelerator._memory import Memory
from flambeau.accelerator._random import Random
from flambeau.accelerator._ranges import Ranges
from flambeau.accelerator._runtime import Runtime
from flambeau.accelerator._streams import Event, Selected, Stream
from flambeau.plugin.accelerator import DeviceProperties, OutOfMemoryError

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.device import device as Device
    from flambeau._types.hints import DeviceLike


class CurrentDevice:
    """A block in which a device is the current one of its type.

    Args:
        device: an index, a device or its name; None or a negative index changes nothing.
    """

    runtime: Runtime

    def __init__(self, device: DeviceLike | None) -> None:
        self._wanted = device
        self._before: list[int | None] = []

    def __enter__(self) -> None:
        wanted = self._wanted
        if wanted is None or (isinstance(wanted, int) and wanted < 0):
            self._before.append(None)
            return
        index, backend = self.runtime.index(wanted), self.runtime.needed()
        self._before.append(backend.current_device())
        backend.set_device(index)

    def __exit__(self, *exc: object) -> None:
        if (index := self._before.pop()) is not None:
            self.runtime.needed().set_device(index)


class DeviceOf(CurrentDevice):
    """A block in which the device of a tensor or storage is current; of others, as before.

    Args:
        obj: the tensor or storage.
    """

    def __init__(self, obj: Tensor) -> None:
        where = obj.device
        super().__init__(where.index if where.type == self.runtime.device_type else None)


class DeviceNamespace:
    """The devices of one type: which there are, their streams, memory and random numbers.

    Attributes:
        Stream: the class of its streams.
        Event: the class of its events.
        device: a block in which a device is current.
        device_of: a block in which a tensor's device is current.
        comm: copies between several devices.
        nvtx: ranges for the vendor's profiler.
        OutOfMemoryError: raised when a device has no memory left.

    Nothing is loaded before the first question. Where there is no device, questions that can be
    answered are (there are 0 devices, 0 bytes are used); others raise what is missing.

    >>> import flambeau as fb
    >>> fb.accelerator.namespace("absent").is_available()
    False
    """

    OutOfMemoryError = OutOfMemoryError

    def __init__(self, device_type: str, module: str | None = None) -> None:
        if not isinstance(device_type, str):
            raise TypeError(f"a type of devices is a string, not {type(device_type).__name__}")
        self._runtime = runtime = Runtime(device_type)
        module = module or f"torch.{device_type}"
        members = {"runtime": runtime, "__module__": module}
        self.Event: type[Event] = type("Event", (Event,), {**members, "__doc__": Event.__doc__})
        event = self.Event
        self.Stream: type[Stream] = type(
            "Stream",
            (Stream,),
            {**members, "__doc__": Stream.__doc__, "_event_class": lambda self: event},
        )
        self.device: type[CurrentDevice] = type(
            "device", (CurrentDevice,), {**members, "__doc__": CurrentDevice.__doc__}
        )
        self.device_of: type[DeviceOf] = type(
            "device_of", (DeviceOf,), {**members, "__doc__": DeviceOf.__doc__}
        )
        self.comm = Communication(runtime)
        self.nvtx = Ranges(runtime)
        self._memory, self._random = Memory(runtime), Random(runtime)
        for part in (self._memory, self._random):
            for name in vars(type(part)):
                if not name.startswith("_"):
                    setattr(self, name, getattr(part, name))

    def __repr__(self) -> str:
        return f"<devices of type {self._runtime.device_type!r}: {self.device_count()}>"

    def is_available(self) -> bool:
        """Whether there is a device that can be used."""
        return self.device_count() > 0

    def device_count(self) -> int:
        """How many devices there are; 0, not an error, without driver or package."""
        return self._runtime.device_count()

    def init(self) -> None:
        """Load the package and the driver, which the first use does as well.

        Raises:
            RuntimeError: something is missing; the message says what.
        """
        self._runtime.needed()

    def is_initialized(self) -> bool:
        """Whether a device has been used, or `init` called."""
        return self._runtime.used()

    def current_device(self) -> int:
        """The index of the device that a name without index stands for.

        Raises:
            RuntimeError: there is no device.
        """
        return self._runtime.index()

    def set_device(self, device: Device | int | str) -> None:
        """Make a device the current one of this thread; a negative index changes nothing.

        Raises:
            RuntimeError: there is no such device.
        """
        if isinstance(device, int) and device < 0:
            return
        index = self._runtime.index(device)
        self._runtime.needed().set_device(index)

    def get_device_properties(self, device: DeviceLike | None = None) -> DeviceProperties:
        """Name, memory and capability of a device.

        Raises:
            RuntimeError: there is no such device.
        """
        backend = self._runtime.needed()
        return backend.properties(self._runtime.index(device))

    def get_device_name(self, device: DeviceLike | None = None) -> str:
        """The product name of a device, by default of the current one."""
        return self.get_device_properties(device).name

    def get_device_capability(self, device: DeviceLike | None = None) -> tuple[int, int]:
        """The two numbers of the compute capability, by default of the current device."""
        found = self.get_device_properties(device)
        return found.major, found.minor

    def synchronize(self, device: DeviceLike | None = None) -> None:
        """Wait until a device, by default the current one, has done all it was asked.

        Raises:
            RuntimeError: there is no such device.
        """
        backend = self._runtime.backend()
        backend.synchronize(self._runtime.index(device))

    def current_stream(self, device: DeviceLike | None = None) -> Stream:
        """The stream on which this thread asks for work on a device."""
        backend, index = self._runtime.needed(), self._runtime.index(device)
        return self.Stream._of(index, backend.current_stream(index))

    def default_stream(self, device: DeviceLike | None = None) -> Stream:
        """The stream that a device has from the start."""
        backend, index = self._runtime.needed(), self._runtime.index(device)
        return self.Stream._of(index, backend.default_stream(index))

    def stream(self, stream: Stream | None) -> Selected:
        """A block in which `stream` is current, and its device; None changes nothing.

        It is selected on its own device only: other devices keep theirs.
        """
        return Selected(self._runtime, stream)

    def set_stream(self, stream: Stream | None) -> None:
        """Make a stream, and its device, the current ones; None changes nothing."""
        if stream is not None:
            backend = self._runtime.needed()
            backend.set_device(stream._index)
            backend.set_stream(stream._index, stream._native)


@cache
def namespace(device_type: str) -> DeviceNamespace:
    """The devices of a type, whether or not a package serves it.

    >>> import flambeau as fb
    >>> fb.accelerator.namespace("cpu").device_count()
    1
    """
    return DeviceNamespace(device_type)


def legacy_types(device_type: str) -> dict[str, LegacyTensorType]:
    """The legacy tensor types of a device type, such as ``FloatTensor``, by name."""
    return {D.TENSOR_TYPE_NAMES[d]: LegacyTensorType(d, device_type) for d in D.ALL}
