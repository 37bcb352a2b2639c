"""The loss of unaligned sequences and its gradient, beside NumPy's kernels in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels.sequence_loss import KERNELS as COMPILED
from flambeau_numpy.extending import KERNELS as NUMPY

EPS = {np.float32: 1e-6, np.float64: 1e-11}


def drawn(
    rng: Any, time: int, count: int, classes: int, longest: int, dtype: Any
) -> tuple[Any, Any, tuple[int, ...], tuple[int, ...], int]:
    """Log-probabilities, targets, lengths and a blank, which also lies behind the targets."""
    y = rng.normal(size=(time, count, classes)) * rng.choice([1, 5, 50])
    y = (y - np.log(np.exp(y).sum(-1, keepdims=True))).astype(dtype)
    targets = rng.integers(0, classes, size=(count, longest))
    inputs = tuple(rng.integers(0, time + 1, count).tolist())
    labels = tuple(rng.integers(0, longest + 1, count).tolist())
    blank = int(rng.integers(classes))
    for row, n in zip(targets, labels, strict=True):
        row[n:] = blank
    return y, targets, inputs, labels, blank


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(0, 12),
    st.sampled_from(list(EPS)),
    st.sampled_from(["by time", "by sequence", "gaps"]),
    st.sampled_from([None, -np.inf, np.nan]),
    st.booleans(),
    st.integers(0, 999),
)
def test_losses_and_gradients_are_those_of_numpy_in_double(
    time: int,
    count: int,
    classes: int,
    longest: int,
    dtype: Any,
    order: str,
    odd: float | None,
    zero_infinity: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    y, *rest = drawn(rng, time, count, classes, longest, dtype)
    if odd is not None:
        y[rng.integers(time), rng.integers(count), rng.integers(classes)] = odd
    if order == "by sequence":
        y = np.ascontiguousarray(y.transpose(1, 0, 2)).transpose(1, 0, 2)
    elif order == "gaps":
        y = np.repeat(y, 2, -1)[..., ::2]
    grad = rng.normal(size=count).astype(dtype)
    for name, floats in (("ctc_loss", (y,)), ("ctc_loss_backward", (grad, y))):
        found = COMPILED[name](*floats, *rest, zero_infinity)
        wanted = NUMPY[name](*(a.astype("f8") for a in floats), *rest, zero_infinity)
        assert found.dtype == dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=EPS[dtype], atol=EPS[dtype])


@pytest.mark.parametrize("backward", [False, True])
def test_what_does_not_fit_is_refused(backward: bool) -> None:
    y, count = np.log(np.full((3, 2, 4), 0.25)), 2
    targets, lengths = np.ones((2, 2), np.int64), np.array([3, 2])
    labels, room = np.array([2, 1]), (3 + 6) * 10 + 4

    def call(*changed: Any, targets: Any = targets, inputs: Any = lengths, labels: Any = labels,
             blank: int = 0, room: int = room) -> None:  # fmt: skip
        scratch = np.empty((count, max(room, 0)))
        sizes = 3, count, 4, 2, blank, 0, room
        if backward:
            given = np.empty_like(y), scratch, np.ones(2), y, targets, inputs, labels, *sizes, 0
            native.ctc_loss_backward_f64(*given)
        else:
            native.ctc_loss_f64(np.empty(2), scratch, y, targets, inputs, labels, *sizes)

    call()
    for wrong in (np.full((2, 2), 4), np.full((2, 2), -1)):
        with pytest.raises(IndexError, match="out of range"):
            call(targets=wrong)
    for name, beyond in (("inputs", 4), ("labels", 3)):
        for number in (beyond, -1, np.iinfo(np.int64).min):
            with pytest.raises(IndexError, match="out of range"):
                call(**{name: np.array([1, number])})
    for blank in (-1, 4):
        with pytest.raises(IndexError, match="out of range"):
            call(blank=blank)
    with pytest.raises(RuntimeError, match="scratch"):
        call(room=20)
    with pytest.raises(RuntimeError):
        call(room=-1)


def test_sequences_on_several_threads_have_the_same_bits(threads: Any) -> None:
    rng = np.random.default_rng(1)
    y, *rest = drawn(rng, 60, 40, 30, 20, np.float32)
    grad, found = np.ones(40, np.float32), []
    for count in (1, 4):
        threads(count)
        found.append(COMPILED["ctc_loss"](y, *rest, False))
        found.append(COMPILED["ctc_loss_backward"](grad, y, *rest, True))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])
