"""What the plugin host asks of this package; NumPy is imported when the device is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from flambeau.plugin import Expectations, KernelSet, hookimpl
from flambeau_numpy import __version__

if TYPE_CHECKING:
    from flambeau.plugin import Backend

api_version = "1.0"
_FASTER = "flambeau-native"


@hookimpl
def flambeau_backend(device_type: str) -> Backend | None:
    """The runtime of ``cpu``."""
    if device_type != "cpu":
        return None
    from flambeau_numpy.threads import sleeping_when_idle

    with sleeping_when_idle():
        from flambeau_numpy.backend import NumpyBackend

    return NumpyBackend()


@hookimpl
def flambeau_kernels(device_type: str) -> KernelSet | None:
    """The NumPy kernels."""
    if device_type != "cpu":
        return None
    from flambeau_numpy.threads import sleeping_when_idle, start

    with sleeping_when_idle():
        from flambeau_numpy.kernels import KERNELS
    start()
    return KernelSet(f"flambeau-numpy {__version__}", KERNELS)


@hookimpl
def flambeau_expectations(device_type: str) -> Expectations | None:
    """Where the NumPy kernels are less exact than the conformance kit asks by default."""
    if device_type != "cpu":
        return None
    # Fitted in float32 with two units in the last place, where the default allows one.
    return Expectations(tolerances={("erf", "float32"): 4e-7, ("gelu", "float32"): 2e-6})


@hookimpl
def flambeau_report(device_type: str) -> Mapping[str, str] | None:
    """Versions of the libraries that compute, and the threads they use."""
    if device_type != "cpu":
        return None
    from flambeau_numpy.threads import blas_name, get_num_threads

    report = {name: version(name) for name in ("numpy", "scipy", "ml_dtypes")}
    report |= {"blas": blas_name(), "threads": str(get_num_threads())}
    try:
        version(_FASTER)
    except PackageNotFoundError:
        report[_FASTER] = "not installed: NumPy alone takes about twice its time"
    return report
