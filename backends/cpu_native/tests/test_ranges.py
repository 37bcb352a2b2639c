"""Ranges by compiled loops have the bits of NumPy's kernel."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau_native.kernels.ranges import KERNELS
from flambeau_numpy.extending import KERNELS as NUMPY

WHOLE = [0, 1, -1, 7, -3, 2**31, -(2**40), 2**62, -(2**63), 2**63 - 1, 2**70]
FLOATS = [0.0, -0.0, 0.1, -1e-3, 1e38, -1e300, float("inf"), float("nan"), 3.0]


def same(start, step, length, dtype):
    try:
        wanted = NUMPY["arange"](start, step, length, dtype)
    except OverflowError:
        with pytest.raises(OverflowError):
            KERNELS["arange"](start, step, length, dtype)
        return
    found = KERNELS["arange"](start, step, length, dtype)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":  # the sign of a NaN is nobody's
        known = wanted == wanted
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64, fb.int64, fb.int32, fb.float16])
@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 2049, 70_001])
def test_whole_numbers_are_those_of_numpy(length, dtype):
    for start in WHOLE:
        for step in WHOLE:
            with np.errstate(all="ignore"):
                same(start, step, length, dtype)


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
@pytest.mark.parametrize(("length", "count"), [(1024, 1), (5000, 1), (70_001, 2), (100_000, 2)])
def test_floats_are_rounded_as_numpy_rounds_them(length, dtype, count, threads):
    threads(count)
    for start in [*FLOATS, 0, 5]:
        for step in [*FLOATS, 1, -2]:
            with np.errstate(all="ignore"):
                same(start, step, length, dtype)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("n", [1025, 4096, 100_001])
def test_even_distances_end_at_the_end_and_lie_about_the_middle(n, count, threads):
    threads(count)
    found = fb.linspace(-3.0, 5.0, n, dtype=fb.float64)
    assert found[0].item() == -3.0 and found[-1].item() == 5.0
    i = np.arange(n, dtype=np.float64)
    step = 8.0 / (n - 1)
    wanted = np.where(i < n // 2, -3.0 + i * step, 5.0 + (n - 1 - i) * -step)
    assert found.numpy().tobytes() == wanted.tobytes()


ENDS = [0.0, -0.0, 1.0, -1e-3, 3, -7, 1e38, 3.5e38, -1e300, 1 << 70, float("inf"), float("nan")]


def numbers(device, *args, **options):
    """The bits of a range without the signs of its NaN, or the class of the error."""
    try:
        found = fb.linspace(*args, device=device, **options)
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:
        return type(error), str(error)
    known = np.array(found.cpu().tolist(), "f4" if found.dtype is fb.float32 else "f8")
    known[known != known] = np.nan
    return found.dtype, known.tobytes()


@pytest.mark.parametrize("dtype", [None, fb.float32, fb.float64, fb.int64])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 32, 33, 100, 2050])
def test_even_distances_are_those_of_the_device_without_a_kernel(n, dtype):
    few = ENDS if n < 100 else ENDS[::3]
    for start in few:
        for end in few:
            assert numbers("cpu", start, end, n, dtype=dtype) == numbers(
                "ref", start, end, n, dtype=dtype
            ), (start, end)


@pytest.mark.parametrize("wrong", [(0, 1, -1), (0, 1, 2.5), ("a", 1, 3), (0, 1j, 3), (0, 1, None)])
def test_what_is_no_range_is_refused_in_the_same_words(wrong):
    assert numbers("cpu", *wrong) == numbers("ref", *wrong)


@pytest.mark.parametrize(
    "sizes", [(0, 0), (1, 1), (3, 3), (2, 5), (5, 2), (0, 4), (4, 0), (200, 300)]
)
def test_identities_have_ones_on_the_diagonal_in_every_dtype(sizes):
    n, m = sizes
    for dtype in (fb.float32, fb.float64, fb.float16, fb.bfloat16, fb.int64, fb.int32, fb.uint8):
        found = fb.eye(n, m, dtype=dtype)
        assert found.shape == sizes and found.is_contiguous() and found.dtype is dtype
        assert found.tolist() == np.eye(n, m).tolist()
    for dtype in (fb.bool, fb.complex64):
        assert fb.eye(n, m, dtype=dtype).tolist() == np.eye(n, m).tolist()


@pytest.mark.parametrize("wrong", [(-1,), (2, -1), ("a",), (2, "a"), (None,)])
def test_what_is_no_size_is_refused_in_the_same_words(wrong):
    said = []
    for device in ("cpu", "ref"):
        with pytest.raises((RuntimeError, TypeError, ValueError)) as error:
            fb.eye(*wrong, device=device)
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: fb.eye(3) * x,
        lambda x: fb.eye(3, 2) + x[:, :2],
        lambda x: fb.linspace(-1, 7, 3) * x,
        lambda x: fb.linspace(0, 1, 3, dtype=fb.float64) * x,
        lambda x: fb.empty(3).fill_(2) * x,
        lambda x: fb.randn_like(x) * x,
    ],
    ids=["eye", "broad eye", "linspace", "double linspace", "empty", "randn_like"],
)
def test_what_a_compiled_function_makes_in_one_is_seen_by_its_plan(program):
    x = fb.arange(9.0).reshape(3, 3)
    compiled = fb.compile(program)
    for seed in range(5):
        fb.manual_seed(seed)
        wanted = program(x)
        fb.manual_seed(seed)
        assert fb.equal(compiled(x), wanted)
    assert compiled.explain().replays == 3


@pytest.mark.parametrize("diagonal", [0, 1, -1, 3, -4, 40, -40, 2**70, -(2**70)])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (4, 4), (3, 7), (7, 3)])
def test_places_beside_a_diagonal_are_those_of_numpy(shape, diagonal):
    within = max(-99, min(99, diagonal))
    triangle = KERNELS["arange"].triangle
    for lower, wanted in ((True, np.tril_indices), (False, np.triu_indices)):
        found = triangle(*shape, diagonal, lower)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, wanted(shape[0], within, shape[1]))
