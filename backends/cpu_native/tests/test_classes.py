"""Losses over classes, of rows and of planes, beside NumPy's kernels in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels.classification_loss import KERNELS as COMPILED
from flambeau_numpy.extending import KERNELS as NUMPY

SHAPES = [(1, 1), (5, 3), (300, 7), (3,), (2, 4, 3), (3, 1, 2, 5), (2, 9, 31, 7), (1, 17, 17, 2)]
EPS = {np.float32: 3e-6, np.float64: 1e-13}


def in_order(a: Any, order: str) -> Any:
    """The same elements: row-major, with classes behind the first dimension, or with gaps."""
    if order == "planes" and a.ndim > 2:
        planes = np.ascontiguousarray(np.moveaxis(a, -1, 1))
        return np.moveaxis(planes, 1, -1)
    return np.repeat(a, 2, -1)[..., ::2] if order == "gaps" else a


def wide(a: Any) -> Any:
    return a.astype("f8") if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a


def same(found: Any, wanted: Any, dtype: Any, size: float = 1.0) -> None:
    assert found.dtype == dtype and found.shape == np.shape(wanted)
    limit = EPS[dtype] * size
    np.testing.assert_allclose(found, wanted, rtol=limit, atol=limit)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from(["rows", "planes", "gaps"]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["none", "sum", "mean"]),
    st.booleans(),
    st.sampled_from([-100, 0, 2]),
    st.integers(0, 999),
)
def test_losses_and_gradients_are_those_of_numpy_in_every_order(
    shape: tuple[int, ...],
    order: str,
    dtype: Any,
    reduction: str,
    weighted: bool,
    ignore: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=shape) * 3).astype(dtype)
    target = rng.integers(0, shape[-1], shape[:-1])
    if target.ndim:
        target[rng.random(target.shape) < 0.3] = ignore
    for odd in (np.nan, np.inf, -np.inf)[: rng.integers(4)]:
        x[tuple(rng.integers(n) for n in shape)] = odd
    weight = rng.random(shape[-1]).astype(dtype) + dtype(0.1) if weighted else None
    x, sizes = in_order(x, order), max(target.size, 1)
    how = weight, reduction, ignore
    loss, total = COMPILED["nll_loss"](x, target, *how)
    expected, weights = NUMPY["nll_loss"](wide(x), target, wide(weight), *how[1:])
    same(loss, expected, dtype, sizes)
    same(total, weights, dtype)
    g = rng.normal(size=loss.shape).astype(dtype)
    over = COMPILED["nll_loss_backward"](g, shape, target, *how, total)
    wanted = NUMPY["nll_loss_backward"](wide(g), shape, target, wide(weight), *how[1:], weights)
    same(over, wanted, dtype)

    if x.ndim == 1:
        return
    loss, log_probs, count = COMPILED["cross_entropy"](x, target, ignore)
    expected, wanted, rows = NUMPY["cross_entropy"](wide(x), target, ignore)
    same(log_probs, wanted, dtype, 10)
    same(loss, expected, dtype, 10)
    same(count, rows, dtype)
    g = np.array(rng.normal(), dtype)
    over = COMPILED["cross_entropy_backward"](g, log_probs, target, ignore, count)
    wanted = NUMPY["cross_entropy_backward"](wide(g), wide(log_probs), target, ignore, wide(count))
    same(over, wanted, dtype)
    if order == "planes" and x.ndim > 2:
        assert np.moveaxis(log_probs, -1, 1).flags.c_contiguous
        assert np.moveaxis(over, -1, 1).flags.c_contiguous


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3), (2, 3, 4, 3)])
@pytest.mark.parametrize("bad", [3, -1, -(2**63), 2**62])
def test_a_class_that_is_none_is_refused_wherever_it_stands(shape: Any, bad: int) -> None:
    x, one = in_order(np.ones(shape, "f4"), "planes"), np.ones((), "f4")
    target = np.zeros(shape[:-1], np.int64)
    target.reshape(-1)[-1] = bad
    for reduction in ("none", "sum"):
        g = np.ones(target.shape if reduction == "none" else (), "f4")
        with pytest.raises(IndexError):
            COMPILED["nll_loss"](x, target, None, reduction, -100)
        with pytest.raises(IndexError):
            COMPILED["nll_loss_backward"](g, shape, target, None, reduction, -100, one)
    with pytest.raises(IndexError):
        COMPILED["cross_entropy"](x, target, -100)
    with pytest.raises(IndexError):
        COMPILED["cross_entropy_backward"](one, x, target, -100, one)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (7, 2, 1), (1, 3, 9)])
@pytest.mark.parametrize("places", [0, 1, 2, 500])
def test_no_more_rows_are_read_or_written_than_there_are_places(sizes: Any, places: int) -> None:
    images, classes, inner = sizes
    rows = images * inner
    x = np.ones((images, classes, inner), "f4")
    target = np.zeros(rows, np.int64)
    out, total, g = np.full(places + 8, 7, "f4"), np.zeros((), "f4"), np.ones(places, "f4")
    native.nll_loss_f32(out[:places], total, x, target, None, *sizes, places, 0, -100)
    assert (out[min(places, rows) :] == 7).all() and (out[: min(places, rows)] == -1).all()
    over = np.ones_like(x)
    native.nll_loss_backward_f32(over, g, target, None, total, *sizes, places, 0, -100)
    if places:
        assert -over.sum() == min(places, rows)


@pytest.mark.parametrize("shape", [(70_001, 3), (3, 5, 101, 103), (2, 3, 40_000)])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_many_rows_do_not_depend_on_the_threads(
    shape: tuple[int, ...], weighted: bool, threads: Any
) -> None:
    rng = np.random.default_rng(0)
    classes = shape[1]
    planes = rng.normal(size=shape).astype(np.float32)
    x = np.moveaxis(planes, 1, -1)
    target = rng.integers(0, classes, size=x.shape[:-1])
    target.reshape(-1)[::7] = -100
    weight = rng.random(classes).astype(np.float32) if weighted else None
    for reduction in ("none", "mean", "sum"):
        wanted = NUMPY["nll_loss"](wide(x), target, wide(weight), reduction, -100)
        grad = rng.normal(size=wanted[0].shape).astype(np.float32)
        given = grad, x.shape, target, weight, reduction, -100
        found = []
        for count in (1, 3):
            threads(count)
            loss, total = COMPILED["nll_loss"](x, target, weight, reduction, -100)
            same(loss, wanted[0], np.float32)
            same(total, wanted[1], np.float32)
            found.append((loss, total, COMPILED["nll_loss_backward"](*given, total)))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
        beside = wide(grad), x.shape, target, wide(weight), reduction, -100, wanted[1]
        same(found[0][2], NUMPY["nll_loss_backward"](*beside), np.float32)
