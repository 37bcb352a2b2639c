"""Functions of rows of every length: each row by itself, and nothing beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native

LENGTHS = [*range(1, 71), 79, 80, 81, 96, 127, 128, 129, 200, 255, 513]
ROWS = [1, 2, 15, 16, 17, 33]
ODD = [np.nan, np.inf, -np.inf, 1e-40, -0.0]
GUARD = 77.0


@st.composite
def rows(draw: st.DrawFn, count: int, dtype: type, large: float) -> tuple[Any, ...]:
    """Arrays of rows, some of which have odd numbers, up to a large one."""
    numbers = st.sampled_from([*ODD, large, -large])
    shape = draw(st.sampled_from(ROWS)), draw(st.sampled_from(LENGTHS))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    scale = draw(st.sampled_from([0.1, 1.0, 30.0]))
    found = []
    for _ in range(count):
        x = (rng.normal(size=shape) * scale).astype(dtype)
        odd = draw(st.lists(numbers, max_size=3))
        for number in odd:
            x[rng.integers(shape[0]), rng.integers(shape[1])] = number
        if draw(st.booleans()):
            x[rng.integers(shape[0])] = draw(numbers)
        found.append(x)
    return tuple(found)


def guarded(*shape: int, dtype: Any) -> tuple[Any, Any]:
    """A place for a result, and all memory around it."""
    size = int(np.prod(shape))
    memory = np.full(size + 64, GUARD, dtype)
    return memory[32 : 32 + size].reshape(shape), memory


def check_guards(*all_memory: Any) -> None:
    for memory in all_memory:
        assert (memory[:32] == GUARD).all() and (memory[-32:] == GUARD).all()


def softmax(a: Any) -> Any:
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def logsumexp(a: Any) -> Any:
    top = a.max(1, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0)
    return (np.log(np.exp(a - shift).sum(1, keepdims=True)) + shift)[:, 0]


def log_softmax(a: Any) -> Any:
    shifted = a - a.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def softmax_backward(g: Any, y: Any) -> Any:
    return y * (g - (g * y).sum(1, keepdims=True))


def log_softmax_backward(g: Any, y: Any) -> Any:
    return g - np.exp(y) * g.sum(1, keepdims=True)


FORMULAS = [softmax, log_softmax, logsumexp, softmax_backward, log_softmax_backward]


def error(found: Any, wanted: Any, scale: Any) -> None:
    """What is finite is close, measured by `scale`; what is not is the same."""
    close = 1e-5 if found.dtype == np.float32 else 1e-12
    finite = np.isfinite(wanted) & (np.abs(wanted) < 1e38)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    difference = np.abs(found.astype("f8") - wanted)
    limit = close * np.broadcast_to(scale, wanted.shape)
    assert (difference[finite] <= limit[finite]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("formula", FORMULAS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_softmax_and_its_kin_of_rows_of_every_length(
    formula: Any, dtype: type, data: st.DataObject
) -> None:
    is_backward = formula.__name__.endswith("backward")
    # Sums of gradients stay within what a float holds.
    operands = data.draw(rows(2, dtype, 1e30) if is_backward else rows(1, dtype, 3e38))
    if is_backward:  # of results, which are bounded
        with np.errstate(all="ignore"):
            result = softmax if formula is softmax_backward else log_softmax
            found = result(operands[1].astype("f8")).astype(dtype)
            # Exponentials that only double has are none.
            operands = operands[0], np.where(found < -80, -np.inf, found).astype(dtype)
    shape = operands[0].shape
    out, memory = guarded(*shape[: 1 if formula is logsumexp else 2], dtype=dtype)
    suffix = "f32" if dtype is np.float32 else "f64"
    getattr(native, f"{formula.__name__}_{suffix}")(out, *operands, *shape)
    check_guards(memory)
    with np.errstate(all="ignore"):
        wide = [x.astype("f8") for x in operands]
        wanted = formula(*wide)
        size = np.abs(wide[0]).sum(1) + 1
        size = np.where(np.isfinite(size), size, np.inf)
        error(out, wanted, size if formula is logsumexp else size[:, None])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_layer_norms_and_their_gradients_of_rows_of_every_length(
    dtype: type, data: st.DataObject
) -> None:
    x, g = data.draw(rows(2, dtype, 3e38))
    count, columns = x.shape
    suffix = "f32" if dtype is np.float32 else "f64"
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    weight, bias = (
        rng.normal(size=columns).astype(dtype) if data.draw(st.booleans()) else None for _ in "wb"
    )
    eps = data.draw(st.sampled_from([1e-5, 1e-2]))
    out, memory = guarded(count, columns, dtype=dtype)
    mean, mean_memory = guarded(count, dtype=dtype)
    invstd, invstd_memory = guarded(count, dtype=dtype)
    forward = getattr(native, f"layer_norm_{suffix}")
    forward(out, mean, invstd, x, weight, bias, count, columns, eps)
    check_guards(memory, mean_memory, invstd_memory)
    with np.errstate(all="ignore"):
        wide = x.astype("f8")
        centre = wide.mean(1)
        scale = 1 / np.sqrt(((wide - centre[:, None]) ** 2).mean(1) + eps)
        normed = (wide - centre[:, None]) * scale[:, None]
        w, b = (1.0 if weight is None else weight), (0.0 if bias is None else bias)
        # Squares that float32 cannot hold are another test's.
        sound = np.isfinite(wide).all(1) & (np.abs(wide).max(1) < 1e15)
        # Rounding of the mean is magnified where all elements are alike.
        size = 1 + np.abs(wide).max(1) * scale
        error(out[sound], (normed * w + b)[sound], (10 * size[:, None] * (1 + np.abs(w)))[sound])
        error(mean[sound], centre[sound], (np.abs(wide).max(1) + 1)[sound])
        assert np.isnan(out[~np.isfinite(wide).all(1)]).any(1).all()

    g = np.where(np.isfinite(g) & (np.abs(g) < 1e3), g, 1).astype(dtype)
    over, over_memory = guarded(count, columns, dtype=dtype)
    sums = [guarded(columns, dtype=dtype) for _ in "wb"]
    block = data.draw(st.sampled_from([1, 8, count]))
    parts, parts_memory = guarded(-(-count // block), 2, columns, dtype=dtype)
    backward = getattr(native, f"layer_norm_backward_{suffix}")
    backward(over, sums[0][0], sums[1][0], parts, g, x, weight, mean, invstd, count, columns, block)
    check_guards(over_memory, parts_memory, *(memory for _, memory in sums))
    with np.errstate(all="ignore"):
        kept, by = mean.astype("f8")[:, None], invstd.astype("f8")[:, None]
        h, p = (wide - kept) * by, g.astype("f8") * w
        slopes = by * (p - p.mean(1, keepdims=True) - h * (p * h).mean(1, keepdims=True))
        limit = by * (1 + np.abs(h).max(1, keepdims=True)) ** 2 * (np.abs(p).max() + 1)
        error(over[sound], slopes[sound], 10 * limit[sound])
        if sound.all():
            size = (np.abs(g) * (np.abs(h) + 1)).sum(0) + 1
            error(sums[0][0], (g * h).sum(0), size)
            error(sums[1][0], g.astype("f8").sum(0), size)


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Images, groups, channels of each, and the elements of a plane."""
    n = draw(st.sampled_from([*LENGTHS, 4095, 4096, 4097, 9000]))
    most = 8 if n < 600 else 2
    return (*(draw(st.integers(1, 4)) for _ in range(2)), draw(st.integers(1, most)), n)


@settings(max_examples=150, deadline=None)
@given(st.data(), groups(), st.sampled_from(["f32", "f64"]))
def test_group_norms_of_every_size_have_values_and_gradients_of_a_wider_type(
    data: st.DataObject, sizes: tuple[int, int, int, int], suffix: str
) -> None:
    images, count, each, n = sizes
    dtype = np.float32 if suffix == "f32" else np.float64
    eps, channels = 4 * np.finfo(dtype).eps, count * each
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x, g = ((rng.normal(size=(images, count, each, n)) + 2).astype(dtype) for _ in "xg")
    if data.draw(st.booleans()):
        spoilt = data.draw(st.integers(0, images - 1)), data.draw(st.integers(0, count - 1))
        x[(*spoilt, rng.integers(each), rng.integers(n))] = data.draw(st.sampled_from(ODD[:3]))
    weight, bias = (
        rng.normal(size=channels).astype(dtype) if data.draw(st.booleans()) else None for _ in "wb"
    )
    out, out_memory = guarded(*x.shape, dtype=dtype)
    (mean, mean_memory), (invstd, invstd_memory) = (
        guarded(images, count, dtype=dtype) for _ in "mi"
    )
    numbers = images, count, each, n
    getattr(native, f"group_norm_{suffix}")(out, mean, invstd, x, weight, bias, *numbers, 0.1)
    over, over_memory = guarded(*x.shape, dtype=dtype)
    over_weight, weight_memory = guarded(channels, dtype=dtype)
    over_bias, bias_memory = guarded(channels, dtype=dtype)
    parts, parts_memory = guarded(images, channels, 2, dtype=np.float64)
    backward = getattr(native, f"group_norm_backward_{suffix}")
    backward(over, over_weight, over_bias, parts, g, x, weight, mean, invstd, *numbers)
    check_guards(out_memory, mean_memory, invstd_memory)
    check_guards(over_memory, weight_memory, bias_memory, parts_memory)

    sound = np.isfinite(x).all((2, 3))
    assert (np.isnan(mean) | np.isinf(mean) == ~sound).all() and np.isnan(invstd[~sound]).all()
    wide, slope = x.astype("f8"), g.astype("f8")
    w, b = (
        (np.full(channels, k) if v is None else v).astype("f8").reshape(1, count, each, 1)
        for v, k in ((weight, 1.0), (bias, 0.0))
    )
    with np.errstate(all="ignore"):
        middle = wide.mean((2, 3), keepdims=True)
        by = 1 / np.sqrt(((wide - middle) ** 2).mean((2, 3), keepdims=True) + 0.1)
        h, p = (wide - middle) * by, slope * w
        rest = p.mean((2, 3), keepdims=True) + h * (p * h).mean((2, 3), keepdims=True)
        wanted, slopes = h * w + b, by * (p - rest)
        size = (1 + np.abs(h).max((2, 3), keepdims=True)) * (1 + np.abs(w) + np.abs(b))
        assert (np.abs(out - wanted) <= 8 * eps * size * (1 + np.abs(middle) * by))[sound].all()
        limit = by * size**2 * (1 + np.abs(slope).max())
        assert (np.abs(over - slopes) <= 8 * eps * limit)[sound].all()
    if sound.all():
        terms = np.abs(slope) * (1 + np.abs(h) + by * np.abs(middle))
        bound = 8 * eps * terms.sum((0, 3)).reshape(-1)
        assert (np.abs(over_weight - (slope * h).sum((0, 3)).reshape(-1)) <= bound).all()
        assert (np.abs(over_bias - slope.sum((0, 3)).reshape(-1)) <= bound).all()
