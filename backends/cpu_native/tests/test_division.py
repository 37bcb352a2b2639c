"""Rests, whole quotients, powers of two and triangles of matrices are exactly what they were."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest

from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.kernels import KERNELS as NUMPY

SINGLE = np.dtype(np.float32)
CORNERS = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-38, 3e38, 0.1, 16777216]


def operands() -> tuple[np.ndarray, np.ndarray]:
    """Pairs of all magnitudes, multiples of each other, all pairs of corners, and any bits."""
    random = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        size = 20_000
        a, b = (random.normal(size=size) * 10.0 ** random.integers(-40, 38, size) for _ in "ab")
        a[: size // 2] = random.normal(size=size // 2) * 10.0 ** random.integers(-1, 6, size // 2)
        b[: size // 4] = random.integers(-9, 10, size // 4)
        a[: size // 4] = b[: size // 4] * random.integers(-(2**20), 2**20, size // 4) / 2
        b[size // 4 : size // 2] = random.normal(size=size // 4)
        first, second = np.meshgrid(CORNERS, CORNERS)
        a, b = np.append(a, first.ravel()), np.append(b, second.ravel())
        bits = random.integers(0, 1 << 32, (2, 20_000), np.uint32).view(SINGLE)
        return np.append(a.astype(SINGLE), bits[0]), np.append(b.astype(SINGLE), bits[1])


def agree_in_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    lost = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), lost)
    np.testing.assert_array_equal(found.view(np.uint32)[~lost], wanted.view(np.uint32)[~lost])


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_division_has_the_bits_of_numpy_in_place_and_out_of_place(name):
    a, b = operands()
    row = b[:130]
    for x, y in (
        (a, b),
        (a, np.array(-0.7, SINGLE)),
        (np.array(7.3, SINGLE), b),
        (a[: 130 * 20].reshape(20, 130), row),
        (a[::2], b[::2]),
    ):
        wanted = NUMPY[name](x, y)
        agree_in_bits(COMPILED[name](x, y), wanted)
        if x.shape == wanted.shape:
            written = x.copy()
            COMPILED[f"{name}_"](written, y)
            agree_in_bits(written, wanted)


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_a_row_of_what_is_written_divides_all_of_it_by_its_old_values(name):
    x = np.random.default_rng(1).normal(3, 9, (30, 64)).astype(SINGLE)
    wanted = NUMPY[name](x, x[3].copy())
    COMPILED[f"{name}_"](x, x[3])
    agree_in_bits(x, wanted)


def test_powers_of_two_are_exact_and_others_within_a_unit():
    random = np.random.default_rng(2)
    whole = np.arange(-149, 128).astype(SINGLE)
    x = np.concatenate([random.uniform(-150, 129, 100_000).astype(SINGLE), np.repeat(whole, 10)])
    found = COMPILED["pow"](np.array(2, SINGLE), x)
    np.testing.assert_array_equal(
        found[100_000:], np.ldexp(SINGLE.type(1), np.repeat(whole, 10).astype(int))
    )
    with np.errstate(all="ignore"):
        wanted = np.exp2(x.astype(np.float64))
        near = wanted < 3.4e38
        unit = np.spacing(wanted[near].astype(SINGLE)).astype(np.float64)
    assert (np.abs(found[near] - wanted[near]) / unit).max() <= 1.1
    special = np.array([np.nan, np.inf, -np.inf, 128, -151] * 300, SINGLE)
    assert np.isnan(COMPILED["pow"](np.array(2, SINGLE), special)[0])
    assert COMPILED["pow"](np.array(2, SINGLE), special)[1:5].tolist() == [np.inf, 0, np.inf, 0]


KINDS = [np.bool_, np.uint8, np.float16, ml_dtypes.bfloat16, np.float32, np.complex128]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 3), (0, 3), (3, 0), (1, 7), (40, 300)])
def test_triangles_are_those_of_numpy_in_place_and_out_of_place(shape, kind):
    whole = (np.arange(prod(shape)) % 7 + 1).reshape(shape).astype(kind)
    most = 2**63 - 1
    for x in (whole, whole.swapaxes(-1, -2)):
        for k in (-most - 1, -4, -1, 0, 1, 3, most):
            for name, numpys in (("tril", np.tril), ("triu", np.triu)):
                wanted = numpys(x, max(-999, min(999, k)))
                np.testing.assert_array_equal(COMPILED[name](x, k), wanted)
                written = x.copy("K")
                COMPILED[f"{name}_"](written, k)
                np.testing.assert_array_equal(written, wanted)
