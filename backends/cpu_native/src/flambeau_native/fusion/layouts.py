"""What rewriting asks of the arrays and kernels of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.plugin import float32
from flambeau.plugin.plan import Plan
from flambeau_native.fusion.calls import is_row_major
from flambeau_numpy.extending import KERNELS as NUMPY

__all__ = ["VIEWS", "asks", "is_dense"]

VIEWS = frozenset("view permute slice as_strided expand detach diagonal unfold".split())


def asks(op: str, kernel: Callable[..., Any]) -> bool:
    """Whether a kernel of `op` asks what is offered as NumPy's does, whoever made it."""
    kernel = getattr(kernel, "__wrapped__", kernel)  # by what keeps channels last
    return getattr(kernel, "__code__", None) is NUMPY[op].__code__


def is_dense(plan: Plan, *slots: int) -> bool:
    """Whether arrays are of float32 and lie one element after the other."""
    return all(plan.specs[slot][1] is float32 and is_row_major(plan, slot) for slot in slots)
