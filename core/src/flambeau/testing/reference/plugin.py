"""Plugin of device type ``ref``: answers the hooks with the reference backend and its kernels."""

from __future__ import annotations

from flambeau.plugin import Backend, KernelSet, hookimpl


@hookimpl
def flambeau_backend(device_type: str) -> Backend | None:
    """The reference backend, for device type ``ref``."""
    if device_type != "ref":
        return None
    from flambeau.testing.reference.backend import RefBackend

    return RefBackend()


@hookimpl(trylast=True)
def flambeau_kernels(device_type: str) -> KernelSet | None:
    """Every primitive, for device type ``ref``."""
    if device_type != "ref":
        return None
    from flambeau.testing.reference.kernels import KERNELS

    return KernelSet("flambeau-core (reference)", KERNELS)


@hookimpl
def flambeau_report(device_type: str) -> dict[str, str] | None:
    """What device ``ref`` is."""
    return {"arrays": "tuples of Python numbers"} if device_type == "ref" else None
