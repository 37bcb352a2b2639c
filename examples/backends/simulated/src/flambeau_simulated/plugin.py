"""What flambeau asks of this package; the driver is loaded when the device is first used."""

from flambeau.plugin import KernelSet, hookimpl

api_version = "1.12"


@hookimpl
def flambeau_backend(device_type):
    """The runtime of ``simulated``."""
    from flambeau_simulated.backend import SimulatedBackend
    from flambeau_simulated.driver import Driver

    return SimulatedBackend(Driver())


@hookimpl
def flambeau_kernels(device_type, backend):
    """Its kernels, which put work on the streams of `backend`."""
    from flambeau_simulated.kernels import kernels

    return KernelSet("flambeau-simulated 0.1", kernels(backend))


@hookimpl
def flambeau_copier(source, target):
    """Copies from one device to the other, which need not go through the host."""
    if (source, target) != ("simulated", "simulated"):
        return None
    from flambeau.plugin.host import host  # this module is imported by the host

    return host.activate("simulated").backend.to_device
