"""Where storages come from and where they go: location tags and ``map_location``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.bound import bind
from flambeau._memory.record import Storage
from flambeau._memory.views import storage_of
from flambeau._storages.untyped import UntypedStorage
from flambeau._types import dtype as D
from flambeau._types.device import default_device
from flambeau._types.device import device as Device
from flambeau.ops.creation.creation import unfilled
from flambeau.plugin.host import host
from flambeau.serialization._budget import shown
from flambeau.serialization._source import Source

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


MapLocation = Callable[[Any, str], Any] | Device | str | dict[str, str] | None

_Tagger = Callable[[Any], str | None]
_Restorer = Callable[[Any, str], Any]


def _tag(storage: UntypedStorage) -> str | None:
    found = getattr(storage, "device", None)
    if not isinstance(found, Device):  # no storage of ours, nor a tensor
        return None
    if found.type in ("cpu", "meta") or found.index is None:
        return "cuda:0" if found.type == "cuda" else found.type
    return str(found)


def _restore(storage: Any, location: str) -> Any:
    try:
        target = Device(location)
    except RuntimeError:
        return None
    if target.type not in host.device_types() or not host.is_available(target.type):
        raise RuntimeError(
            f"Attempting to deserialize object on a {target.type.upper()} device: "
            f"the file has a storage of device {shown(location)}, which is not available here: "
            f"install a backend for {target.type!r}, or load with map_location='cpu' "
            f"(available: {', '.join(host.device_types())})"
        )
    if not hasattr(storage, "to"):
        raise TypeError(f"a storage is needed, not {type(storage).__name__}")
    return storage.to(device=target)


_packages: list[tuple[int, _Tagger, _Restorer]] = [(20, _tag, _restore)]


def register_package(priority: int, tagger: _Tagger, deserializer: _Restorer) -> None:
    """Teach `save` and `load` a kind of place for storages.

    Args:
        priority: lower ones are asked first; the library's own entry has 20.
        tagger: gives the tag of a storage that is there, else None.
        deserializer: moves a CPU storage to the place of a tag; None if the tag is not its.

    >>> import flambeau as fb
    >>> fb.serialization.register_package(
    ...     50, lambda s: None, lambda s, tag: s if tag == "attic" else None
    ... )
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


@takes_as_annotated
def location_tag(storage: object) -> str:
    """The tag under which a storage is saved, such as ``"cpu"`` or ``"cuda:0"``."""
    for _, tagger, _ in _packages:
        if (tag := tagger(storage)) is not None:
            return tag
    raise RuntimeError(f"don't know how to determine the data location of {type(storage).__name__}")


def default_restore_location(storage: object, location: str) -> Any:
    """A storage moved to where its tag says."""
    for _, _, restore in _packages:
        if (found := restore(storage, location)) is not None:
            return found
    raise RuntimeError(
        f"don't know how to restore the data location {shown(location)} of a storage"
    )


def _tame(location: str) -> str:
    """Where a file may put a storage: not on `ref`, whose numbers are Python objects and take ten
    times the memory, unless that is the program's default device."""
    kind, default = location.partition(":")[0], default_device()
    if kind != "ref" or (default is not None and default.type == kind):
        return location
    return "cpu" if "cpu" in host.device_types() else location


def _wanted(location: str, map_location: object) -> str:
    """The name of the place of what was saved at `location`, if `map_location` is no function."""
    if map_location is None:
        return _tame(location)
    if isinstance(map_location, dict):
        return str(map_location[location]) if location in map_location else _tame(location)
    if isinstance(map_location, bytes):
        return map_location.decode("ascii")
    return str(map_location)


def restored(storage: UntypedStorage, location: str, map_location: MapLocation) -> UntypedStorage:
    """A CPU storage where `map_location` wants what was saved at `location`."""
    if map_location is None or isinstance(map_location, (str, bytes, Device, dict)):
        return default_restore_location(storage, _wanted(location, map_location))
    if not callable(map_location):
        raise TypeError(
            "map_location must be a device, a string, a dict or a callable, not "
            f"{type(map_location).__name__}"
        )
    found = map_location(storage, location)
    if found is None:
        return default_restore_location(storage, _tame(location))
    return found.untyped()


def direct(location: str, map_location: MapLocation) -> Device | None:
    """The device for which no CPU storage is needed on the way, None if one is."""
    if len(_packages) > 1 or not (
        map_location is None or isinstance(map_location, (str, Device, dict))
    ):
        return None
    try:
        target = Device(_wanted(location, map_location))
    except RuntimeError:
        return None
    known = target.type in host.device_types() and host.is_available(target.type)
    return target if known else None


def visible(size: int, dtype: DType, device: Any) -> tuple[UntypedStorage, memoryview] | None:
    """A new storage of `size` bytes, whose numbers are not set, and its memory.

    None where the host does not see the device's memory.
    """
    be = bind(device)
    if not be.strided or be.device.type == "meta" or sys.byteorder != "little":
        return None
    st = storage_of(unfilled(be, (size // dtype.itemsize,), dtype))
    try:
        memory = memoryview(st.vector(D.uint8))
    except TypeError:
        return None
    if memory.readonly or memory.nbytes != size:
        return None
    st.shared = True
    return UntypedStorage._of(st), memory


def fill(storage: UntypedStorage, source: Source, start: int, size: int) -> None:
    """Put `size` bytes of a file from `start` on into a storage."""
    st = storage._st
    memory = None
    if st._be.strided and sys.byteorder == "little":
        with contextlib.suppress(TypeError):
            memory = memoryview(st.vector(D.uint8))
    if memory is None or memory.readonly:
        st.write(0, bytes(source.view(start, start + size)))
    else:
        source.into(start, memory[:size])


def made(view: Any, dtype: DType, device: Any) -> UntypedStorage:
    """A storage on a device from a copy of little-endian bytes."""
    be = bind(device)
    count = memoryview(view).nbytes // dtype.itemsize
    if be.device.type == "meta":
        native = be.full((count,), 0, dtype)
    else:
        native = be.backend.from_host(view, (count,), dtype, be.device.index or 0)
    st = Storage(native, be, dtype)
    st.shared = True
    if not be.strided:
        st.aliases = []
    return UntypedStorage._of(st)
