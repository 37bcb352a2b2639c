"""Blocks and functions in which ops choose their dtype."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.amp import _setting
from flambeau.amp._setting import Setting, is_autocast_available

__all__ = [
    "autocast",
    "autocast_decorator",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]

_NARROW = (D.bfloat16, D.float16)


class autocast:  # noqa: N801 - PyTorch's name
    """Context manager and decorator: ops choose their dtype, narrow where that is safe.

    Inside, products and convolutions run in the narrow dtype, losses and other functions that need
    range or precision in float32, whatever float operands they are given (float64 is left alone);
    all others run as ever. PyTorch 2.13's lists of functions for CPUs and for other devices hold.
    Weights that require a gradient are converted once until the outermost block ends.  The backward
    pass runs in what the forward pass chose, and belongs outside of the block.

    Local to the thread.  Calls with ``out=`` and in-place methods choose nothing.

    Args:
        device_type: the type of the devices whose ops choose, such as ``"cpu"`` or ``"cuda"``.
        dtype: the narrow dtype, by default that of `get_autocast_dtype`.
        enabled: False makes a block in which ops run as ever, within another one too.
        cache_enabled: whether converted weights are kept; by default as outside.

    Raises:
        ValueError: `device_type` is no str.
        RuntimeError: there are no such devices.

    Warns:
        UserWarning: there is no CUDA device, or the dtype is not narrow: the block is disabled.

    Source: P. Micikevicius et al., Mixed precision training, ICLR 2018.

    >>> import flambeau as fb
    >>> x = fb.ones(2, 2)
    >>> with fb.autocast("cpu"):
    ...     y = x @ x
    ...     y.dtype, (y + x).dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: D.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        default = _setting.get_autocast_dtype(device_type)
        self.device = device_type
        self.fast_dtype = default if dtype is None else dtype
        self._cache_enabled = (
            _setting.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        if enabled and (why := _disabling(device_type, self.fast_dtype)):
            warnings.warn(why, stacklevel=2 if type(self) is autocast else 3)
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[Setting, bool]] = []

    def __enter__(self) -> Self:
        counted = bool(self._enabled)
        if counted:
            _setting.switch().count_in()
        self._before.append((_setting.current(), counted))
        _setting.autocast_increment_nesting()
        _setting.change(
            self.device,
            enabled=bool(self._enabled),
            dtype=self.fast_dtype,
            caching=bool(self._cache_enabled),
        )
        return self

    def __exit__(self, *exc: object) -> None:
        if _setting.autocast_decrement_nesting() == 0:
            _setting.clear_autocast_cache()
        before, counted = self._before.pop()
        _setting.setting.set(before)
        if counted:
            _setting.switch().count_out()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


def _disabling(device_type: str, dtype: D.dtype) -> str:
    """Why a block cannot be enabled; "" if it can."""
    if device_type == "cuda":
        from flambeau import cuda  # asks for a driver, which other devices need not

        if not cuda.is_available():
            return "CUDA is not available or torch_xla is imported. Disabling autocast."
    if dtype not in _NARROW:
        name = device_type.upper()
        return (
            f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{name} Autocast only supports dtypes of "
            + ", ".join(map(str, _NARROW))
            + " currently."
        )
    return ""


def autocast_decorator(autocast_instance: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs in a block like `autocast_instance`."""

    @functools.wraps(func)
    def decorate_autocast(*args: object, **kwargs: object) -> Tensor:
        block = copy.copy(autocast_instance)  # of this call: threads may share the function
        block._before = []
        with block:
            return func(*args, **kwargs)

    return decorate_autocast


def _cast(value: object, device_type: str, dtype: D.dtype) -> Any:
    """A value with its tensors in another dtype, in containers too."""
    if isinstance(value, Tensor):
        chooses = (
            value.dtype.is_floating_point
            and value.device.type == device_type
            and value.dtype is not D.float64
        )
        return value.to(dtype) if chooses else value
    if isinstance(value, (str, bytes)) or hasattr(value, "__array_interface__"):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        found = (_cast(v, device_type, dtype) for v in value)
        return type(value)(found) if isinstance(value, (list, tuple)) else found  # type: ignore[call-arg]
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: D.dtype | None = None,
) -> Callable[..., Any]:
    """Decorator for the ``forward`` of an `autograd.Function` that is called within autocasting.

    Args:
        fwd: the method.
        device_type: the type of devices whose blocks matter.
        cast_inputs: the dtype that float operands take, float64 ones excepted, and then its ops
            choose nothing; None lets them choose.  Without effect outside of a block.

    Raises:
        ValueError: `device_type` is no str.

    >>> import flambeau as fb
    >>> class Square(fb.autograd.Function):
    ...     @staticmethod
    ...     @fb.amp.custom_fwd(device_type="cpu", cast_inputs=fb.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @fb.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return 2 * g * ctx.saved_tensors[0]
    >>> with fb.autocast("cpu"):
    ...     Square.apply(fb.ones(2, dtype=fb.bfloat16)).dtype
    torch.float32
    """
    _need_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    method = fwd

    @functools.wraps(method)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Tensor:
        ctx = args[0]
        ctx._dtype = _setting.get_autocast_dtype(device_type)
        within = _setting.is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = within and cast_inputs is None
        if cast_inputs is None or not within:
            return method(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return method(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorator for the ``backward`` of a Function: ops choose as in its ``forward``.

    See `custom_fwd`, which belongs to it.

    Raises:
        ValueError: `device_type` is no str.
    """
    _need_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    method = bwd

    @functools.wraps(method)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Tensor:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return method(*args, **kwargs)

    return decorate_bwd


def _need_type(device_type: object) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
