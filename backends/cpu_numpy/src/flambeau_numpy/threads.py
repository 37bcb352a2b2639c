"""How many threads the matrix products of NumPy, and kernels of other providers, may use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from threadpoolctl import ThreadpoolController

followers: dict[str, Callable[[int], None]] = {}
"""Other providers of kernels, by name, that want to be told the number of threads."""


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def get_num_threads() -> int:
    """Number of threads that the BLAS library of NumPy uses (1 if it has no pool)."""
    return max((library["num_threads"] or 1 for library in _blas().info()), default=1)


def set_num_threads(count: int) -> None:
    """Let the BLAS library of NumPy, and the `followers`, use `count` threads in this process.

    Raises:
        RuntimeError: `count` is not positive.
    """
    if count < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {count}")
    for library in _blas().lib_controllers:
        library.set_num_threads(count)
    for follow in followers.values():
        follow(count)


def blas_name() -> str:
    """Name and version of the BLAS library, such as ``openblas 0.3.31``."""
    found = [f"{lib['internal_api']} {lib['version']}" for lib in _blas().info()]
    return ", ".join(found) or "none found"
