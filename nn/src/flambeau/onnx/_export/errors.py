"""What cannot be exported, and where it stands in the program."""

from __future__ import annotations

__all__ = ["CheckerError", "OnnxExporterError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """A model cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """A model has an op that no operator of ONNX, of the chosen opset, stands for."""


class CheckerError(OnnxExporterError):
    """What was exported is no valid model; it is a fault of a symbolic function."""
