"""What flambeau-mpi contributes: the engine ``mpi``."""

from __future__ import annotations

from flambeau.plugin import Engine, hookimpl

api_version = "1.12"


@hookimpl
def flambeau_engines() -> list[Engine]:
    """The engine; MPI itself is loaded when a job starts."""
    from flambeau_mpi.engine import MpiEngine

    return [MpiEngine()]
