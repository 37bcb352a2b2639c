"""Places of cumulative extrema, by compiled loops and by NumPy's, against a loop in Python."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau_native.kernels.cumulative import KERNELS
from flambeau_numpy.extending import KERNELS as NUMPY

DTYPES = [np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8, np.bool_]


def places(a, dim, largest):
    """The definition, element by element."""
    out = np.zeros(a.shape, np.int64)
    for index in np.ndindex(*a.shape):
        line = a[(*index[:dim], slice(None), *index[dim + 1 :])][: index[dim] + 1]
        place = 0
        for i, value in enumerate(line):
            best = line[place]
            if value != value or (value >= best if largest else value <= best):
                place = i
        out[index] = place
    return out


def numbers(shape, dtype, few=False):
    rng = np.random.default_rng(len(shape) + sum(shape))
    drawn = rng.integers(0, 3 if few else 100, shape)
    if np.dtype(dtype).kind == "f":
        found = drawn.astype(dtype) - 50
        if few:
            found[rng.random(shape) < 0.1] = np.nan
            found[rng.random(shape) < 0.1] = np.inf
            found[rng.random(shape) < 0.1] = -0.0
        return found
    return drawn.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    "shape", [(9,), (1,), (4, 7), (3, 5, 6), (2, 3, 300), (0, 3), (3, 0), (2, 9, 1)]
)
def test_places_are_those_of_the_definition(shape, largest, dtype, threads):
    for few in False, True:
        a = numbers(shape, dtype, few)
        for dim in range(a.ndim):
            wanted = places(a, dim, largest)
            for number in 1, 3:
                threads(number)
                for given in (a, np.asfortranarray(a), np.repeat(a, 2, -1)[..., ::2]):
                    for kernel in KERNELS["running_place"], NUMPY["running_place"]:
                        found = kernel(given, dim, largest)
                        assert found.dtype == np.int64
                        np.testing.assert_array_equal(found, wanted)


def test_many_lines_are_divided_among_threads(threads):
    for shape, dim in [((1000, 64), 1), ((40, 3000), 0), ((7, 40, 600), 1)]:
        a = numbers(shape, np.float32, True)
        wanted = NUMPY["running_place"](a, dim, True)
        for number in 1, 2, 5:
            threads(number)
            np.testing.assert_array_equal(KERNELS["running_place"](a, dim, True), wanted)


def test_values_are_those_at_the_places_and_gradients_go_there():
    x = fb.tensor([[1.0, 3.0, 2.0], [4.0, 4.0, 5.0]], requires_grad=True)
    values, indices = fb.cummax(x, 1)
    assert indices.tolist() == [[0, 1, 1], [0, 1, 2]]
    values.sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0, 0.0], [1.0, 1.0, 1.0]]
    assert fb.autograd.gradcheck(lambda x: fb.cummin(x, 0)[0], x.detach().double().requires_grad_())
    assert not indices.requires_grad


@pytest.mark.parametrize("dtype", [fb.bfloat16, fb.float16, fb.int16, fb.uint8, fb.bool])
def test_other_dtypes_keep_theirs(dtype):
    x = fb.tensor([0, 1, 1, 0]).to(dtype)
    values, indices = fb.cummax(x, 0)
    assert values.dtype == dtype
    assert indices.tolist() == [0, 1, 2, 2]
    assert fb.cummin(x, -1).indices.tolist() == [0, 0, 0, 3]


def test_complex_numbers_are_refused():
    for name in "cummax", "cummin":
        find = getattr(fb, name)
        with pytest.raises(NotImplementedError, match=f'"{name}_cpu" not implemented'):
            find(fb.ones(2, dtype=fb.complex64), 0)
        assert find(fb.ones(0, dtype=fb.complex64), 0).values.shape == (0,)
