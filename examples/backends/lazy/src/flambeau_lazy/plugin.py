"""What flambeau asks of this package; its library is imported when the device is first used."""

from flambeau.plugin import Expectations, KernelSet, hookimpl

api_version = "1.0"


@hookimpl
def flambeau_backend(device_type):
    """The runtime of device ``lazy``."""
    from flambeau_lazy.backend import LazyBackend

    return LazyBackend()


@hookimpl
def flambeau_kernels(device_type):
    """Its kernels."""
    from flambeau_lazy.kernels import KERNELS

    return KernelSet("flambeau-lazy 0.1", KERNELS)


@hookimpl
def flambeau_expectations(device_type):
    """NumPy has no bfloat16; what NumPy says of wrong arguments it says when somebody looks."""
    foreign = "test_kernels_refuse_foreign_arguments_with_errors_that_the_core_knows[sum]"
    return Expectations(
        unsupported_dtypes={"bfloat16"},
        known_failures={foreign: "the shape rule trusts dims"},
    )
