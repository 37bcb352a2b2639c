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


@pytest.fixture
def sparing(monkeypatch):
    """A vector on a device of NumPy arrays without float64, bfloat16 and complex numbers."""
    monkeypatch.syspath_prepend(str(SOURCES))
    arrays, plugin = map(importlib.import_module, ("flambeau_toy.backend", "flambeau_toy.plugin"))
    for dtype in [d for d in arrays.TO_NUMPY if d.is_complex or d is fb.float64]:
        monkeypatch.delitem(arrays.FROM_NUMPY, arrays.TO_NUMPY[dtype])
        monkeypatch.delitem(arrays.TO_NUMPY, dtype)
    monkeypatch.setattr(arrays.ToyBackend, "device_type", "sparing")
    host.register(plugin, name="sparing", device_types=["sparing"])
    yield fb.arange(16.0, device="cpu").to("sparing")
    host.unregister("sparing")


@pytest.mark.parametrize("name", CALLS)
def test_what_a_device_has_not_is_named(name, sparing):
    with pytest.raises(NotImplementedError, match=r"(the device|'sparing') has no torch\."):
        CALLS[name](sparing)
