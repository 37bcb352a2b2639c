"""Names of ``torch.utils._python_dispatch`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
)

__all__ = [
    "BaseTorchDispatchMode",
    "_pop_mode_temporarily",
    "any_torch_dispatch_mode_on_stack",
    "is_in_torch_dispatch_mode",
]


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls every op as it is."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return func(*args, **(kwargs or {}))


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread is in a block of a mode."""
    modes = _get_current_dispatch_mode_stack()
    return any(include_infra_modes or not mode.is_infra_mode() for mode in modes)


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether this thread is in a block of a mode."""
    return _get_current_dispatch_mode() is not None


@contextmanager
def _pop_mode_temporarily(k: object = None) -> Iterator[TorchDispatchMode]:
    """A block in which the innermost mode of this thread sees nothing."""
    mode = _get_current_dispatch_mode()
    if mode is None:
        raise AssertionError("there is no mode")
    modes = _get_current_dispatch_mode_stack()
    mode.__exit__(None, None, None)
    try:
        yield mode
    finally:
        if _get_current_dispatch_mode_stack() != modes:
            mode.__enter__()
