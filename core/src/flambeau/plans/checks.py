"""Checks of the library's own code, which a plan makes again in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flambeau._memory.record import is_tensor

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor

__all__ = ["check_all"]


def check_all(found: Tensor, value: Tensor, complaint: Callable[[], str]) -> None:
    """See to it that a test of a tensor found True everywhere.

    Raises:
        ValueError: it did not; the message is what `complaint` gives, and the tensor.
    """
    if is_tensor(value) and is_tensor(found) and value._be is found._be:
        check = getattr(found._be.backend, "check_all", None)  # of a capture, which checks again
        if check is not None and check(found._a, value._a, complaint):
            return
    if not found.all():
        raise ValueError(f"{complaint()}\n{value}")
