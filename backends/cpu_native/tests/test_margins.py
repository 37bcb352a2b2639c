"""Losses by margins: the NumPy kernel's numbers, of any order in memory, odd numbers and lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.kernels import KERNELS as NUMPY


def agree(name, *args):
    found, wanted = COMPILED[name](*args), NUMPY[name](*args)
    for have, want in zip(found, wanted, strict=True):
        have, want = np.asarray(have), np.asarray(want)
        assert have.dtype == want.dtype
        rtol = 1e-12 if have.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(have, want, rtol, rtol / 10)


def scores(rng, rows, classes, dtype, odd):
    x = rng.normal(size=(rows, classes)).astype(dtype)
    if odd:
        x.reshape(-1)[::3] = rng.choice([np.nan, np.inf, -np.inf, 0], x.reshape(-1)[::3].size)
    return x


@settings(max_examples=150, deadline=None)
@given(
    rows=st.integers(0, 5),
    classes=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    reduction=st.sampled_from(["none", "sum", "mean"]),
    weighted=st.booleans(),
    odd=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_losses_by_margins_and_their_counts(rows, classes, dtype, reduction, weighted, odd, seed):
    rng = np.random.default_rng(seed)
    x = scores(rng, rows, classes, dtype, odd)
    target = rng.integers(0, classes, rows)
    weight = rng.random(classes).astype(dtype) if weighted else None
    for a in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2]):
        agree("multi_margin_loss", a, target, weight, 0.75, reduction)
    lists = rng.integers(-1, classes, (rows, classes))
    for a in (lists, np.asfortranarray(lists), np.full_like(lists, -1)):
        agree("multilabel_margin_loss", x, a, reduction)


@pytest.mark.skipif(native is None, reason="not built")
def test_targets_that_are_no_classes_are_refused():
    x, out, counts = (
        np.ones((2, 3), np.float32),
        np.ones(2, np.float32),
        np.ones((2, 3), np.int32),
    )
    for bad in (-1, 3, 1 << 62, -(1 << 63)):
        target = np.array([0, bad])
        with pytest.raises(IndexError, match="target out of range"):
            native.multi_margin_loss_f32(out, counts, x, target, None, 2, 3, 2, 0, 1.0)
    right = np.ones(3, np.uint8)
    for bad in (3, 1 << 62):
        target = np.array([[0, -1, 7], [1, bad, 0]])
        with pytest.raises(IndexError, match="target out of range"):
            native.multilabel_margin_loss_f32(out, counts, right, x, target, 2, 3, 2, 0)
    with pytest.raises(RuntimeError, match="fewer results"):
        native.multi_margin_loss_f32(out[:1], counts, x, np.array([0, 1]), None, 2, 3, 1, 0, 1.0)
