"""Whether mixed precision is on here, for which devices, and in which dtype.

A setting is a value of the running context, as gradient recording is: threads begin with it off,
and tasks of asyncio with what their creator had.
"""

from __future__ import annotations

import threading
import warnings
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flambeau._types import dtype as D
from flambeau._types.device import device as Device

if TYPE_CHECKING:
    from types import ModuleType


_BRAIN_FLOAT = frozenset({"cpu", "hpu", "ref", "xla"})
_NONE = frozenset({"meta"})
_KNOWN_ELSEWHERE = frozenset({"hip", "hpu", "ipu", "maia", "mps", "mtia", "privateuseone", "xla"})


@dataclass(frozen=True, slots=True)
class Setting:
    """What holds in a context.

    Attributes:
        on: the types of devices whose ops choose their dtype, each with the narrow one.
        chosen: the narrow dtypes that were set, for types whose ops do not choose, too.
        caching: whether narrow copies of weights are kept until the outermost block ends.
    """

    on: dict[str, D.dtype]
    chosen: dict[str, D.dtype]
    caching: bool


OFF = Setting({}, {}, True)
setting: ContextVar[Setting] = ContextVar("flambeau_autocast", default=OFF)
current = setting.get


class _Local(threading.local):
    nesting = 0

    def __init__(self) -> None:
        self.kept: dict[tuple[int, D.dtype, bool], tuple[Any, int, Any]] = {}


local = _Local()
"""Of a thread: how many blocks are open, and the narrow copies of weights."""


def _checked(device_type: object) -> str:
    """The type of a device that PyTorch, or a plugin, has."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _KNOWN_ELSEWHERE:
        Device(device_type)  # raises where no such type is known
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether a type of devices has mixed precision: all but ``"meta"``.

    >>> import flambeau as fb
    >>> fb.amp.is_autocast_available("cpu")
    True
    """
    return _checked(device_type) not in _NONE


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether ops on a type of devices choose their dtype here; without one, on CUDA devices.

    >>> import flambeau as fb
    >>> with fb.autocast("cpu"):
    ...     fb.is_autocast_enabled("cpu"), fb.is_autocast_enabled("cuda")
    (True, False)
    """
    return ("cuda" if device_type is None else _checked(device_type)) in current().on


def get_autocast_dtype(device_type: str) -> D.dtype:
    """The narrow dtype of a type of devices: bfloat16 on CPUs, float16 on others, or what was set.

    Raises:
        RuntimeError: the type has no mixed precision.

    >>> import flambeau as fb
    >>> fb.get_autocast_dtype("cpu"), fb.get_autocast_dtype("cuda")
    (torch.bfloat16, torch.float16)
    """
    if _checked(device_type) in _NONE:
        raise RuntimeError(f"{device_type!r} devices have no mixed precision")
    found = current().chosen.get(device_type)
    if found is not None:
        return found
    return D.bfloat16 if device_type in _BRAIN_FLOAT else D.float16


def is_autocast_cache_enabled() -> bool:
    """Whether narrow copies of weights are kept until the outermost block ends.

    >>> import flambeau as fb
    >>> fb.is_autocast_cache_enabled()
    True
    """
    return current().caching


def change(
    device_type: str,
    *,
    enabled: bool | None = None,
    dtype: D.dtype | None = None,
    caching: bool | None = None,
) -> None:
    """Let other things hold in this context from now on."""
    now = current()
    on, chosen = dict(now.on), dict(now.chosen)
    if dtype is not None:
        chosen[device_type] = dtype
    if enabled or (enabled is None and device_type in on):
        on[device_type] = chosen.get(device_type) or get_autocast_dtype(device_type)
    elif enabled is False:
        on.pop(device_type, None)
    setting.set(Setting(on, chosen, now.caching if caching is None else caching))


def switch() -> ModuleType:
    """The module that switches functions."""
    from flambeau.amp import _switch  # only who chooses dtypes needs the lists of functions

    return _switch


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Let ops on a type of devices choose their dtype from now on, in this thread, or not.

    With one argument it is about CUDA devices.  Blocks of `autocast` undo what they did; this
    function leaves that to its caller.

    >>> import flambeau as fb
    >>> fb.set_autocast_enabled("cpu", True); fb.is_autocast_enabled("cpu")
    True
    >>> fb.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        if not isinstance(device_type, bool):
            raise TypeError("set_autocast_enabled() needs `enabled`, whether to choose dtypes")
        device_type, enabled = "cuda", device_type
    kind = _checked(device_type)
    if enabled and kind in _NONE:
        raise RuntimeError(f"{kind!r} devices have no mixed precision")
    change(kind, enabled=bool(enabled))
    switch().hold(bool(current().on))


def set_autocast_dtype(device_type: str, dtype: D.dtype) -> None:
    """Choose the narrow dtype of a type of devices, in this thread.

    Raises:
        TypeError: `dtype` is none.

    >>> import flambeau as fb
    >>> fb.set_autocast_dtype("cpu", fb.float16); fb.get_autocast_dtype("cpu")
    torch.float16
    >>> fb.set_autocast_dtype("cpu", fb.bfloat16)
    """
    if not isinstance(dtype, D.dtype):
        raise TypeError(
            "set_autocast_dtype(): argument 'dtype' (position 2) must be flambeau.dtype, not "
            f"{type(dtype).__name__}"
        )
    if _checked(device_type) in _NONE:
        raise RuntimeError(f"{device_type!r} devices have no mixed precision")
    change(device_type, dtype=dtype)


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep narrow copies of weights until the outermost block ends, or do not.

    >>> import flambeau as fb
    >>> fb.set_autocast_cache_enabled(True)
    """
    setting.set(replace(current(), caching=bool(enabled)))


def clear_autocast_cache() -> None:
    """Forget the narrow copies of weights of this thread.

    >>> import flambeau as fb
    >>> fb.clear_autocast_cache()
    """
    local.kept.clear()


def autocast_increment_nesting() -> int:
    """Count a block in; the number of those that are open."""
    local.nesting += 1
    return local.nesting


def autocast_decrement_nesting() -> int:
    """Count a block out; the number of those that are open."""
    local.nesting -= 1
    return local.nesting


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"torch.{name}() is deprecated. Please use {instead} instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled` of CPUs, by its former name."""
    _deprecated("is_autocast_cpu_enabled", "torch.is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled` of CPUs, by its former name."""
    _deprecated("set_autocast_cpu_enabled", "torch.set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> D.dtype:
    """`get_autocast_dtype` of CPUs, by its former name."""
    _deprecated("get_autocast_cpu_dtype", "torch.get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: D.dtype) -> None:
    """`set_autocast_dtype` of CPUs, by its former name."""
    _deprecated("set_autocast_cpu_dtype", "torch.set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> D.dtype:
    """`get_autocast_dtype` of CUDA devices, by its former name."""
    _deprecated("get_autocast_gpu_dtype", "torch.get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: D.dtype) -> None:
    """`set_autocast_dtype` of CUDA devices, by its former name."""
    _deprecated("set_autocast_gpu_dtype", "torch.set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)
