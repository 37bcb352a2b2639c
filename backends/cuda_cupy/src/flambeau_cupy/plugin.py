"""What the plugin host asks of this package; CuPy is imported when the device is first used."""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from flambeau.plugin import KernelSet, hookimpl
from flambeau_cupy import __version__

if TYPE_CHECKING:
    from flambeau.plugin import Backend
    from flambeau.plugin.kernels import Copier

api_version = "1.7"


@hookimpl
def flambeau_backend(device_type: str) -> Backend | None:
    """The runtime of ``cuda``.

    Raises:
        ModuleNotFoundError: CuPy is not installed; the message says which wheel to take.
    """
    if device_type != "cuda":
        return None
    try:
        import cupy  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        raise ImportError(
            "CuPy is not installed. Its wheels are made for one major version of CUDA: "
            "pip install 'cupy-cuda12x>=14.0' or 'cupy-cuda13x>=14.0'"
        ) from None
    from flambeau_cupy.backend import CupyBackend

    return CupyBackend()


@hookimpl
def flambeau_kernels(device_type: str, backend: Backend) -> KernelSet | None:
    """The kernels on CuPy arrays."""
    if device_type != "cuda":
        return None
    from flambeau_cupy.kernels import kernels

    return KernelSet(f"flambeau-cupy {__version__}", kernels(backend.layer))  # type: ignore[attr-defined]


@hookimpl
def flambeau_copier(source: str, target: str) -> Copier | None:
    """Copies from one CUDA device to another, which need not go through the host."""
    if (source, target) != ("cuda", "cuda"):
        return None
    from flambeau.plugin.host import host  # this module is imported by the host

    return host.activate("cuda").backend.to_device  # type: ignore[attr-defined]


@hookimpl
def flambeau_report(device_type: str) -> Mapping[str, str] | None:
    """Versions of the libraries, and of the driver if there is one."""
    if device_type != "cuda":
        return None
    from cupy.cuda import runtime

    found = {}
    for name in ("cupy-cuda12x", "cupy-cuda13x", "numpy", "ml_dtypes", "nvmath-python"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    try:
        import cudnn

        found["cudnn"] = str(cudnn.backend_version())
    except (ImportError, OSError, RuntimeError) as error:
        found["cudnn"] = f"none ({error})"
    found["runtime"] = str(runtime.runtimeGetVersion())
    try:
        found["driver"] = str(runtime.driverGetVersion())
    except runtime.CUDARuntimeError as error:
        found["driver"] = f"none ({error})"
    return found
