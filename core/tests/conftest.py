"""Fixtures of the core's tests."""

import pytest

import flambeau as fb


@pytest.fixture(params=["ref", "cpu"])
def device(request):
    """A device without strides and one with; the latter only where its package is installed."""
    if request.param == "cpu":
        pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")
    return request.param


@pytest.fixture
def plain(device):
    """Makes tensors that require no gradient."""
    return lambda data, **options: fb.tensor(data, device=device, **options)


@pytest.fixture
def leaf(device):
    """Makes leaf tensors that require a gradient."""
    return lambda data, **options: fb.tensor(
        data, device=device, **{"requires_grad": True, **options}
    )
