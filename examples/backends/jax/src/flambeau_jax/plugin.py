"""What flambeau asks of this package; JAX is imported when the device is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from flambeau.plugin import Expectations, KernelSet, hookimpl
from flambeau_jax import __version__

if TYPE_CHECKING:
    from flambeau.plugin import Backend

api_version = "1.1"


@hookimpl
def flambeau_backend(device_type: str) -> Backend:
    """The runtime of device ``jax``."""
    from flambeau_jax.backend import JaxBackend

    return JaxBackend()


@hookimpl
def flambeau_kernels(device_type: str) -> KernelSet:
    """The primitives, as functions of `jax.numpy`."""
    from flambeau_jax.kernels import KERNELS

    return KernelSet(f"flambeau-jax {__version__}", KERNELS)


# What XLA's CPU compiler does with numbers at the edge.
_SUBNORMAL = (
    "atan2 cast ceil div eq floor floor_divide fmod ge gt le log lt matmul mul ne pow "
    "remainder rsqrt sign sort sqrt"
)
_BRANCH = "acos asin rsqrt sqrt"


@hookimpl
def flambeau_expectations(device_type: str) -> Expectations:
    """XLA on the CPU flushes subnormal numbers to zero, and loses the sign of an imaginary zero.

    Every element that differs in the tests of corners has a subnormal operand, result or reciprocal
    of the divisor, is ordered against one, or lies on a branch cut.
    """
    import jax

    if jax.default_backend() != "cpu":
        return Expectations()
    corner = "test_corners_agree[{}-{}]"
    failures = {
        corner.format(op, dtype): "XLA flushes subnormal numbers to zero"
        for op in _SUBNORMAL.split()
        for dtype in ("bfloat16", "float32", "float64")
    }
    for dtype in ("float32", "float64"):
        failures[corner.format("nonzero", dtype)] = "XLA flushes subnormal numbers to zero"
    for op in _BRANCH.split():
        for dtype in ("complex64", "complex128"):
            failures[corner.format(op, dtype)] = "XLA loses the sign of an imaginary zero"
    expanded = "test_gradients_are_derivatives[batch_norm_train-expanded]"
    failures[expanded] = "XLA's mean of equal elements is off by one unit, and differences with it"
    # XLA's log1p of doubles is off by as much as 30 units in the last place near -0.5; its sinh and
    # cosh halve by taking log 2 from the exponent, whose rounding grows with the exponent.
    tolerances = {("log1p", "float64"): 1e-14}
    for op in ("sinh", "cosh"):
        tolerances |= {(op, "float32"): 1e-5, (op, "float64"): 2e-14}
    return Expectations(tolerances=tolerances, known_failures=failures)


@hookimpl
def flambeau_report(device_type: str) -> Mapping[str, str]:
    """The version of JAX and the platform that it computes on."""
    import jax

    return {"jax": version("jax"), "platform": jax.default_backend()}
