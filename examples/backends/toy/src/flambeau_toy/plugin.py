"""What flambeau asks of this package; NumPy is imported when the device is first used."""

from flambeau.plugin import Expectations, KernelSet, hookimpl

api_version = "1.0"


@hookimpl
def flambeau_backend(device_type):
    """The runtime of device ``toy``."""
    from flambeau_toy.backend import ToyBackend

    return ToyBackend()


@hookimpl
def flambeau_kernels(device_type):
    """Its kernels."""
    from flambeau_toy.kernels import KERNELS

    return KernelSet("flambeau-toy 0.1", KERNELS)


@hookimpl
def flambeau_expectations(device_type):
    """NumPy has no bfloat16."""
    return Expectations(unsupported_dtypes={"bfloat16"})
