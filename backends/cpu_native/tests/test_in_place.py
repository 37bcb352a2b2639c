"""Functions that write into their argument give the bits of those that do not."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.kernels import KERNELS as NUMPY

KERNELS = {**NUMPY, **COMPILED}
NAMES = """neg abs exp log log1p tanh sqrt square erf sign rsqrt reciprocal floor ceil trunc round
sigmoid relu""".split()
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e30, 0.5, -0.5, 88.8, -104.0, 7.5]
CASES = [(name, ()) for name in NAMES if f"{name}_" in KERNELS] + [
    ("clamp", limits)
    for limits in ((-0.5, 0.5), (None, 0.25), (0.0, None), (1.0, -1.0), (-np.inf, np.inf))
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (40, 50), (300, 411), (1 << 19,)])
@pytest.mark.parametrize(("name", "numbers"), CASES, ids=str)
def test_a_function_in_place_has_the_bits_of_a_copy(name, numbers, shape, dtype):
    x = np.random.default_rng(0).normal(0, 3, shape).astype(dtype)
    flat = x.reshape(-1)
    flat[: len(SPECIAL)] = np.array(SPECIAL, dtype)[: flat.size]
    with np.errstate(all="ignore"):
        for layout in (
            lambda a: a.copy(),
            np.asfortranarray,
            lambda a: np.repeat(a, 2, -1)[..., ::2],
        ):
            a = layout(x) if x.ndim else x.copy()
            expected = np.asarray(KERNELS[name](a, *numbers))
            KERNELS[f"{name}_"](a, *numbers)
            assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(expected).tobytes()
