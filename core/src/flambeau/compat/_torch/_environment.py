"""Whether a program runs at PyTorch's makers."""

__all__ = ["is_fbcode", "is_prod"]


def is_fbcode() -> bool:
    """False."""
    return False


def is_prod() -> bool:
    """False."""
    return False
