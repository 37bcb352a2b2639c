"""A device whose kernels are NumPy's but for one, and what the kit says about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mutators
from flambeau.plugin import Backend, KernelSet, hookimpl
from flambeau.plugin.host import host
from flambeau.testing.backend import test_composites, test_primitives
from flambeau.testing.samples import SAMPLES
from flambeau_numpy.backend import NumpyBackend
from flambeau_numpy.kernels import KERNELS

DEVICE = "mutant"

# What finds most comes first: a mutant is dead at the first complaint.
TESTS = (
    test_primitives.test_corners_agree,
    test_composites.test_composite_corners_agree,
    test_primitives.test_samples_agree,
    test_composites.test_kernels_agree_with_their_decomposition,
    test_composites.test_steps_write_what_their_bodies_write,
    test_primitives.test_mixed_dtypes_promote,
)

_wrong: dict[str, Callable[..., Any]] = {}


def _switched(name: str) -> Callable[..., Any]:
    kernel = KERNELS[name]

    def run(*args: Any) -> Any:
        return _wrong.get(name, kernel)(*args)

    return run


class Plugin:
    """Device ``mutant``."""

    @hookimpl
    def flambeau_backend(self, device_type: str) -> Backend:
        return type("Mutant", (NumpyBackend,), {"device_type": DEVICE})()

    @hookimpl
    def flambeau_kernels(self, device_type: str) -> KernelSet:
        return KernelSet("mutant 0.1", {name: _switched(name) for name in KERNELS})


@contextmanager
def registered() -> Iterator[None]:
    """The device is there within the block."""
    host.register(Plugin(), name=DEVICE, device_types=[DEVICE])
    try:
        yield
    finally:
        host.unregister(DEVICE)


def population() -> list[tuple[str, str, Callable[[Any], Any]]]:
    """All mutants: the op, what is wrong, and what makes it of the right kernel."""
    return [
        (name, what, make)
        for name in sorted(KERNELS)
        if name in SAMPLES and not mutators.draws(name)
        for what, make in mutators.mutants(name)
    ]


def cases(name: str) -> Iterator[tuple[Callable[..., None], tuple[Any, ...]]]:
    """The kit's tests of an op."""
    for test in TESTS:
        for case in test.cases[1](DEVICE):  # type: ignore[attr-defined]
            if case.values[0] == name and not any(mark.name == "skip" for mark in case.marks):
                yield test, case.values


def complaint(
    name: str, make: Callable[[Any], Any], tests: list[tuple[Callable[..., None], Any]]
) -> str:
    """What the kit says first of a mutant; empty if it survives."""
    _wrong[name] = mutators.of(KERNELS[name], name, make)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for test, values in tests:
                try:
                    test(DEVICE, *values)
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception) as error:
                    return f"{test.__name__}: {str(error)[:300]}"
    finally:
        del _wrong[name]
    return ""
