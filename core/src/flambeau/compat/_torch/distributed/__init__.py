"""Several processes: there is one, and this says so."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ReduceOp",
    "get_rank",
    "get_world_size",
    "group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "reduce_op",
]


def is_available() -> bool:
    """False."""
    return False


is_initialized = is_mpi_available = is_nccl_available = is_available
is_gloo_available = is_ucc_available = is_torchelastic_launched = is_available


def get_rank(group: Any = None) -> int:
    """The number of this process in a group that there is not.

    Raises:
        ValueError: always.
    """
    raise ValueError("Default process group has not been initialized: flambeau has one process")


get_world_size = get_rank


class ReduceOp:
    """Names of reductions."""

    SUM, AVG, PRODUCT, MIN, MAX = "SUM", "AVG", "PRODUCT", "MIN", "MAX"
    BAND, BOR, BXOR, PREMUL_SUM = "BAND", "BOR", "BXOR", "PREMUL_SUM"


reduce_op = ReduceOp


class group:  # noqa: N801 - PyTorch's name
    """The group of all processes: there is none."""

    WORLD = None
