"""What every test here shares: its random numbers, whichever tests ran before it in its process."""

import os
import random
import sys

import pytest

import flambeau as fb

SEED = int(os.environ.get("FLAMBEAU_TEST_SEED", "0"))
"""Another one shows which tests hold by the luck of their numbers."""


@pytest.fixture(autouse=True)
def seeded():
    """Each test draws its own numbers, so that a failure comes again when the test runs alone."""
    random.seed(SEED)
    fb.manual_seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)


def pytest_runtest_logreport(report):
    """Write a failure down when it happens, for `make test` to name it whatever ends the run."""
    file = os.environ.get("FLAMBEAU_TEST_FAILURES")
    # With several processes the first one hears of all, and has no worker's name.
    if file and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(file, "a", encoding="utf-8") as failures:
            failures.write(f"{report.nodeid}\n")


pytest_collectreport = pytest_runtest_logreport


def _poisoned(make):
    """`make`, a maker of arrays, with every byte of them set: NaN in all floating dtypes."""

    def poisoned(*args, **kwargs):
        made = make(*args, **kwargs)
        if made.dtype.kind in "biufcV" and made.size:
            if made.flags.c_contiguous:
                made.reshape(-1).view("u1").fill(255 if made.dtype.kind in "fcV" else 1)
            elif made.dtype.kind in "fc":
                made.fill(float("nan"))
        return made

    return poisoned


def pytest_configure(config):
    """With FLAMBEAU_TEST_POISON=1 memory that the CPU's kernels have not written yet is no number.

    A kernel that leaves out an element of its result is found then: new memory is mostly zeros.
    """
    if os.environ.get("FLAMBEAU_TEST_POISON", "") in ("", "0"):
        return
    import numpy as np

    from flambeau_numpy import allocator

    for name in ("empty", "empty_like"):
        setattr(np, name, _poisoned(getattr(np, name)))
    allocator._plain = np.empty
    allocator._pool.lease = _filled_lease(allocator._pool.lease)


def _filled_lease(lease):
    def filled(size):
        made = lease(size)
        made.fill(255)
        return made

    return filled
