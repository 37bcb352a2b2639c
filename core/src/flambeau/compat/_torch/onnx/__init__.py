"""Exported programs, of which there are none."""

from __future__ import annotations

from enum import Enum

__all__ = ["OperatorExportTypes", "TrainingMode", "is_in_onnx_export"]


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
