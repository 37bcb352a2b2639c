"""Whether new memory is filled where only deterministic algorithms are allowed."""

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory = True
