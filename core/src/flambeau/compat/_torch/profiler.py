"""Measuring with PyTorch's second profiler, of which only the marks are there."""

from __future__ import annotations

from enum import Enum

from flambeau.autograd.profiler import record_function

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "record_function"]


class ProfilerActivity(Enum):
    """What is measured."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3


class ProfilerAction(Enum):
    """What happens in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """False."""
    return False
