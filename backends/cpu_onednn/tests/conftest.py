"""Without the library, or without the package, the tests of this folder are skipped and say so."""

from __future__ import annotations

import multiprocessing
from importlib.util import find_spec

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
def answer_of_child():
    """A function that forks a process, which calls ``work(queue, *args)``, for what it puts."""

    def run(work, *args):
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=work, args=(queue, *args))
        child.start()
        received = None
        if queue._reader.poll(60):
            received = queue.get()
        else:
            child.kill()
        child.join(60)
        assert received is not None, "the child waits for threads that it does not have"
        return received

    return run
