"""Ranges over grids of bounds, steps and dtypes: how many elements there are, and which."""

from __future__ import annotations

import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

STARTS = (0.0, 0.5, -1.5, 3, 2.7, -8.000001, 1e-7)
ENDS = (0.0, 1.0, 4.0, 3.9, -8.000001, -3, 10.2)
STEPS = (1.0, 0.5, -0.5, 1.5, -4.0, 0.1, 2, 1.9, -1)
DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 uint8".split()
TOLERANCE = {"float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}


def _made(t, name, args, dtype, **options):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # range is deprecated
            return getattr(t, name)(*args, dtype=dtype and getattr(t, dtype), **options)
    except Exception as error:
        return error


def _differing(cases, dtype, device="cpu"):
    different = []
    for name, args in cases:
        wanted = _made(torch, name, args, dtype)
        found = _made(fb, name, args, dtype, device=device)
        if isinstance(wanted, Exception) or isinstance(found, Exception):
            if type(wanted) is not type(found):
                different.append((name, args, found, wanted))
            continue
        if str(found.dtype) != str(wanted.dtype) or tuple(found.shape) != tuple(wanted.shape):
            different.append((name, args, found, wanted))
            continue
        values = torch.tensor(found.tolist(), dtype=wanted.dtype)
        limit = 0 if not wanted.is_floating_point() else TOLERANCE.get(dtype, 2e-6)
        if not torch.allclose(values, wanted, rtol=limit, atol=4 * limit):
            different.append((name, args, found, wanted))
    return different


@pytest.mark.parametrize("dtype", [None, *DTYPES])
@pytest.mark.parametrize("name", ["arange", "range"])
def test_steps_between_bounds(name, dtype):
    steps = STEPS
    if dtype and "int" in dtype:  # PyTorch divides by a step that is 0 as an integer
        steps = [step for step in STEPS if abs(step) >= 1]
    cases = [(name, args) for args in itertools.product(STARTS, ENDS, steps)]
    assert _differing(cases, dtype) == []


@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_numbers_of_steps_between_bounds(dtype):
    cases = [("linspace", args) for args in itertools.product(STARTS, ENDS, (0, 1, 2, 4, 5))]
    bases = itertools.product(STARTS, ENDS, (0, 1, 2, 4), (10.0, 2, 0.5, 5.0))
    cases += [("logspace", (start / 4, end / 4, n, base)) for start, end, n, base in bases]
    assert _differing(cases, dtype) == []


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_other_devices_count_alike(dtype):
    cases = [("arange", args) for args in itertools.product(STARTS, ENDS, (1.5, -4.0))]
    cases += [("linspace", args) for args in itertools.product(STARTS, ENDS, (2, 5))]
    assert _differing(cases, dtype, "ref") == []


def test_a_whole_step_of_an_integer_range_is_not_zero():
    for name in ("arange", "range"):
        assert "step must be nonzero" in str(_made(fb, name, (0, 4, 0.5), "int64"))


def test_bounds_are_cut_before_they_are_counted():
    assert fb.arange(0.0, -8.000001, -4.0, dtype=fb.int64).tolist() == [0, -4]
    assert fb.logspace(1, 1.2, 4, 5.0, dtype=fb.int64).tolist() == [5, 5, 5, 5]
    assert fb.linspace(0.5, 3.9, 4, dtype=fb.int64).tolist() == [0, 1, 2, 3]
