"""A device whose tables have not every dtype says which one it has not, whatever is asked of it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import flambeau as fb
from flambeau.plugin.host import host

SOURCES = Path(__file__).parents[1] / "examples/backends/toy/src"
CALLS = {
    "fft": lambda x: fb.fft.fft(x),
    "rfft": lambda x: fb.fft.rfft(x),
    "irfft": lambda x: fb.fft.irfft(x),
    "stft": lambda x: fb.stft(x, 4, return_complex=True),
    "complex": lambda x: fb.complex(x, x),
    "polar": lambda x: fb.polar(x, x),
    "view_as_complex": lambda x: fb.view_as_complex(x.reshape(-1, 2)),
    "x * 1j": lambda x: x * 1j,
    "eig": lambda x: fb.linalg.eig(x.reshape(4, 4)),
    "eigvals": lambda x: fb.linalg.eigvals(x.reshape(4, 4)),
    "to": lambda x: x.to(fb.complex128),
    "zeros": lambda x: fb.zeros(2, dtype=fb.complex64, device="sparing"),
    "tensor": lambda x: fb.tensor([1j], device="sparing"),
    "full": lambda x: fb.full((2,), 1j, device="sparing"),
    "copy": lambda x: fb.ones(2, dtype=fb.complex64).to("sparing"),
    "bfloat16": lambda x: x.bfloat16(),
    "autocast": lambda x: x.to(fb.bfloat16) @ x.to(fb.bfloat16),
    "double": lambda x: x.double(),
    "sum in double": lambda x: x.sum(dtype=fb.float64),
    "linspace": lambda x: fb.linspace(0, 1, 3, dtype=fb.float64, device="sparing"),
    "arange": lambda x: fb.arange(3.0, dtype=fb.float64, device="sparing"),
    "rand": lambda x: fb.rand(3, dtype=fb.float64, device="sparing"),
}
PLACES = {
    "write into a slice": lambda x: x[2:4].fill_(0),
    "write into a diagonal": lambda x: x.reshape(4, 4).diagonal().zero_(),
    "slice_scatter": lambda x: fb.slice_scatter(x, fb.ones(2, device=x.device), 0, 1, 3),
    "diagonal_scatter": lambda x: fb.diagonal_scatter(x.reshape(4, 4), x[:4]),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2)),
    "as_strided of no dimension": lambda x: x.as_strided((), (), 3),
    "fftfreq": lambda x: fb.fft.fftfreq(5, device=x.device),
    "arange": lambda x: fb.arange(3, device=x.device),
}


def device_without(monkeypatch, missing):
    """A vector on a device of NumPy arrays whose tables have not the dtypes that are `missing`."""
    monkeypatch.syspath_prepend(str(SOURCES))
    arrays, plugin = map(importlib.import_module, ("flambeau_toy.backend", "flambeau_toy.plugin"))
    for dtype in [d for d in arrays.TO_NUMPY if missing(d)]:
        monkeypatch.delitem(arrays.FROM_NUMPY, arrays.TO_NUMPY[dtype])
        monkeypatch.delitem(arrays.TO_NUMPY, dtype)
    monkeypatch.setattr(arrays.ToyBackend, "device_type", "sparing")
    host.register(plugin, name="sparing", device_types=["sparing"])
    yield fb.arange(16.0, device="cpu").to("sparing")
    host.unregister("sparing")


@pytest.fixture
def sparing(monkeypatch):
    """A vector on a device without float64, bfloat16 and complex numbers."""
    yield from device_without(monkeypatch, lambda d: d.is_complex or d is fb.float64)


@pytest.fixture
def countless(monkeypatch):
    """A vector on a device without int64."""
    yield from device_without(monkeypatch, lambda d: d is fb.int64)


@pytest.mark.parametrize("name", CALLS)
def test_what_a_device_has_not_is_named(name, sparing):
    with pytest.raises(NotImplementedError, match=r"(the device|'sparing') has no torch\."):
        CALLS[name](sparing)


@pytest.mark.parametrize("name", PLACES)
def test_a_device_without_places_says_what_it_has_not(name, countless):
    with pytest.raises(NotImplementedError, match=r"(the device|'sparing') has no torch\.int64"):
        PLACES[name](countless)


@pytest.mark.parametrize("name", ["max", "sort", "median", "mode"])
def test_a_result_in_a_dtype_that_a_device_has_not_is_refused_by_name(name, countless):
    with pytest.raises(NotImplementedError, match=r"device 'sparing' has no .*int64"):
        getattr(countless, name)(0)
