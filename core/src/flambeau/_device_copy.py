"""Copies between devices: directly where a plugin offers it, else through host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._dispatch import new, wrap
from flambeau._modes import recording
from flambeau._views import edge
from flambeau.autograd import engine
from flambeau.autograd.node import next_seq

if TYPE_CHECKING:
    from flambeau._bound import BoundBackend
    from flambeau._tensor import Tensor


class DeviceCopy(engine.DeviceMove):
    """A copy to another device; its gradient is copied back to ``args``, the source's backend."""

    __slots__ = ()

    title = "ToCopyBackward0"

    def apply(self, F: Any, g: Any) -> tuple[Any, ...]:
        if F.native:
            return (transferred(g, F, self.args),)
        return (moved_to(g, self.args),)


def moved_to(t: Tensor, be: BoundBackend) -> Tensor:
    """`t` on another device, with history."""
    out = wrap(be, transferred(t._a, t._be, be), t.dtype)
    if t._rg and recording() and (e := edge(t)) is not None:
        engine.several_devices = True
        n = new(DeviceCopy)
        n._hooks = None
        n.args = t._be
        n.edges = (e,)
        n.saved = ()
        n.seq = next_seq()
        out._fn, out._rg = n, True
    return out


def transferred(native: Any, source: BoundBackend, target: BoundBackend) -> Any:
    """A native array of another device with the same values.

    Raises:
        NotImplementedError: the source is ``meta`` and has no values.
    """
    from flambeau.plugin.host import host

    dtype = source.dtype_of(native)
    if target.device.type == "meta":
        return target.full(tuple(native.shape), 0, dtype)
    if source.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    copier = host.copier(source.device.type, target.device.type)
    if copier is not None:
        return copier(native, target.device.index or 0)
    data = source.backend.to_host(native)
    return target.backend.from_host(data, tuple(native.shape), dtype, target.device.index or 0)
