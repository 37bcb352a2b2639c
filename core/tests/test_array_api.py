"""The array API standard's functions: its promotion, and what differs from flambeau's own."""

from __future__ import annotations

import itertools

import pytest

import flambeau as fb

np = pytest.importorskip("numpy")
pytest.importorskip("flambeau_numpy")

NUMBERS = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
).split()


@pytest.fixture
def xp():
    return fb.ones(1).__array_namespace__()


def test_the_namespace_is_that_of_a_version_of_the_standard(xp):
    assert xp is fb.array_api and fb.ones(1).__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"no version '1999\.1'"):
        fb.ones(1).__array_namespace__(api_version="1999.1")


def test_promotion_of_two_dtypes_of_a_kind_is_numpys(xp):
    kinds = {"i": "integral", "u": "integral", "f": "floating", "c": "floating"}
    for a, b in itertools.product(NUMBERS, repeat=2):
        first, second = np.dtype(a), np.dtype(b)
        if kinds[first.kind] != kinds[second.kind]:
            continue  # the standard leaves it open
        expected = np.promote_types(first, second)
        if expected.kind == "f" and first.kind in "iu":
            with pytest.raises(TypeError):
                xp.result_type(getattr(xp, a), getattr(xp, b))
        else:
            found = xp.result_type(getattr(xp, a), getattr(xp, b))
            assert found is getattr(xp, expected.name), (a, b)


def test_tensors_without_dimensions_promote_like_others(xp):
    x = xp.add(fb.ones(2, dtype=xp.float32), fb.tensor(1.0, dtype=xp.float64))
    assert x.dtype is xp.float64
    assert xp.add(fb.ones(2, dtype=xp.float32), 1).dtype is xp.float32
    assert xp.where(fb.tensor(True), fb.ones(2, dtype=xp.int8), 3).dtype is xp.int8
    with pytest.raises(TypeError, match="does not mix with a float"):
        xp.multiply(fb.ones(2, dtype=xp.int32), 0.5)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 0, 1), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_over_dimensions_are_numpys(xp, axis, keepdims):
    a = np.arange(24.0).reshape(2, 3, 4) % 7 + 1
    x = fb.from_numpy(a)
    for name in ("sum", "prod", "max", "min", "mean", "std", "var", "all", "any"):
        found = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
        expected = np.asarray(getattr(np, name)(a, axis=axis, keepdims=keepdims))
        assert found.shape == expected.shape, name
        assert np.allclose(found.numpy(), expected, rtol=1e-13, atol=0), name
    found = xp.count_nonzero(x - 1, axis=axis, keepdims=keepdims)
    if axis != ():  # NumPy counts all of it then
        assert (found.numpy() == np.count_nonzero(a - 1, axis=axis, keepdims=keepdims)).all()


def test_sums_of_small_integers_are_of_the_widest_of_their_kind(xp):
    assert xp.sum(fb.full((300,), 100, dtype=xp.int8)).item() == 30_000
    assert xp.prod(fb.full((2,), 200, dtype=xp.uint8)).dtype is xp.uint64
    assert xp.cumulative_sum(fb.tensor([1, 2]), include_initial=True).tolist() == [0, 1, 3]


def test_unique_all_says_where_each_value_is_first(xp):
    a = np.random.RandomState(0).randint(0, 5, (4, 5))
    found = xp.unique_all(fb.from_numpy(a))
    values, first, inverse, counts = np.unique(
        a, return_index=True, return_inverse=True, return_counts=True
    )
    assert found.values.tolist() == values.tolist() and found.counts.tolist() == counts.tolist()
    assert found.indices.tolist() == first.tolist()
    assert found.inverse_indices.tolist() == inverse.reshape(a.shape).tolist()


def test_indices_that_are_taken_count_from_the_end_when_negative(xp):
    x = fb.tensor([[1, 2, 3], [4, 5, 6]])
    assert xp.take(x, fb.tensor([-1, 0]), axis=1).tolist() == [[3, 1], [6, 4]]
    assert xp.take(x, fb.tensor([[0, 1], [1, 0]]), axis=0).shape == (2, 2, 3)
    assert xp.take_along_axis(x, fb.tensor([[-1], [0]]), axis=1).tolist() == [[3], [4]]


def test_reshape_copies_if_asked_and_never_if_forbidden(xp):
    x = fb.arange(6)
    assert xp.reshape(x, (2, 3), copy=True).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (2, 3), copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="reshape"):
        xp.reshape(x.reshape(2, 3).mT, (6,), copy=False)


def test_bounds_beyond_an_integer_dtype_bound_nothing(xp):
    x = fb.tensor([-128, 127], dtype=xp.int8)
    assert xp.clip(x, -1000, 1000).tolist() == [-128, 127]
    assert xp.clip(x, fb.tensor([0, 0], dtype=xp.int8)).tolist() == [0, 127]


def test_solve_takes_a_stack_of_matrices_for_one(xp):
    rng = np.random.RandomState(1)
    a, b = rng.randn(3, 2, 2), rng.randn(2, 3)
    found = xp.linalg.solve(fb.from_numpy(a), fb.from_numpy(b))
    assert np.allclose(a @ found.numpy(), b) and found.shape == (3, 2, 3)


def test_every_public_name_has_a_docstring(xp):
    for space in (xp, xp.linalg, xp.fft):
        for name in dir(space):
            if callable(getattr(space, name)) and not name.startswith("_"):
                assert getattr(space, name).__doc__, name


def test_bounds_of_clip_are_numbers_of_the_elements_dtype(xp):
    x = fb.tensor([0.0, 1.0], dtype=fb.float64)
    assert xp.clip(x, 0.1, 0.7).tolist() == [0.1, 0.7]
    small = fb.tensor([100, -100], dtype=fb.int8)
    assert xp.clip(small, max=fb.tensor(1000, dtype=fb.int16)).tolist() == [100, -100]


@pytest.mark.parametrize("name", ["all", "any", "prod", "sum", "max", "min", "mean", "flip"])
def test_an_axis_that_is_no_dimension_is_refused(xp, name):
    for x, axis in ((fb.ones(2, 3), 5), (fb.tensor(3.0), 4)):
        with pytest.raises(IndexError):
            getattr(xp, name)(x, axis=axis)
    with pytest.raises(ValueError, match="twice"):
        getattr(xp, name)(fb.ones(2, 3), axis=(0, -2))
