"""Names of engines."""

from __future__ import annotations

from typing import ClassVar


class Backend(str):
    """The name of an engine, in lower case; PyTorch's own are attributes.

    Raises:
        ValueError: it is no string.

    >>> import flambeau as fb
    >>> fb.distributed.Backend("GLOO"), fb.distributed.Backend.MPI
    ('gloo', 'mpi')
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    TCP = "tcp"
    UCC = "ucc"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, UCC, MPI]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}
    """The names that mean a type of devices, rather than a library, by the types."""

    def __new__(cls, name: str) -> str:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {name!r}")
        return name.lower()
