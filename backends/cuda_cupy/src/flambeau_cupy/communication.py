"""What flambeau-cupy contributes to `flambeau.distributed`: the engine ``nccl``."""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

import importlib.util
import warnings

from flambeau.plugin import Communicator, Engine, Job, hookimpl

api_version = "1.14"


class NcclEngine(Engine):
    """NCCL for arrays of CUDA devices, one device in each process."""

    name = "nccl"
    devices = ("cuda",)
    tags = False
    eager = False

    def unavailable(self) -> str | None:
        """What is not there: CuPy, NCCL or a device."""
        if importlib.util.find_spec("cupy") is None:
            return "CuPy is not installed: pip install 'cupy-cuda12x>=14.0' or 'cupy-cuda13x>=14.0'"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is said of a library that is not found
            from cupy.cuda import nccl, runtime
        if not nccl.available:
            return "NCCL is not installed: pip install nvidia-nccl-cu12 or nvidia-nccl-cu13"
        try:
            runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            return f"there is no CUDA device: {error}"
        return None

    def start(self, job: Job) -> Communicator:
        """Join the communicator of a group's processes."""
        from flambeau_cupy.libraries.nccl import joined

        return joined(job)


@hookimpl
def flambeau_engines() -> list[Engine]:
    """The engine; NCCL itself is loaded when a job starts."""
    return [NcclEngine()]
