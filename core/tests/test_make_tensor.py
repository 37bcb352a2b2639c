"""`make_tensor`: ranges, layouts and refusals, on every dtype."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau as fb
from flambeau._types import dtype as D
from flambeau.testing import make_tensor


def parts(t: fb.Tensor) -> list[float]:
    values = t.reshape(-1).tolist()
    return [p for v in values for p in ((v.real, v.imag) if isinstance(v, complex) else (v,))]


@pytest.mark.parametrize("dtype", D.ALL, ids=str)
def test_values_fill_the_usual_range(dtype: fb.dtype) -> None:
    t = make_tensor(20, 20, dtype=dtype, device="ref")
    assert (t.dtype, t.shape, t.is_contiguous()) == (dtype, (20, 20), True)
    low, high = {0: (0, 2), 1: (0 if dtype is fb.uint8 else -9, 10)}.get(dtype.category, (-9, 9))
    values = parts(t)
    assert all(low <= v <= high for v in values)
    assert min(values) < low + 1
    assert max(values) >= high - 1


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
def test_shapes_come_one_by_one_or_as_a_tuple(shape: tuple[int, ...]) -> None:
    for arguments in (shape, (shape,), (list(shape),)):
        assert make_tensor(*arguments, dtype=fb.float32, device="ref").shape == shape


@pytest.mark.parametrize("dtype", [fb.float32, fb.int64, fb.complex64, fb.bool], ids=str)
def test_bounds_are_kept(dtype: fb.dtype) -> None:
    low, high = (0, 1) if dtype is fb.bool else (-3, -1)
    values = parts(make_tensor(200, dtype=dtype, device="ref", low=low, high=high))
    assert all(low <= v <= high for v in values)


def test_bounds_end_where_the_dtype_does() -> None:
    assert all(
        0 <= v < 256 for v in parts(make_tensor(99, dtype=fb.uint8, device="ref", low=-9, high=999))
    )
    wide = parts(make_tensor(99, dtype=fb.float32, device="ref", low=-math.inf, high=math.inf))
    assert all(map(math.isfinite, wide))
    assert max(map(abs, wide)) > 1e38


def test_the_default_generator_decides() -> None:
    made = []
    for _ in range(2):
        fb.manual_seed(5)
        made.append(make_tensor(4, dtype=fb.float64, device="ref").tolist())
    assert made[0] == made[1]
    assert made[0] != make_tensor(4, dtype=fb.float64, device="ref").tolist()


def test_layouts_leave_gaps_or_follow_a_format() -> None:
    spaced = make_tensor(2, 3, dtype=fb.float32, device="ref", noncontiguous=True)
    assert (spaced.shape, spaced.stride()) == ((2, 3), (6, 2))
    assert make_tensor(1, dtype=fb.float32, device="ref", noncontiguous=True).is_contiguous()
    image = make_tensor(2, 3, 4, 5, dtype=fb.float32, device="ref", memory_format=fb.channels_last)
    assert image.stride() == (60, 1, 15, 3)


def test_zeros_can_be_excluded() -> None:
    t = make_tensor(50, dtype=fb.int8, device="ref", low=0, high=2, exclude_zero=True)
    assert set(t.tolist()) == {1}
    f = make_tensor(3, dtype=fb.float32, device="ref", low=0, high=0, exclude_zero=True)
    assert set(f.tolist()) == {fb.finfo(fb.float32).tiny}


def test_gradients_are_of_leaves() -> None:
    for noncontiguous in (False, True):
        t = make_tensor(
            3, dtype=fb.float32, device="ref", requires_grad=True, noncontiguous=noncontiguous
        )
        assert t.requires_grad
        assert t.is_leaf
        (t * 2).sum().backward()
        assert t.grad is not None
        assert t.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dtype": fb.int64, "requires_grad": True}, "not supported for boolean and integral"),
        ({"low": 2, "high": 1}, "`low` must be less than `high`, got 2 >= 1"),
        ({"dtype": fb.int8, "low": 2, "high": 2}, "`low` must be less than `high`"),
        ({"low": math.nan}, "cannot be NaN"),
        ({"dtype": fb.uint8, "low": 300, "high": 400}, r"\[300, 400\) holds no number of .*uint8"),
        ({"noncontiguous": True, "memory_format": fb.channels_last}, "mutually exclusive"),
    ],
)
def test_impossible_requests_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_tensor(2, **{"dtype": fb.float32, "device": "ref", **options})
