"""Where storages come from and where they go: location tags and ``map_location``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._dispatch.bound import bind
from flambeau._memory.record import Storage
from flambeau._storages.untyped import UntypedStorage
from flambeau._types.device import device as Device
from flambeau.plugin.host import host

MapLocation = Callable[[Any, str], Any] | Device | str | dict[str, str] | None

_Tagger = Callable[[Any], str | None]
_Restorer = Callable[[Any, str], Any]


def _tag(storage: Any) -> str | None:
    found = storage.device
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
            f"the file has a storage of device {location!r}, which is not available here: install "
            f"a backend for {target.type!r}, or load with map_location='cpu' "
            f"(available: {', '.join(host.device_types())})"
        )
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


def location_tag(storage: Any) -> str:
    """The tag under which a storage is saved, such as ``"cpu"`` or ``"cuda:0"``."""
    for _, tagger, _ in _packages:
        if (tag := tagger(storage)) is not None:
            return tag
    raise RuntimeError(f"don't know how to determine the data location of {type(storage).__name__}")


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage moved to where its tag says."""
    for _, _, restore in _packages:
        if (found := restore(storage, location)) is not None:
            return found
    raise RuntimeError(f"don't know how to restore the data location {location!r} of a storage")


def restored(storage: UntypedStorage, location: str, map_location: MapLocation) -> UntypedStorage:
    """A CPU storage where `map_location` wants what was saved at `location`."""
    if map_location is None:
        return default_restore_location(storage, location)
    if isinstance(map_location, dict):
        return default_restore_location(storage, str(map_location.get(location, location)))
    if isinstance(map_location, bytes):
        return default_restore_location(storage, map_location.decode("ascii"))
    if isinstance(map_location, (str, Device)):
        return default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(
            "map_location must be a device, a string, a dict or a callable, not "
            f"{type(map_location).__name__}"
        )
    found = map_location(storage, location)
    if found is None:
        return default_restore_location(storage, location)
    return found.untyped()


def direct(location: str, map_location: MapLocation) -> Device | None:
    """The device for which no CPU storage is needed on the way, None if one is."""
    if len(_packages) > 1 or not (
        map_location is None or isinstance(map_location, (str, Device, dict))
    ):
        return None
    if isinstance(map_location, dict):
        location = str(map_location.get(location, location))
    elif map_location is not None:
        location = str(map_location)
    try:
        target = Device(location)
    except RuntimeError:
        return None
    known = target.type in host.device_types() and host.is_available(target.type)
    return target if known else None


def made(view: Any, dtype: Any, device: Any) -> UntypedStorage:
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
