"""Names of ``torch.overrides`` that only programs for PyTorch want."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.function_modes import stack
from flambeau.overrides import TorchFunctionMode

__all__ = ["BaseTorchFunctionMode", "_get_current_function_mode"]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls what it sees."""

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The innermost mode of this thread, None without one."""
    return stack.modes[-1] if stack.modes else None
