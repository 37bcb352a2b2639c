"""What is known of the processor."""

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """``"DEFAULT"``: kernels choose their instructions themselves."""
    return "DEFAULT"
