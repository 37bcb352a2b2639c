"""Names of ``torch.overrides`` that only programs for PyTorch want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import enable_grad
from flambeau._tensor.function_modes import stack
from flambeau.overrides import TorchFunctionMode
from flambeau.utils._aten import Overload, Packet

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BaseTorchFunctionMode",
    "_get_current_function_mode",
    "enable_reentrant_dispatch",
    "resolve_name",
]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls what it sees."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


def enable_reentrant_dispatch() -> Any:
    """A block within ``__torch_dispatch__`` whose ops on tensors below are recorded."""
    return enable_grad()


def resolve_name(f: Any) -> str | None:
    """The name of a function that ``__torch_function__`` or a mode was told of."""
    if isinstance(f, Overload | Packet):
        return str(f)
    name = getattr(f, "__qualname__", None)
    if name is None:
        return None
    cls, _, method = name.rpartition(".")
    return f"torch.Tensor.{method}" if cls else f"torch.{name}"


def _get_current_function_mode() -> Any:
    """The innermost mode of this thread, None without one."""
    return stack.modes[-1] if stack.modes else None
