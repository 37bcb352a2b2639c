"""The CPU fallback: an op without kernel on its device runs on the CPU, if the user asked for that.

It is off by default, because hidden copies between devices make programs slow for no visible
reason. When it is on, every use is counted and the first use of each op on each device warns.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from flambeau.plugin.forks import make_lock
from flambeau.plugin.hookspecs import hookimpl
from flambeau.plugin.validation import writes_or_aliases

if TYPE_CHECKING:
    from flambeau.plugin.activation import Activation
    from flambeau.plugin.backend import Backend
    from flambeau.plugin.kernels import Kernel

_process_wide = False
_here: ContextVar[bool | None] = ContextVar("flambeau_cpu_fallback", default=None)
_uses: Counter[tuple[str, str]] = Counter()
_warned: set[tuple[str, str]] = set()
_lock = make_lock()


class FallbackWarning(UserWarning):
    """An op ran on the CPU because its device has no kernel for it."""


def set_cpu_fallback(enabled: bool) -> None:
    """Let ops that a device lacks run on the CPU, in this whole process.

    Inputs are copied to the CPU and results back at each call.  Ops that write into an argument are
    refused all the same.

    >>> import flambeau as fb
    >>> fb.set_cpu_fallback(True); fb.set_cpu_fallback(False)
    """
    global _process_wide
    _process_wide = bool(enabled)


@contextmanager
def cpu_fallback(enabled: bool = True) -> Iterator[None]:
    """Context manager (and decorator): the CPU fallback is on, or off, inside the block.

    It holds for the current thread or asyncio task and wins over `set_cpu_fallback`.

    >>> import flambeau as fb
    >>> with fb.cpu_fallback():
    ...     y = fb.ones(2).erf()
    """
    token = _here.set(bool(enabled))
    try:
        yield
    finally:
        _here.reset(token)


def is_cpu_fallback_enabled() -> bool:
    """Whether an op without kernel would run on the CPU here.

    >>> import flambeau as fb
    >>> fb.is_cpu_fallback_enabled()
    False
    """
    here = _here.get()
    return _process_wide if here is None else here


def cpu_fallback_counts() -> dict[tuple[str, str], int]:
    """How often the CPU stood in, by (op, device type), since the process began.

    >>> import flambeau as fb
    >>> fb.cpu_fallback_counts().get(("erf", "toy"), 0)
    0
    """
    with _lock:
        return dict(_uses)


class CpuFallback:
    """The plugin behind `set_cpu_fallback`; it answers last."""

    def __init__(
        self,
        activate: Callable[[str], Activation],
        missing_kernel_error: Callable[[str, str], Exception],
    ) -> None:
        self._activate = activate  # both of the host that this one serves
        self._missing_kernel_error = missing_kernel_error

    @hookimpl(trylast=True)
    def flambeau_missing_kernel(self, op: str, device_type: str) -> Kernel | None:
        """A kernel that runs `op` on the CPU, if that is wanted and copies keep its meaning."""
        if not is_cpu_fallback_enabled() or device_type == "cpu":
            return None
        device = self._activate(device_type).backend
        if writes_or_aliases(op, strided=device.strided):
            return None
        try:
            cpu = self._activate("cpu")
        except RuntimeError as error:
            error.add_note(f"The CPU fallback of op {op!r} for device {device_type!r} needs it.")
            raise
        if (kernel := cpu.kernels.get(op)) is None:
            return None
        return self._kernel(op, device, cpu.backend, kernel)

    def _kernel(self, op: str, device: Backend, cpu: Backend, kernel: Kernel) -> Kernel:
        def run_on_cpu(*args: object) -> Any:
            # Asked at each call: this kernel may be kept beyond the block that switched it on.
            if not is_cpu_fallback_enabled():
                raise self._missing_kernel_error(op, device.device_type)
            _record(op, device.device_type)
            index = _device_index(args, device)
            result = kernel(*(_copied(arg, device, cpu, 0) for arg in args))
            if isinstance(result, tuple):
                return tuple(home(part, index) for part in result)
            return home(result, index)

        def home(result: object, index: int) -> Any:
            array = result if isinstance(result, cpu.array) else cpu.to_array(result)
            return _copied(array, cpu, device, index)

        return run_on_cpu


def _copied(value: Any, source: Backend, target: Backend, index: int) -> Any:
    """`value` with every array of `source` in it copied to `target`; other values as they are."""
    if isinstance(value, source.array):
        data = source.to_host(value)
        return target.from_host(data, tuple(value.shape), source.dtype_of(value), index)
    if type(value) in (tuple, list):
        return type(value)(_copied(part, source, target, index) for part in value)
    return value


def _device_index(args: tuple[Any, ...], device: Backend) -> int:
    """The index of the device of the first array among `args`; the current one if there is none."""
    for arg in args:
        for part in arg if type(arg) in (tuple, list) else (arg,):
            if isinstance(part, device.array):
                return device.index_of(part)
    return device.current_device()


def _record(op: str, device_type: str) -> None:
    key = (op, device_type)
    with _lock:
        _uses[key] += 1
        first = key not in _warned
        _warned.add(key)
    if first:
        warnings.warn(
            f"op {op!r} has no kernel for device {device_type!r} and runs on the CPU: its "
            "arguments and results are copied at each call. "
            "flambeau.cpu_fallback_counts() says how often",
            FallbackWarning,
            stacklevel=3,
        )
