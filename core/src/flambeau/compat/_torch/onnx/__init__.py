"""Exported programs, of which there are none."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

__all__ = [
    "OperatorExportTypes",
    "TrainingMode",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


class TrainingMode(Enum):
    """In which mode a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(Enum):
    """As what operators are exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_in_onnx_export() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int, **settings: object
) -> None:
    """Say how an op would be exported."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Take that back."""
