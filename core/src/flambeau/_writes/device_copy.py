"""Copies between devices: directly where a plugin offers it, else through host memory."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from flambeau._autograd import engine
from flambeau._autograd.modes import recording
from flambeau._autograd.node import Edges, next_seq
from flambeau._dispatch.dispatch import new, wrap
from flambeau._memory.views import edge
from flambeau._types.strides import contiguous_strides
from flambeau.plugin.accelerator import Accelerator
from flambeau.plugin.host import host

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType


class DeviceCopy(engine.DeviceMove):
    """A copy to another device; its gradient is copied back to ``args``, the source's backend."""

    __slots__ = ()

    title = "ToCopyBackward0"

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        if F.native:
            return (transferred(g, F, self.args),)
        return (moved_to(g, self.args),)


def moved_to(t: Tensor, be: BoundBackend, non_blocking: bool = False) -> Tensor:
    """`t` on another device, with history."""
    out = wrap(be, transferred(t._a, t._be, be, non_blocking), t.dtype)
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


def transferred(
    native: Any, source: BoundBackend, target: BoundBackend, non_blocking: bool = False
) -> Any:
    """A native array of another device with the same values.

    With `non_blocking`, copies from page-locked memory to an accelerator, and those to the host,
    which get page-locked memory, may be made later: when the current stream of the accelerator is
    there.

    Raises:
        NotImplementedError: the source is ``meta`` and has no values.
    """
    dtype = source.dtype_of(native)
    if target.device.type == "meta":
        return target.full(tuple(native.shape), 0, dtype)
    if source.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if non_blocking:
        if target.device.type == "cpu":
            made = _downloaded(native, source, dtype)
        else:
            made = _uploaded(native, source, target, dtype)
        if made is not None:
            return made
    copier = host.copier(source.device.type, target.device.type)
    if copier is not None:
        return copier(native, target.device.index or 0)
    data = source.backend.to_host(native)
    return target.placed(data, tuple(native.shape), dtype)


def _uploaded(native: Any, source: BoundBackend, target: BoundBackend, dtype: DType) -> None:
    """A copy of page-locked memory that an accelerator was asked for; None of other memory."""
    to, backend, shape = target.backend, source.backend, tuple(native.shape)
    if not isinstance(to, Accelerator) or source.device.type != "cpu" or not source.strided:
        return None
    if not prod(shape) or tuple(backend.strides(native)) != contiguous_strides(shape):
        return None
    address = backend.data_ptr(native)
    if not to.is_pinned(address):
        return None
    return to.upload(address, shape, dtype, target.device.index or 0, native)


def _downloaded(native: Any, source: BoundBackend, dtype: DType) -> Any:
    """New page-locked memory of the host that an accelerator was asked to fill, or None."""
    from flambeau._storages.foreign import frombuffer

    backend, shape = source.backend, tuple(native.shape)
    count = prod(shape)
    if not isinstance(backend, Accelerator) or not count:
        return None
    buffer = backend.pinned(count * dtype.itemsize)
    if buffer is None:
        return None
    out = frombuffer(buffer, dtype=dtype, count=count).view(shape)
    rows = _row_major(source, native)
    return out._a if backend.download(rows, out.data_ptr(), (rows, buffer)) else None


def _row_major(be: BoundBackend, native: Any) -> Any:
    """`native`, or a copy of it, row-major."""
    shape = tuple(native.shape)
    if be.strided and tuple(be.backend.strides(native)) != contiguous_strides(shape):
        return be.contiguous(native)
    return native


def downloaded_to(t: Tensor, src: Tensor) -> bool:
    """Whether an accelerator was asked to copy `src` into the page-locked memory of `t`."""
    backend = src._be.backend
    if (
        not isinstance(backend, Accelerator)
        or t.device.type != "cpu"
        or t.dtype is not src.dtype
        or t._a.shape != src._a.shape
        or not t.numel()
        or not t.is_contiguous()
        or not backend.is_pinned(t.data_ptr())
    ):
        return False
    rows = _row_major(src._be, src._a)
    return backend.download(rows, t.data_ptr(), (rows, t._a))
