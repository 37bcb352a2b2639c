"""Samples of the ops of complex numbers and of Fourier transforms."""

from __future__ import annotations

from flambeau.testing.sample_arrays import Arr, Sample

_MATRIX = Arr((2, 3), kind="nonzero", low=0.25, high=2)  # away from zero and the negative axis
_PAIRS = Arr((3, 2))
_CUBE = Arr((2, 3, 4))


def _pointwise(array: Arr) -> list[Sample]:
    return [
        Sample((array,), "matrix", True),
        Sample((Arr((), kind=array.kind, low=array.low, high=array.high),), "scalar", True),
        Sample((Arr((0, 3)),), "empty"),
    ]


COMPLEXES = {
    "real": _pointwise(Arr((2, 3))),
    "imag": _pointwise(Arr((2, 3))),
    "conj": _pointwise(Arr((2, 3))),
    "complex": [
        Sample((Arr((2, 3)), Arr((2, 3), seed=1)), "matrices", True),
        Sample((Arr(()), Arr((), seed=1)), "scalars", True),
        Sample((Arr((0, 3)), Arr((0, 3))), "empty"),
    ],
    "view_as_real": _pointwise(Arr((2, 3))),
    "view_as_complex": [
        Sample((_PAIRS,), "pairs", True),
        Sample((Arr((2, 3, 2)),), "matrix of pairs", True),
        Sample((Arr((0, 2)),), "empty"),
    ],
    "sgn": _pointwise(_MATRIX),
    "angle": _pointwise(_MATRIX),
}

SPECTRAL = {
    "fft_c2c": [
        Sample((Arr((5,)), (0,), True, 1.0), "vector", True),
        Sample((_CUBE, (2, 0), True, 1.0), "two dimensions", True),
        Sample((Arr((2, 3)), (1,), False, 0.75), "inverse, scaled", True),
        Sample((Arr((0, 3)), (1,), True, 1.0), "empty batch"),
    ],
    "fft_r2c": [
        Sample((Arr((5,)), 0, 1.0), "odd", True),
        Sample((Arr((4, 3)), 0, 0.75), "even, first dimension, scaled", True),
        Sample((Arr((2, 1)), 1, 1.0), "one element", True),
    ],
    "fft_c2r": [
        Sample((Arr((3,)), 0, 5, 1.0), "odd", True),
        Sample((Arr((3, 2)), 0, 4, 0.75), "even, first dimension, scaled", True),
        Sample((Arr((2, 1)), 1, 1, 1.0), "one element", True),
    ],
}
