"""What functions of nn refuse: what is no tensor, and requests that no memory holds."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor

_MANY = 1 << 14
_LEAST = 4096  # bytes that a module takes without its parameters


def require_tensors(where: str, **given: object) -> None:
    """Refuse what is no tensor among the arguments of these names.

    Raises:
        TypeError: one is none.
    """
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{where}(): argument {name!r} must be Tensor, not {type(value).__name__}"
            )


def refused(error: AttributeError, where: str, **given: object) -> Exception:
    """What to raise after an attribute was missing: an argument may be no tensor.

    For functions in which a check beforehand would be felt.
    """
    try:
        require_tensors(where, **given)
    except TypeError as worded:
        return worded
    return error


def need_room(count: int, size: int) -> None:
    """Raise unless there is memory for `count` modules of `size` bytes of parameters each.

    Raises:
        RuntimeError: there is not; a MemoryError too.
    """
    if count > _MANY:
        fb.empty((count, max(size, _LEAST)), dtype=fb.uint8, device="cpu")
