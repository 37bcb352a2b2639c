"""Without the library, or without the package, the tests of this folder are skipped and say so."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


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
    """A function that sets the number of threads of oneDNN for one test."""
    from flambeau_onednn.threads import get_num_threads, set_num_threads

    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)
