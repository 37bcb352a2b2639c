"""Fixtures of the core's tests."""

import pytest


@pytest.fixture(params=["ref", "cpu"])
def device(request):
    """A device without strides and one with; the latter only where its package is installed."""
    if request.param == "cpu":
        pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")
    return request.param
