"""What PyTorch's transforms of functions tell of a tensor."""

from __future__ import annotations

__all__ = ["is_batchedtensor", "is_functorch_wrapped_tensor", "is_gradtrackingtensor"]


def is_batchedtensor(tensor: object) -> bool:
    """False: no tensor is a batch in disguise."""
    return False


is_functorch_wrapped_tensor = is_gradtrackingtensor = is_batchedtensor
