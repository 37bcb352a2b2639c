"""Dtypes for memory and files: a backend keeps and converts them bit for bit, or refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import flambeau as fb
from flambeau._types import dtype as D
from flambeau.testing.backend import _support as kit

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


LEVEL = "primitives"


def limited(device: str) -> Iterator[Any]:
    for dtype in D.LIMITED:
        yield kit.case(device, dtype, dtype, id=dtype.name)


def numbers(dtype: D.dtype) -> list[Any]:
    """The number of every pattern of eight bits, or integers up to the largest."""
    if dtype.is_floating_point:
        return D.unpack(bytes(range(256)), dtype)
    return [0, 1, 2, 255, 256, fb.iinfo(dtype).max // 2, fb.iinfo(dtype).max]


def converted(device: str, values: list[Any], source: D.dtype, dtype: D.dtype) -> fb.Tensor:
    """A tensor of the dtype made by a cast, if the backend has it."""
    x = fb.tensor(values, dtype=source, device=device)
    try:
        return x.to(dtype)
    except Exception as error:
        # The dtype is new to backends that were written before it: the name is what they owe.
        if dtype.name not in str(error):
            raise
        pytest.skip(f"device {device!r} refuses {dtype.name}: {error}")


def same(found: list[Any], expected: list[Any]) -> bool:
    return [repr(v).lstrip("-") if v != v else repr(v) for v in found] == [
        repr(v).lstrip("-") if v != v else repr(v) for v in expected
    ]


@kit.cases("dtype", limited)
def test_every_number_survives_casts(device: str, dtype: DType) -> None:
    values = numbers(dtype)
    source = fb.float32 if dtype.is_floating_point else fb.int64
    if dtype is fb.uint64:
        values = values[:-1]  # no int64 holds the last
    x = converted(device, values, source, dtype)
    assert x.dtype is dtype
    assert same(x.tolist(), values)
    assert same(x.to(source).tolist(), values)
    assert x[1].item() == values[1]


@kit.cases("dtype", limited)
def test_casts_round_half_to_even_and_wrap(device: str, dtype: DType) -> None:
    if dtype.is_floating_point:
        finite = sorted({v for v in numbers(dtype) if abs(v) < float("inf")})
        values = [(a + b) / 2 for a, b in pairwise(finite)]
        values += [1e30, -1e30, float("inf"), float("nan")]
        source = fb.float32
    else:
        values, source = [-1, -2, 1 << 33, (1 << 16) + 3], fb.int64
    expected = D.unpack(D.pack(values, dtype), dtype)
    assert same(converted(device, values, source, dtype).tolist(), expected)


@kit.cases("dtype", limited)
def test_comparison_is_of_numbers(device: str, dtype: DType) -> None:
    x = converted(device, [1.0, 2.0, 0.0], fb.float32, dtype)
    assert (x == x).tolist() == [True, True, True]
    assert (x == x.flip(0)).tolist() == [False, True, False]
    assert (x != x.flip(0)).tolist() == [True, False, True]


@kit.cases("dtype", limited)
def test_elements_are_moved(device: str, dtype: DType) -> None:
    x = converted(device, [[1.0, 2.0], [3.0, 4.0]], fb.float32, dtype)
    assert x.t().contiguous().tolist() == [[1, 3], [2, 4]]
    assert fb.cat([x, x[:1]]).tolist() == [[1, 2], [3, 4], [1, 2]]
    assert x[:, 1].tolist() == [2, 4]
    assert fb.where(x == x[0], x, x.flip(0)).tolist() == [[1, 2], [1, 2]]
    y = x.clone()
    y[0] = 3
    assert y.tolist() == [[3, 3], [3, 4]] and x[0].tolist() == [1, 2]
    assert fb.zeros_like(x).tolist() == [[0, 0], [0, 0]]
    assert x.cpu().dtype is dtype
