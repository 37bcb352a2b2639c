"""Names of ``torch.autograd`` that only programs for PyTorch want."""

__all__ = ["_is_checkpoint_valid", "kineto_available"]


def _is_checkpoint_valid() -> bool:
    """Whether parts of a network may be computed again in a backward pass: in all of them."""
    return True


def kineto_available() -> bool:
    """False: that library of PyTorch's profiler is not there."""
    return False
