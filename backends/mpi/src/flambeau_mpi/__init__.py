"""MPI between the processes of `flambeau.distributed`, without mpiexec."""

__version__ = "0.1.0"
