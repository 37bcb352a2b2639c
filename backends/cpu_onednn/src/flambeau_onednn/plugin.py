"""What the plugin host asks of this package; the library is loaded at the first use of `cpu`."""

from __future__ import annotations

from collections.abc import Mapping

from flambeau.plugin import KernelSet, hookimpl
from flambeau_onednn import __version__

api_version = "1.0"


@hookimpl(tryfirst=True)
def flambeau_kernels(device_type: str) -> KernelSet | None:
    """The kernels of oneDNN, before those of other packages; none where the library is missing."""
    if device_type != "cpu":
        return None
    from flambeau_onednn.library import onednn

    if (library := onednn()) is None:
        return None
    from flambeau_numpy.extending import follow
    from flambeau_onednn import threads
    from flambeau_onednn.kernels import KERNELS

    if library.has_lost_threads:
        threads.stay_alone()
    follow("flambeau-onednn", threads.set_num_threads)
    return KernelSet(f"flambeau-onednn {__version__}", KERNELS)


@hookimpl
def flambeau_report(device_type: str) -> Mapping[str, str] | None:
    """The library and its version, or why it is not used."""
    if device_type != "cpu":
        return None
    from flambeau_onednn.library import description

    return {"onednn": description()}
