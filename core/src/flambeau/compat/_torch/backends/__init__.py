"""Names of ``torch.backends`` that only programs for PyTorch want."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

__all__ = ["__allow_nonbracketed_mutation"]


def __allow_nonbracketed_mutation() -> AbstractContextManager[None]:
    """A block in which switches may be set: they may be anywhere."""
    return nullcontext()
