"""Names of ``torch.multiprocessing`` that only programs for PyTorch want."""

__all__ = ["_supports_context"]

_supports_context = True
"""Whether there are contexts of start methods: Python 2 had none."""
