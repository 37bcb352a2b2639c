"""Where no compiler built the extension, the tests of this folder are skipped and say so."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

_BUILT = find_spec("flambeau_native") is not None and find_spec("flambeau_native._native")


def pytest_ignore_collect(collection_path):
    if not _BUILT and collection_path.name.startswith("test_"):
        return collection_path.name != "test_not_built.py"
    return None


@pytest.fixture
def threads():
    """A function that sets the number of threads of the compiled kernels for one test."""
    from flambeau_native.extension import native

    before = native.get_threads()
    yield native.set_threads
    native.set_threads(before)


@pytest.fixture
def unshared():
    """A test whose kernels make large arrays by what they are given: they share no pool."""
    from flambeau_native.extension import native
    from flambeau_numpy import allocator

    was_shared = native.lends()
    native.share(None)
    yield
    native.share(allocator._pool if was_shared else None)


@pytest.fixture
def programs(monkeypatch) -> list[Any]:
    """The steps of the plans that are made meanwhile."""
    from flambeau_native import fusion

    found: list[Any] = []
    replayed = vars(fusion)["replayed"]

    def noted(plan):
        found.extend(plan.steps)
        return replayed(plan)

    monkeypatch.setattr(fusion, "replayed", noted)
    return found
