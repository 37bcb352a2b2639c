"""Without the library, or without the package, the tests of this folder are skipped and say so."""

from __future__ import annotations

import threading
from importlib.util import find_spec

import numpy as np
import pytest

import flambeau as fb


def _missing() -> str:
    if find_spec("flambeau_onednn") is None:
        return "flambeau-onednn is not installed"
    from flambeau_onednn.library import description, onednn

    return "" if onednn() is not None else f"oneDNN {description()}"


_REASON = _missing()


def pytest_ignore_collect(collection_path):
    if _REASON and collection_path.name.startswith("test_"):
        return collection_path.name != "test_library.py"
    return None


@pytest.fixture
def missing():
    """Why oneDNN cannot be used here; empty if it can."""
    return _REASON


@pytest.fixture
def threads():
    """A function that sets the number of threads of all kernels for one test."""
    fb.ones(1)  # whoever offers kernels follows from now on
    before = fb.get_num_threads()
    yield fb.set_num_threads
    fb.set_num_threads(before)


@pytest.fixture
def agree_at_once():
    """A function that repeats several computations, each in a thread of its own, at one time."""

    def run(compute, items, wanted):
        wrong = []

        def work(item, expected):
            for _ in range(20):
                if not np.array_equal(compute(item), expected):
                    wrong.append(item)

        pairs = zip(items, wanted, strict=True)
        workers = [threading.Thread(target=work, args=pair, daemon=True) for pair in pairs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert not any(worker.is_alive() for worker in workers), "a thread hangs"
        assert not wrong

    return run
