"""What a compiler raises: nothing does."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed",
    "TensorifyScalarRestartAnalysis",
    "TorchDynamoException",
    "Unsupported",
]


class TorchDynamoException(RuntimeError):  # noqa: N818 - PyTorch's name
    """Never raised."""


class BackendCompilerFailed(TorchDynamoException):
    """Never raised."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """Never raised."""


class Unsupported(TorchDynamoException):
    """Never raised."""
